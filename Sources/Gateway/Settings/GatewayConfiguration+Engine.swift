package import DeviceEngine
import Platform

extension GatewayConfiguration {
    /// What of it concerns the engine.
    package var engine: EngineConfiguration {
        var engine = EngineConfiguration()
        engine.policy = self.policy
        engine.topicPolicies = self.topicPolicies
        engine.openRegistration = self.registration == .open
        engine.devicesMax = self.limits.devicesMax
        engine.devicesPerTopicMax = self.limits.devicesPerTopicMax
        engine.topicsMax = self.limits.topicsMax
        engine.streamsPerDeviceMax = self.limits.streamsPerDeviceMax
        engine.pendingBytesMax = self.pendingBytesMax
        engine.pendingBytesPerTopicMax = self.pendingBytesMax * self.limits.pendingTopicPercentMax / 100
        engine.pushRate.pushesMax = self.limits.pushesPerDeviceMax
        engine.pushRate.seconds = self.limits.pushesPerDeviceSeconds
        return engine
    }

    /// The bytes of pushes that may wait or be in flight.
    private var pendingBytesMax: Int {
        self.limits.pendingBytesMax > 0 ? self.limits.pendingBytesMax : MachineMemory.bytes() / 2
    }
}
