/// What clients know of policy time, by how long it says that a device has been registered: its age.
///
/// Policy time goes on with the uptime, however the wall clock is set, and from one boot to the next never goes back
/// behind what was durable when a push was answered.
struct RoomPolicyTime {
    /// A device whose registration is durable, and is never renewed; nil before there is one.
    private(set) var device: Int?
    /// The age that was told last, and the uptime then, of the same boot; nil when none was told since the boot.
    private var told: (age: Int64, uptime: Int64)?
    /// The least age that is durable with what was answered.
    private var durableAge: Int64 = 0
    /// The pushes of this life: their devices, and the uptime when they were sent.
    private var pushes: [Int: (device: Int, sentAt: Int64)] = [:]

    mutating func sent(_ push: Int, to device: Int, at uptime: Int64) { self.pushes[push] = (device, uptime) }

    /// A push was answered 200: what was durable then stood at the moment of its step, or later.
    mutating func accepted(_ push: Int) {
        guard let (device, sentAt) = self.pushes.removeValue(forKey: push) else { return }
        if self.device == nil { self.device = device }
        guard let told = self.told else { return }
        self.durableAge = max(self.durableAge, told.age + (sentAt - told.uptime))
    }

    /// The gateway is another one.
    ///
    /// - Parameter isSameBoot: whether it can know that the machine did not start anew.
    mutating func restarted(isSameBoot: Bool) {
        self.pushes = [:]
        if !isSameBoot { self.told = nil }
    }

    /// The age is told at `uptime`.
    ///
    /// - Parameter isStart: a start has made durable that it is so late, and no time has passed since.
    /// - Returns: what is wrong with it.
    mutating func tell(_ age: Int64, at uptime: Int64, isStart: Bool) -> String? {
        defer { self.told = (age, uptime) }
        if let told = self.told, age - told.age != uptime - told.uptime {
            return "policy time went on by \(age - told.age) ms in \(uptime - told.uptime) ms of one boot"
        }
        if age < self.durableAge {
            return "policy time went back \(self.durableAge - age) ms behind what was durable"
        }
        if isStart { self.durableAge = age }
        return nil
    }
}
