/// The conditions of a device have changed: see ``WakeWorker/conditionsChanges``.
public struct DeviceConditionsChange: Hashable, Sendable {
    /// The device, in hexadecimal digits.
    public let deviceToken: String
    /// All of its conditions.
    public let conditions: DeviceConditions

    init(_ deviceToken: String, _ conditions: DeviceConditions) {
        self.deviceToken = deviceToken
        self.conditions = conditions
    }
}
