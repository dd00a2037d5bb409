package import Policy
package import Wire

/// What happened to devices and was not yet taken for the history, which knows each by a number.
package struct EventQueue: ~Copyable {
    /// Makes the numbers of devices, by which they are found, too.
    package let key: HashKey
    /// The device that was found or had an event last, and its number: what is asked of one device is asked several
    /// times in a row.
    private var lastNumbered: (device: DeviceIndex, number: UInt64) = (.none, 0)
    private var events: [HistoryEvent] = []

    /// No events.
    ///
    /// - `key`: the key of the history that they go to.
    package init(key: HashKey) {
        self.key = key
    }

    /// Something happened since `take` was last called.
    package var isEmpty: Bool { self.events.isEmpty }

    /// A device was found, and by this number.
    package mutating func found(_ device: DeviceIndex, number: UInt64) { self.lastNumbered = (device, number) }

    /// Something happened to a device.
    package mutating func append(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        terms: PushTerms? = nil,
        at now: Instant,
        in devices: borrowing DeviceTable
    ) {
        let number = self.number(device, devices)
        self.events.append(
            HistoryEvent(device: number, at: now, kind: kind, apnsID: apnsID, related: related, terms: terms)
        )
    }

    /// Something happened to a task or a session of a device.
    ///
    /// - `name`: the identifier, or the session's name, of 1...255 bytes; one of another length is not kept.
    package mutating func append(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        name: String,
        at now: Instant,
        in devices: borrowing DeviceTable
    ) {
        let number = self.number(device, devices)
        NameParts.append(name, device: number, at: now, to: &self.events)
        self.events.append(HistoryEvent(device: number, at: now, kind: kind))
    }

    private mutating func number(_ device: DeviceIndex, _ devices: borrowing DeviceTable) -> UInt64 {
        if self.lastNumbered.device != device {
            self.lastNumbered = (device, HistoryEvent.device(of: devices[device].token.token, self.key))
        }
        return self.lastNumbered.number
    }

    /// Devices have other places from here on.
    package mutating func forgetDevices() { self.lastNumbered = (.none, 0) }

    /// Appends to `events` what happened since the last call, in its order.
    package mutating func take(into events: inout [HistoryEvent]) {
        if events.isEmpty { swap(&events, &self.events) } else { events += self.events }
        self.events.removeAll(keepingCapacity: true)
    }
}
