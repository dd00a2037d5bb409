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

/// One thing that happened, for those who follow what happens: with names, where the history has numbers.
package struct WatchedEvent: Sendable {
    package enum Kind: Hashable, Sendable {
        /// Something that the history keeps, too.
        case kept(HistoryEvent.Kind)
        /// A push was refused, for the reason of this number.
        case refused(reason: Int)
        /// A topic launches nothing by itself from now on.
        case paused
        case resumed
    }

    /// In milliseconds since 1970.
    package let at: Int64
    package let kind: Kind
    /// Empty when none was named.
    package let topic: String
    /// nil of what happens to no device.
    package let device: DeviceToken?
    package let apnsID: APNsID?
    /// The other push of a coalescing.
    package let related: APNsID?
    package let wake: WakeID?
    /// The identifier of a task, or the name of a session.
    package let name: String?

    package init(
        at: Int64,
        kind: Kind,
        topic: String,
        device: DeviceToken? = nil,
        apnsID: APNsID? = nil,
        related: APNsID? = nil,
        wake: WakeID? = nil,
        name: String? = nil
    ) {
        self.at = at
        self.kind = kind
        self.topic = topic
        self.device = device
        self.apnsID = apnsID
        self.related = related
        self.wake = wake
        self.name = name
    }
}

/// Events for those who follow them, in their order, and how many there was no room for behind these.
package struct WatchedEvents: Sendable {
    /// The most that wait for the end of a commit, some 2 MB.
    private static let countMax = 8192

    package private(set) var events: [WatchedEvent] = []
    package private(set) var missed = 0

    package init() {}

    package var isEmpty: Bool { self.events.isEmpty && self.missed == 0 }

    /// Takes an event, or counts it where there is no room.
    package mutating func append(_ event: WatchedEvent) {
        if self.missed == 0, self.events.count < Self.countMax {
            self.events.append(event)
        } else {
            self.missed += 1
        }
    }

    /// Takes over everything of others, which are empty afterwards.
    package mutating func append(_ others: inout WatchedEvents) {
        if self.isEmpty {
            swap(&self, &others)
        } else {
            for event in others.events { self.append(event) }
            self.missed += others.missed
        }
        others.removeAll()
    }

    package mutating func removeAll() {
        // Nobody may come to follow events for months.
        self.events = []
        self.missed = 0
    }
}

extension EmbeddedEngine {
    /// Somebody follows what happens, or nobody does.
    ///
    /// - `offset`: wall clock minus policy time; nil when nobody follows.
    /// - `now`: the present, which a step of a shared store does not go on to by itself.
    package func watch(_ offset: WallOffset?, at now: Instant) {
        self.watchOffset = offset
        self.watchedAt = now
    }

    /// Hands over what happened since the last call, for those who follow it.
    package func takeWatched(into events: inout WatchedEvents) {
        if !self.watched.isEmpty { events.append(&self.watched) }
    }

    /// A push was refused, which somebody may follow.
    package func noteRefused(_ token: DeviceToken, _ apnsID: APNsID, topic: ByteView, reason: Int) {
        guard let offset = self.watchOffset else { return }
        self.watched.append(
            WatchedEvent(
                at: offset.wall(max(self.now, self.watchedAt)),
                kind: .refused(reason: reason),
                topic: topic.string,
                device: token,
                apnsID: apnsID
            )
        )
    }

    /// A topic was paused, or launches by itself again, which somebody may follow.
    package func notePaused(_ topic: TopicIndex, _ isPaused: Bool) {
        guard let offset = self.watchOffset else { return }
        let kind: WatchedEvent.Kind = isPaused ? .paused : .resumed
        // In a shared store the present of the engine is that of its last transaction.
        let moment = offset.wall(max(self.now, self.watchedAt))
        self.watched.append(WatchedEvent(at: moment, kind: kind, topic: self.topics.name(topic)))
    }

    /// Something happened that the history keeps, and somebody follows it.
    func watch(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        wake: WakeID? = nil,
        name: String? = nil,
        _ offset: WallOffset
    ) {
        let record = self.devices[device]
        self.watched.append(
            WatchedEvent(
                at: offset.wall(self.now),
                kind: .kept(kind),
                topic: self.topics.name(record.topic),
                device: record.token.token,
                apnsID: apnsID,
                related: related,
                wake: wake,
                name: name
            )
        )
    }
}
