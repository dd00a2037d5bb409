package import Engine
package import HTTPTransport
import Policy
package import ServiceManager

/// Counts how often limits of the gateway were reached since its start, and logs the limits that were reached.
package final class LimitCounts {
    /// The minimum time between two entries in the log, in milliseconds.
    private static let logInterval: Int64 = 1000

    /// The counts of the engine, without those of the current dispatcher.
    private var counts = PerCase<EngineLimit>()
    /// The counts of the loops.
    private let loops: [LimitTally<TransportLimit>]
    private let gateway: LimitTally<GatewayCountedLimit>
    /// The log; nil to log nothing.
    private let log: GatewayLog?
    private var nextLog = Instant.distantPast
    private var logged: [String: Int64] = [:]

    package init(
        loops: [LimitTally<TransportLimit>] = [],
        gateway: LimitTally<GatewayCountedLimit> = LimitTally<GatewayCountedLimit>(),
        log: GatewayLog? = nil
    ) {
        self.loops = loops
        self.gateway = gateway
        self.log = log
    }

    package func met(_ limit: EngineLimit) { self.counts[limit] += 1 }

    /// Adds the counts of a dispatcher that will be released.
    package func take(from dispatcher: Dispatcher) {
        self.counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
    }

    /// Returns the number of times that each limit was reached, in the order of `GatewayLimit.counterNames`.
    package func all(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        var counts = self.counts
        counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
        return GatewayLimit.counterNames.map { ($0, self.times($0, counts)) }
    }

    private func times(_ name: String, _ engine: PerCase<EngineLimit>) -> Int64 {
        if let limit = TransportLimit(rawValue: name) {
            return Int64(self.loops.reduce(0) { $0 + $1.times(limit) })
        }
        if let limit = GatewayCountedLimit(rawValue: name) { return Int64(self.gateway.times(limit)) }
        return EngineLimit(rawValue: name).map { engine[$0] } ?? 0
    }

    /// Returns the limits that have been reached, with their counts.
    package func met(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        self.all(dispatcher).filter { $0.count > 0 }
    }

    /// Logs the limits that were reached since the last log, if a second has passed.
    func look(_ now: Instant, _ dispatcher: Dispatcher) {
        guard let log = self.log, now >= self.nextLog else { return }
        self.nextLog = now + Self.logInterval
        for (name, count) in self.met(dispatcher) {
            let before = self.logged[name] ?? 0
            guard count > before else { continue }
            self.logged[name] = count
            let event = GatewayLimit.routineNames.contains(name) ? GatewayEvent.routineLimitMet : .limitMet
            log.write(event, ["limit": name, "times": "\(count - before)", "total": "\(count)"])
        }
    }
}
