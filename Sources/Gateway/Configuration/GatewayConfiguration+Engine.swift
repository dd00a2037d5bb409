package import DeviceEngine

extension GatewayConfiguration {
    /// What of it concerns the engine.
    package var engine: EngineConfiguration {
        var engine = EngineConfiguration()
        engine.policy = self.policy
        engine.topicPolicies = self.topicPolicies
        engine.openRegistration = self.registration == .open
        engine.devicesMax = self.limits.devicesMax
        engine.topicsMax = self.limits.topicsMax
        engine.pushRate.pushesMax = self.limits.pushesPerDeviceMax
        engine.pushRate.seconds = self.limits.pushesPerDeviceSeconds
        return engine
    }
}
