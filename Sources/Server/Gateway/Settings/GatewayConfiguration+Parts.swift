package import Engine
package import HTTPTransport
import Platform
package import Wire

extension GatewayConfiguration {
    /// What of it concerns the engine.
    package var engine: EngineConfiguration {
        var engine = EngineConfiguration()
        engine.policy = self.policy
        engine.topicPolicies = self.topicPolicies
        engine.permittedTasks = self.permittedTasks
        engine.openRegistration = self.registration == .open
        engine.devicesMax = self.limits.devicesMax
        engine.devicesPerTopicMax = self.limits.devicesPerTopicMax
        engine.topicsMax = self.limits.topicsMax
        engine.streamsPerDeviceMax = self.limits.streamsPerDeviceMax
        engine.pendingBytesMax = self.pendingBytesMax
        engine.pendingBytesPerTopicMax = self.pendingBytesMax * self.limits.pendingTopicPercentMax / 100
        engine.taskRequestsMax = self.limits.taskRequestsMax
        engine.taskRequestsPerTopicMax = self.taskShare(of: engine.taskRequestsMax)
        engine.taskBytesMax = self.taskBytesMax
        engine.taskBytesPerTopicMax = self.taskShare(of: engine.taskBytesMax)
        engine.pushRate.pushesMax = self.limits.pushesPerDeviceMax
        engine.pushRate.seconds = self.limits.pushesPerDeviceSeconds
        return engine
    }

    /// The bytes of pushes that may wait or be in flight.
    private var pendingBytesMax: Int {
        self.limits.pendingBytesMax > 0 ? self.limits.pendingBytesMax : MachineMemory.bytes() / 2
    }

    /// The bytes of background tasks and sessions that may wait or run.
    private var taskBytesMax: Int {
        self.limits.taskBytesMax > 0 ? self.limits.taskBytesMax : MachineMemory.bytes() / 8
    }

    /// What one topic may have of `bound`; never nothing.
    private func taskShare(of bound: Int) -> Int { max(1, bound * self.limits.taskTopicPercentMax / 100) }
}

extension GatewayConfiguration {
    /// The files of the authorities that client certificates are signed by; nil when nobody is asked for one.
    package var clientTrustFiles: ClientTrustFiles? {
        self.clientCAFile.map { ClientTrustFiles(authorities: $0, revocations: self.clientCRLFile) }
    }

    /// What checks the tokens of workers and operators, which has read nothing yet.
    ///
    /// - Parameter onTrouble: hears, once, why tokens cannot be checked.
    package func tokenCheck(onTrouble: @escaping @Sendable (String) -> Void) -> TokenCheck {
        TokenCheck(
            folder: self.stateFolder,
            asksAnybody: self.asksForTokens,
            asksForCertificates: self.clientCAFile != nil,
            isReachable: !(self.edge.addresses + self.plain.addresses).allSatisfy { ListenSetting.isLocal($0) },
            mayWorkersGoUnasked: self.mayWorkersGoUnasked,
            onTrouble: onTrouble
        )
    }
}

extension GatewayConfiguration {
    /// The operator's choices about the checks of pushes.
    package var pushRules: PushRules {
        // `wakegate dev` alone takes fault rules.
        PushRules(
            strictBackgroundPriority: self.strictBackgroundPriority,
            isForDevelopment: self.faultRules != nil
        )
    }
}

/// What each loop goes on with after a reload, and begins with.
///
/// A class, so that a mailbox without one hands over no more than nothing.
package final class LoopSettings: Sendable {
    package let rules: PushRules
    package let transport: TransportLimits
    package let requestsAtEngineMax: Int

    package init(_ configuration: GatewayConfiguration) {
        self.rules = configuration.pushRules
        self.transport = configuration.limits.transport
        self.requestsAtEngineMax = configuration.limits.requestsAtEngineMax
    }
}
