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

    /// Serves until SIGTERM or SIGINT, and then drains: launches nothing new, still accepts results, and ends each
    /// connection that has no wake in flight. The drain ends after `drainTimeout` at the latest; a second signal ends
    /// the process immediately. After a failure of the store, the drain does not wait, because no result can be stored.
    /// SIGHUP reloads the configuration if `source` allows it.
    ///
    /// - `database`: the database of the configuration; nil if it has none.
    /// - `source`: reads the configuration again.
    /// - `onReady`: called once, when the gateway accepts connections.
    /// - `onNews`: receives all events after that time; nil to report no events.
    /// - Returns: the exit status, which is 1 if the store has failed.
    /// - Throws: `TransportError` with the address, certificate or key at fault; `StoreError` with the file.
    package static func run(
        _ configuration: GatewayConfiguration,
        database: (any GatewayDatabase)?,
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
            database,
            source,
            log,
            status,
            onStoreFailed: { happened.yield(.storeFailed) },
            onIdle: { happened.yield(.idle) }
        )
        if let onNews { gateway.follow(onNews) }
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

    /// Starts a gateway, and reports the success or failure to the service manager.
    private static func start(
        _ configuration: GatewayConfiguration,
        _ database: (any GatewayDatabase)?,
        _ source: ConfigurationSource,
        _ log: GatewayLog,
        _ status: ServiceStatus,
        onStoreFailed: @escaping @Sendable () -> Void,
        onIdle: @escaping @Sendable () -> Void
    ) throws -> Gateway {
        do {
            let gateway = try Gateway(
                configuration,
                database: database,
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
        // Wait, because a signal before the registration would be lost. Programs may send a signal after the line that
        // says that the gateway is ready.
        registered.wait()
        return source
    }
}

/// The status for the service manager: the stage of the gateway, and a line for `systemctl status`.
package final class ServiceStatus: Sendable {
    private struct Facts {
        var places = ""
        /// The result of the last reload.
        var reload = ""
        /// The reason why nothing can be stored any more.
        var failure: String?
        /// The reason why nothing can be stored for now.
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
        let pushes = ListenSetting(addresses.edge.addresses + addresses.plain.addresses)
        self.reportReady { $0.places = "Takes pushes at \(pushes.text), operators at \(addresses.admin.text)" }
    }

    func startFailed(_ error: any Error) {
        Systemd.notify(.status("Cannot start: \(error)"))
    }

    /// Reports the begin and the end of a reload, regardless of its cause and result.
    func reloaded(_ stage: ReloadService.Stage) {
        switch stage {
        case .began:
            let microseconds = UInt64(SystemClock.monotonicMicroseconds)
            Systemd.notify(.reloading("Reads its configuration again", monotonicMicroseconds: microseconds))
        case .taken: self.reportReady { $0.reload = "; has read its configuration again" }
        case .refused:
            self.reportReady {
                $0.reload = "; the configuration it has read again is faulty, and the old one stays in effect"
            }
        }
    }

    func storeFailed(_ message: String) {
        Systemd.notify(.status(self.words { $0.failure = message }))
    }

    /// Reports why the database cannot be used for now; nil means that it can be used again.
    func storeAbsent(_ message: String?) {
        let words = self.words { $0.absence = message }
        if !words.isEmpty { Systemd.notify(.status(words)) }
    }

    func stopping(drainTimeoutMilliseconds milliseconds: Int64) {
        Systemd.notify(.stopping("Lets wakes in flight end", milliseconds: milliseconds))
    }

    private func reportReady(_ change: (inout Facts) -> Void) {
        Systemd.notify(.ready(self.words(after: change)))
    }

    private func words(after change: (inout Facts) -> Void) -> String {
        self.facts.withLock { facts in
            change(&facts)
            return facts.words
        }
    }
}

/// Reports to the service manager at regular intervals that the gateway is alive, as long as every watched thread makes
/// progress.
///
/// If a thread is stuck, the reports stop and the service manager ends the process. A restart is better than a gateway
/// that does not answer. The committing thread is not watched, because a new process would wait for the same disk.
package final class Watchdog: Sendable {
    /// A thread, and the function that makes it perform a turn.
    package struct Watched: Sendable {
        let pulse: Pulse
        let wake: @Sendable () -> Void

        package init(_ pulse: Pulse, wake: @escaping @Sendable () -> Void) {
            self.pulse = pulse
            self.wake = wake
        }
    }

    /// The number of checks in the time after which the service manager ends the process.
    private static let checksPerInterval: UInt64 = 4
    /// The maximum interval between two checks, in microseconds.
    private static let intervalMax: UInt64 = 3_600_000_000

    private let stopping = Latch()
    private let thread: NamedThread

    /// Begins to watch.
    ///
    /// - `microseconds`: the time without reports after which the service manager ends the process.
    /// - `tell`: called on a separate thread each time all threads have made a turn since the last call.
    /// - Throws: `ThreadFailure` if the system cannot create its thread.
    package init(
        microseconds: UInt64,
        _ watched: [Watched],
        tell: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        let stopping = self.stopping
        let interval = Int64(min(max(1, microseconds / Self.checksPerInterval), Self.intervalMax)) * 1000
        self.thread = try NamedThread("watchdog") {
            repeat {
                if Self.look(at: watched) { tell() }
            } while !stopping.wait(untilNanoseconds: SystemClock.monotonicNanoseconds + interval)
        }
    }

    /// Ends the thread, and waits for it.
    package func stop() {
        self.stopping.open()
        self.thread.join()
    }

    /// Requests a turn of every thread, if all have made a turn since the last request.
    ///
    /// - Returns: true if all have made a turn.
    package static func look(at watched: [Watched]) -> Bool {
        guard watched.allSatisfy(\.pulse.isAnswered) else { return false }
        for thread in watched {
            thread.pulse.ask()
            thread.wake()
        }
        return true
    }
}
