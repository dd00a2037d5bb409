import DeviceEngine
import Foundation
import HTTPTransport
import ServiceManager

/// Runs a gateway in this process.
package enum GatewayProcess {
    private enum Event: Sendable {
        case signalled, idle, timedOut
    }

    /// Serves until SIGTERM or SIGINT, then drains: nothing new is launched, results are still taken, and every
    /// connection is ended once it carries no wake in flight, or after `drainTimeout`. A second signal ends at once.
    ///
    /// - Parameter onReady: called once, when the gateway accepts.
    /// - Returns: the exit status.
    /// - Throws: `TransportError` that names the address, certificate or key at fault; `StoreError` that names the
    ///   file.
    package static func run(
        _ configuration: GatewayConfiguration,
        onReady: @escaping @Sendable (BoundAddresses) -> Void
    ) async throws -> Int32 {
        let log = GatewayLog(level: configuration.logLevel, format: configuration.logFormat)
        let (events, happened) = AsyncStream.makeStream(of: Event.self)
        let signals = [SIGTERM, SIGINT].map { Self.watch($0) { happened.yield(.signalled) } }
        defer { for signal in signals { signal.cancel() } }

        let gateway = try self.start(configuration, log) { happened.yield(.idle) }
        onReady(gateway.addresses)
        let watchdog = Systemd.watchdogMicroseconds.map { microseconds in
            Watchdog(microseconds: microseconds, gateway.watched) { Systemd.notify(.alive) }
        }
        log.info("ready", ["edge": gateway.addresses.edge.text, "admin": gateway.addresses.admin.text])

        for await event in events {
            switch (event, gateway.isDraining) {
            case (.signalled, false):
                log.info("draining", ["drainTimeoutMilliseconds": "\(configuration.drainTimeoutMilliseconds)"])
                Systemd.notify(
                    .stopping("Lets wakes in flight end", milliseconds: configuration.drainTimeoutMilliseconds)
                )
                gateway.drain()
                let timeout = DispatchTimeInterval.milliseconds(Int(configuration.drainTimeoutMilliseconds))
                DispatchQueue.global().asyncAfter(deadline: .now() + timeout) { happened.yield(.timedOut) }
            case (.idle, false): break
            case (.signalled, true), (.idle, true), (.timedOut, _): happened.finish()
            }
        }
        watchdog?.stop()
        gateway.stop()
        log.info("stopped", [:])
        return 0
    }

    /// A gateway that accepts; the service manager hears of it, or of why there is none.
    private static func start(
        _ configuration: GatewayConfiguration,
        _ log: GatewayLog,
        onIdle: @escaping @Sendable () -> Void
    ) throws -> Gateway {
        do {
            let gateway = try Gateway(configuration, log: log, onIdle: onIdle)
            try gateway.start()
            let addresses = gateway.addresses
            Systemd.notify(.ready("Takes pushes at \(addresses.edge.text), operators at \(addresses.admin.text)"))
            return gateway
        } catch {
            Systemd.notify(.status("Cannot start: \(error)"))
            throw error
        }
    }

    private static func watch(_ number: Int32, _ handler: @escaping @Sendable () -> Void) -> any DispatchSourceSignal {
        signal(number, SIG_IGN)
        let registered = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler(handler: handler)
        source.setRegistrationHandler { registered.signal() }
        source.resume()
        // A signal that comes before would be lost: whoever waits for the ready line may send one at once.
        registered.wait()
        return source
    }
}
