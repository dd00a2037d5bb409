import DeviceEngine
import Foundation
import HTTPTransport

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

        let gateway = try Gateway(configuration, log: log) { happened.yield(.idle) }
        try gateway.start()
        onReady(gateway.addresses)
        log.info("ready", ["edge": gateway.addresses.edge.text, "admin": gateway.addresses.admin.text])

        for await event in events {
            switch (event, gateway.isDraining) {
            case (.signalled, false):
                log.info("draining", ["drainTimeoutMilliseconds": "\(configuration.drainTimeoutMilliseconds)"])
                gateway.drain()
                let timeout = DispatchTimeInterval.milliseconds(Int(configuration.drainTimeoutMilliseconds))
                DispatchQueue.global().asyncAfter(deadline: .now() + timeout) { happened.yield(.timedOut) }
            case (.idle, false): break
            case (.signalled, true), (.idle, true), (.timedOut, _): happened.finish()
            }
        }
        gateway.stop()
        log.info("stopped", [:])
        return 0
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
