package import Policy
package import Wire

/// A wake that ended, remembered for workers that answer late or twice.
package struct EndedWake: Hashable, Sendable {
    package let id: WakeID
    package let outcome: LaunchOutcome
    package let at: Instant

    package init(id: WakeID, outcome: LaunchOutcome, at moment: Instant) {
        self.id = id
        self.outcome = outcome
        self.at = moment
    }
}

/// A wake that ended without its worker's doing.
package struct ExpiredWake: Hashable, Sendable {
    package let id: WakeID
    package let reason: ExpirationReason

    package init(id: WakeID, reason: ExpirationReason) {
        self.id = id
        self.reason = reason
    }
}

/// Whose wake is whose: those in flight, those that ended and are remembered, and those that expired and whose slot was
/// not yet taken back.
///
/// What is remembered of a wake that ended is in its device's row: the last four of each device, for ten minutes.
package struct WakeLedger: ~Copyable {
    /// How long ended wakes are remembered, in milliseconds.
    static let endedWakeMemory: Int64 = 600_000

    private var devices = WakeTable<DeviceIndex>()
    /// When each device's oldest ended wake is forgotten: a place for each device, however many wakes it ends.
    private var forgetting = DueIndex()
    private var expired = FIFOQueue<ExpiredWake>()

    /// No wakes.
    package init() {}

    /// The device of a wake in flight, or of one that has ended and is remembered.
    package func device(of wake: WakeID) -> DeviceIndex? { self.devices[wake] }

    /// How many wakes are known by their ids, in flight or ended, and how many devices have ended ones.
    package var known: (ids: Int, devicesWithEnded: Int) { (self.devices.count, self.forgetting.count) }

    /// A wake of this device is in flight.
    package mutating func launched(_ wake: WakeID, _ device: DeviceIndex) { self.devices[wake] = device }

    /// Remembers a wake of this device that has ended; the device's oldest makes room for its newest.
    package mutating func ended(_ wake: EndedWake, _ device: DeviceIndex, in devices: inout DeviceTable) {
        let forgotten = devices[device].ended(wake)
        if let forgotten { self.devices[forgotten.id] = nil }
        self.noteWhenForgotten(device, in: devices)
    }

    /// Forgets the wakes that ended long enough before `now`, of so many devices at most.
    ///
    /// - Returns: whether all of them are forgotten.
    package mutating func forget(at now: Instant, devicesMax: Int, in devices: inout DeviceTable) -> Bool {
        let horizon = now - Self.endedWakeMemory
        for _ in 0..<devicesMax {
            guard let device = self.forgetting.popDue(now) else { return true }
            while let forgotten = devices[device].forgetEndedWake(endedBy: horizon) {
                self.devices[forgotten.id] = nil
            }
            self.noteWhenForgotten(device, in: devices)
        }
        return self.forgetting.first.map { $0 > now } ?? true
    }

    /// A wake ended without its worker's doing: its slot is to be taken back.
    package mutating func expired(_ wake: WakeID, _ reason: ExpirationReason) {
        self.expired.append(ExpiredWake(id: wake, reason: reason))
    }

    /// Whether a wake ended so that was not taken yet.
    package var hasExpired: Bool { !self.expired.isEmpty }

    /// Takes one wake that ended so, the first first.
    package mutating func popExpired() -> ExpiredWake? { self.expired.popFirst() }

    /// Knows the wakes of a device whose row a store gave back.
    ///
    /// - `inFlight`: its wakes in flight.
    /// - Returns: false when one of them is known as another's; it must be no other's.
    package mutating func restore(
        _ device: DeviceIndex,
        inFlight: [WakeID],
        in devices: borrowing DeviceTable
    ) -> Bool {
        let ended = devices[device].endedWakes?.elements.map(\.id) ?? []
        for wake in ended + inFlight {
            guard self.devices[wake] == nil else { return false }
            self.devices[wake] = device
        }
        self.noteWhenForgotten(device, in: devices)
        return true
    }

    /// Forgets the wakes of a device, which is forgotten itself; `removeAll` forgets the rest.
    ///
    /// - `inFlight`: its wakes in flight.
    mutating func remove(_ device: borrowing DeviceRecord, inFlight: [WakeID]) {
        for wake in inFlight { self.devices[wake] = nil }
        guard let ended = device.endedWakes else { return }
        for wake in ended.elements { self.devices[wake.id] = nil }
    }

    /// Forgets when ended wakes are forgotten, and which ones expired; the devices of all wakes are forgotten before.
    mutating func removeAll() {
        precondition(self.devices.count == 0, "every wake was one of a device")
        self.forgetting.removeAll()
        self.expired.removeAll()
    }

    private mutating func noteWhenForgotten(_ device: DeviceIndex, in devices: borrowing DeviceTable) {
        let oldest = devices[device].endedWakes?.first
        self.forgetting.set(device, to: oldest.map { $0.at + Self.endedWakeMemory })
    }
}
