import DeviceEngine
package import HTTPTransport
package import Settings

/// How often each bound was met since the gateway started, from everywhere where bounds are counted.
package struct LimitMeter: Sendable {
    /// One of each loop.
    package var loops: [LimitTally<TransportLimit>] = []
    package var gateway = LimitTally<GatewayCountedLimit>()

    package init(
        loops: [LimitTally<TransportLimit>] = [],
        gateway: LimitTally<GatewayCountedLimit> = LimitTally<GatewayCountedLimit>()
    ) {
        self.loops = loops
        self.gateway = gateway
    }

    /// - Parameter engine: what the engine has counted.
    /// - Returns: every bound with how often it was met, in the order of `GatewayLimit.all`.
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
