import LaunchPolicy

extension EmbeddedEngine {
    /// Goes on with another configuration, at once for whatever happens from now on.
    ///
    /// The moments at which waiting devices launch follow in the next calls of `advance`, a bounded number of devices
    /// in each; a device that is launched, asked about or pushed to before is looked at then. Wakes in flight keep
    /// their deadlines. What is past a bound that has become tighter stays.
    package func reconfigure(_ configuration: EngineConfiguration) {
        self.configuration = configuration
        for topic in self.topics.indices {
            let parameters = configuration.topicPolicies[self.topics[topic].name] ?? configuration.policy
            guard parameters != self.topics[topic].parameters else { continue }
            self.topics[topic].parameters = parameters
            self.firstUnjudged = 0
        }
    }

    /// Looks at devices that wait under a policy that has changed.
    ///
    /// - Returns: whether all were looked at.
    func judge(devicesMax: Int) -> Bool {
        guard let first = self.firstUnjudged else { return true }
        let end = min(first + devicesMax, self.devices.count)
        for number in first..<max(first, end) {
            let device = DeviceIndex(rawValue: UInt32(number))
            if self.devices[device].state.pending != nil { self.derive(device) }
        }
        self.firstUnjudged = end < self.devices.count ? end : nil
        return self.firstUnjudged == nil
    }
}
