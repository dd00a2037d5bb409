package import Wire

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
