import Engine
package import HTTPTransport
import Policy
package import ServiceManager

/// The number of times that each limit was reached since the start of the gateway, from every part that counts limits.
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

    /// - Parameter engine: the counts of the engine.
    /// - Returns: each limit with its count, in the order of `GatewayLimit.all`.
    func times(_ engine: PerCase<EngineLimit>) -> [(name: String, count: Int64)] {
        GatewayLimit.countedNames.map { ($0, self.times($0, engine)) }
    }

    private func times(_ name: String, _ engine: PerCase<EngineLimit>) -> Int64 {
        if let limit = TransportLimit(rawValue: name) {
            return Int64(self.loops.reduce(0) { $0 + $1.times(limit) })
        }
        if let limit = GatewayCountedLimit(rawValue: name) { return Int64(self.gateway.times(limit)) }
        return EngineLimit(rawValue: name).map { engine[$0] } ?? 0
    }
}

/// Logs, once a second, the limits whose counts have grown.
package struct LimitWatch {
    private static let intervalMilliseconds: Int64 = 1000

    private let log: GatewayLog?
    private var nextLook = Instant.distantPast
    private var reported: [String: Int64] = [:]

    /// - Parameter log: nil to log nothing.
    package init(_ log: GatewayLog? = nil) {
        self.log = log
    }

    /// Logs new counts, if a second has passed.
    ///
    /// - Parameter counts: the number of times that each limit was reached so far.
    mutating func look(_ now: Instant, _ counts: () -> [(name: String, count: Int64)]) {
        guard let log = self.log, now >= self.nextLook else { return }
        self.nextLook = now + Self.intervalMilliseconds
        for (name, count) in counts() {
            let before = self.reported[name] ?? 0
            guard count > before else { continue }
            self.reported[name] = count
            let event = GatewayLimit.routineNames.contains(name) ? GatewayEvent.routineLimitMet : .limitMet
            log.write(event, ["limit": name, "times": "\(count - before)", "total": "\(count)"])
        }
    }
}
