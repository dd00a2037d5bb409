import Engine
package import HTTPTransport
import Policy
package import ServiceManager

/// The number of times that each limit was reached since the start of the gateway, in all parts of the gateway that
/// count.
package struct LimitMeter: Sendable {
    /// The counts of the loops.
    package var loops: [LimitTally<TransportLimit>] = []
    package var gateway = LimitTally<GatewayCountedLimit>()

    package init(
        loops: [LimitTally<TransportLimit>] = [],
        gateway: LimitTally<GatewayCountedLimit> = LimitTally<GatewayCountedLimit>()
    ) {
        self.loops = loops
        self.gateway = gateway
    }

    /// Returns all counts.
    ///
    /// - Parameter engine: the counts of the engine.
    /// - Returns: each limit with its count, in the order of `GatewayLimit.counterNames`.
    func times(_ engine: PerCase<EngineLimit>) -> [(name: String, count: Int64)] {
        GatewayLimit.counterNames.map { ($0, self.times($0, engine)) }
    }

    private func times(_ name: String, _ engine: PerCase<EngineLimit>) -> Int64 {
        if let limit = TransportLimit(rawValue: name) {
            return Int64(self.loops.reduce(0) { $0 + $1.times(limit) })
        }
        if let limit = GatewayCountedLimit(rawValue: name) { return Int64(self.gateway.times(limit)) }
        return EngineLimit(rawValue: name).map { engine[$0] } ?? 0
    }
}

/// The log of reached limits. At most once a second, it writes each limit whose count has grown.
package struct LimitWatch {
    private static let intervalMilliseconds: Int64 = 1000

    private let log: GatewayLog?
    private var nextCheck = Instant.distantPast
    private var reported: [String: Int64] = [:]

    /// - Parameter log: the log; nil to log nothing.
    package init(_ log: GatewayLog? = nil) {
        self.log = log
    }

    /// Logs the limits that were reached since the last log, if a second has passed.
    ///
    /// - `counts`: returns the number of times that each limit was reached since the start of the gateway.
    mutating func look(_ now: Instant, _ counts: () -> [(name: String, count: Int64)]) {
        guard let log = self.log, now >= self.nextCheck else { return }
        self.nextCheck = now + Self.intervalMilliseconds
        for (name, count) in counts() {
            let before = self.reported[name] ?? 0
            guard count > before else { continue }
            self.reported[name] = count
            let event = GatewayLimit.routineNames.contains(name) ? GatewayEvent.routineLimitMet : .limitMet
            log.write(event, ["limit": name, "times": "\(count - before)", "total": "\(count)"])
        }
    }
}
