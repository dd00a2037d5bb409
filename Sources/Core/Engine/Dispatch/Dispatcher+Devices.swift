package import Policy
package import Wire

/// What is said of devices.
extension Dispatcher {
    /// The engine's answer to a registration.
    package func register(_ token: borrowing DeviceToken, topic: ByteView) -> Admission {
        guard let device = self.engine.find(token) else { return self.engine.register(token, topic: topic) }
        self.catchUp(device)
        let before = self.engine.conditions(of: device)
        let admission = self.engine.register(token, topic: topic)
        self.conditionsMayDiffer(device, before)
        return admission
    }

    package func unregister(_ device: DeviceIndex) {
        self.catchUp(device)
        self.engine.unregister(device)
        self.flow()
    }

    /// - Returns: all the device's conditions now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        self.catchUp(device)
        let before = self.engine.conditions(of: device)
        let conditions = self.engine.conditions(report, device)
        self.conditionsMayDiffer(device, before)
        return conditions
    }

    /// What an operator's wish for a launch came to.
    package enum SimulatedLaunch: Hashable, Sendable {
        case launched, wakeInFlight, noWorker, nothingPending
    }

    /// Launches what is pending, or an empty wake, whatever holds it.
    ///
    /// - `ofPendingAlone`: whether nothing is launched where nothing is pending.
    package func simulateLaunch(_ device: DeviceIndex, ofPendingAlone: Bool = false) -> SimulatedLaunch {
        self.catchUp(device)
        guard !ofPendingAlone || self.engine.pendingPush(device) != nil else {
            self.flow()
            return .nothingPending
        }
        let identity = self.engine.identity(device)
        guard !self.engine.isShortLaneFull(device) else { return .wakeInFlight }
        self.takeExpiredWakes()
        guard let stream = self.freeStreamForced(identity.topic, identity.token) else {
            self.flow()
            return .noWorker
        }
        defer { self.flow() }
        switch self.engine.launchForced(device) {
        case .launched(let wake):
            return self.launched(wake, for: stream) ? .launched : .noWorker
        case .wakeInFlight: return .wakeInFlight
        }
    }

    /// Ends the wake in flight of the short lane as expired, whatever it was launched for.
    ///
    /// - Returns: false when none is in flight.
    package func simulateExpiration(_ device: DeviceIndex) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        guard let wake = self.engine.expireForced(device) else { return false }
        self.wakeExpired(wake, .operator)
        return true
    }
}
