import Dispatch
import Engine
import Glibc
import HTTPTransport
import Platform
import ServiceManager

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
