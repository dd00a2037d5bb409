import Dispatch
import Engine
import Glibc
import HTTPTransport
package import Platform
import ServiceManager
import Synchronization

/// Runs a gateway in this process.
package enum GatewayProcess {
    private enum Event: Sendable {
        case signalled, hungUp, idle, timedOut, storeFailed
    }

    /// Serves until SIGTERM or SIGINT, then drains: nothing new is launched, results are still taken, and every
    /// connection is ended once it carries no wake in flight, or after `drainTimeout`. A second signal ends at once.
    /// SIGHUP reads the configuration again, where `source` says so. Once the store has failed no result can be taken,
    /// and nothing is waited for.
    ///
    /// - `source`: where the configuration is read again.
    /// - `onReady`: called once, when the gateway accepts.
    /// - `onNews`: told what happens from then on; nil for nobody.
    /// - Returns: the exit status: 1 when the store has failed.
    /// - Throws: `TransportError` that names the address, certificate or key at fault; `StoreError` that names the
    ///   file.
    package static func run(
        _ configuration: GatewayConfiguration,
        source: ConfigurationSource,
        onReady: @escaping @Sendable (BoundAddresses) -> Void,
        onNews: EventFollower.Tell? = nil
    ) async throws -> Int32 {
        try ProcessLimits.checkDescriptors()
        ProcessLimits.takeSignalsAsErrors()
        let log = GatewayLog(level: configuration.logLevel, format: configuration.logFormat)
        let (events, happened) = AsyncStream.makeStream(of: Event.self)
        let signals = [
            (SIGTERM, Event.signalled), (SIGINT, .signalled), (SIGHUP, source.reloadsOnHangup ? .hungUp : .signalled),
        ].map { signal, event in Self.watch(signal) { happened.yield(event) } }
        defer {
            for signal in signals { signal.cancel() }
            log.close()
        }

        let status = ServiceStatus()
        let gateway = try self.start(
            configuration,
            source,
            log,
            status,
            onStoreFailed: { happened.yield(.storeFailed) },
            onIdle: { happened.yield(.idle) }
        )
        if let onNews { try gateway.follow(onNews) }
        onReady(gateway.addresses)
        let watchdog = try Systemd.watchdogMicroseconds.map { microseconds in
            try Watchdog(microseconds: microseconds, gateway.watched) { Systemd.notify(.alive) }
        }
        log.write(.ready, ["edge": gateway.addresses.edge.text, "admin": gateway.addresses.admin.text])

        var exitStatus: Int32 = 0
        for await event in events {
            switch (event, gateway.isDraining) {
            case (.storeFailed, let isDraining):
                exitStatus = 1
                if isDraining { happened.finish() }
            case (.signalled, false) where exitStatus != 0: happened.finish()
            case (.signalled, false):
                let milliseconds = gateway.drainTimeoutMilliseconds
                log.write(.draining, ["drainTimeoutMilliseconds": "\(milliseconds)"])
                status.stopping(drainTimeoutMilliseconds: milliseconds)
                gateway.drain()
                let timeout = DispatchTimeInterval.milliseconds(Int(milliseconds))
                DispatchQueue.global().asyncAfter(deadline: .now() + timeout) { happened.yield(.timedOut) }
            case (.hungUp, false): gateway.reload()
            case (.idle, false), (.hungUp, true): break
            case (.timedOut, _):
                log.write(.drainTimedOut)
                happened.finish()
            case (.signalled, true), (.idle, true): happened.finish()
            }
        }
        watchdog?.stop()
        gateway.stop()
        log.write(.stopped)
        return exitStatus
    }

    /// A gateway that accepts; the service manager hears of it, or of why there is none.
    private static func start(
        _ configuration: GatewayConfiguration,
        _ source: ConfigurationSource,
        _ log: GatewayLog,
        _ status: ServiceStatus,
        onStoreFailed: @escaping @Sendable () -> Void,
        onIdle: @escaping @Sendable () -> Void
    ) throws -> Gateway {
        do {
            let gateway = try Gateway(
                configuration,
                source: source,
                log: log,
                status: status,
                onStoreFailed: onStoreFailed,
                onIdle: onIdle
            )
            try gateway.start()
            status.started(gateway.addresses)
            return gateway
        } catch {
            status.startFailed(error)
            throw error
        }
    }

    private static func watch(_ number: Int32, _ handler: @escaping @Sendable () -> Void) -> any DispatchSourceSignal {
        signal(number, SIG_IGN)
        let registered = Latch()
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler(handler: handler)
        source.setRegistrationHandler { registered.open() }
        source.resume()
        // A signal that comes before would be lost: whoever waits for the ready line may send one at once.
        registered.wait()
        return source
    }
}

/// What the service manager hears of a gateway: how far it is, and how it is, in a line that `systemctl status` shows.
package final class ServiceStatus: Sendable {
    private struct Facts {
        var places = ""
        /// What the last reload came to.
        var reload = ""
        /// Why nothing can be stored any more.
        var failure: String?
        /// Why nothing can be stored for now.
        var absence: String?

        var words: String {
            if let failure = self.failure { return "Takes nothing more until it is started again: \(failure)" }
            if let absence = self.absence { return "Takes nothing until the database is there again: \(absence)" }
            return self.places + self.reload
        }
    }

    private let facts = Mutex(Facts())

    package init() {}

    func started(_ addresses: BoundAddresses) {
        self.tellReady { $0.places = "Takes pushes at \(addresses.edge.text), operators at \(addresses.admin.text)" }
    }

    func startFailed(_ error: any Error) {
        Systemd.notify(.status("Cannot start: \(error)"))
    }

    /// Around every reload, whoever asked for it, and whether it changes something or not.
    func reloaded(_ stage: ReloadService.Stage) {
        switch stage {
        case .began:
            let microseconds = UInt64(SystemClock.monotonicMicroseconds)
            Systemd.notify(.reloading("Reads its configuration again", monotonicMicroseconds: microseconds))
        case .taken: self.tellReady { $0.reload = "; has read its configuration again" }
        case .refused:
            self.tellReady {
                $0.reload = "; the configuration it has read again is faulty, and the old one stays in effect"
            }
        }
    }

    func storeFailed(_ message: String) {
        let words = self.facts.withLock { facts in
            facts.failure = message
            return facts.words
        }
        Systemd.notify(.status(words))
    }

    /// The database cannot be used for now, for this cause; nil when it can again.
    func storeAbsent(_ message: String?) {
        let words = self.facts.withLock { facts in
            facts.absence = message
            return facts.words
        }
        if !words.isEmpty { Systemd.notify(.status(words)) }
    }

    func stopping(drainTimeoutMilliseconds milliseconds: Int64) {
        Systemd.notify(.stopping("Lets wakes in flight end", milliseconds: milliseconds))
    }

    private func tellReady(_ change: (inout Facts) -> Void) {
        let words = self.facts.withLock { facts in
            change(&facts)
            return facts.words
        }
        Systemd.notify(.ready(words))
    }
}

/// Says again and again that the gateway is alive, as long as every watched thread turns.
///
/// A thread that is stuck makes it fall silent, and the service manager then ends the process: a gateway that accepts
/// connections and answers nobody is worse than one that starts again. Waiting for the disk is no fault of a thread:
/// the thread that commits is not watched, since a new process would wait for the same disk.
package final class Watchdog: Sendable {
    /// A thread, and what has it make a turn.
    package struct Watched: Sendable {
        let pulse: Pulse
        let wake: @Sendable () -> Void

        package init(_ pulse: Pulse, wake: @escaping @Sendable () -> Void) {
            self.pulse = pulse
            self.wake = wake
        }
    }

    /// How many times it looks in the time within which the manager wants to hear of it.
    private static let looksPerInterval: UInt64 = 4
    /// How long it waits for the next look at most, in microseconds.
    private static let intervalMax: UInt64 = 3_600_000_000

    private let stopping = Latch()
    private let thread: NamedThread

    /// Begins to watch.
    ///
    /// - `microseconds`: how long the manager waits before it ends the process.
    /// - `tell`: called on a thread of its own when every thread has made a turn since it was last called.
    /// - Throws: `ThreadFailure` when the system has no room for its thread.
    package init(
        microseconds: UInt64,
        _ watched: [Watched],
        tell: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        let stopping = self.stopping
        let interval = Int64(min(max(1, microseconds / Self.looksPerInterval), Self.intervalMax)) * 1000
        self.thread = try NamedThread("watchdog") {
            repeat {
                if Self.look(at: watched) { tell() }
            } while !stopping.wait(untilNanoseconds: SystemClock.monotonicNanoseconds + interval)
        }
    }

    /// Ends it, and waits for that.
    package func stop() {
        self.stopping.open()
        self.thread.join()
    }

    /// Asks every thread anew, unless one has not made a turn since it was last asked.
    ///
    /// - Returns: whether all have.
    package static func look(at watched: [Watched]) -> Bool {
        guard watched.allSatisfy(\.pulse.isAnswered) else { return false }
        for thread in watched {
            thread.pulse.ask()
            thread.wake()
        }
        return true
    }
}
