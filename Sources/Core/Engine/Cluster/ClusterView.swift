package import Policy
package import Wire

/// How a gateway is, as it says each second.
package struct GatewayReport: Sendable {
    /// Streams of workers of one topic.
    package struct Workers: Hashable, Sendable {
        package var topic: TopicIndex
        package var connected: Int
        package var slots: Int
        package var busy: Int
        /// Whether one of them hears of conditions.
        package var hearsConditions: Bool

        package init(topic: TopicIndex, connected: Int, slots: Int, busy: Int, hearsConditions: Bool) {
            self.topic = topic
            self.connected = connected
            self.slots = slots
            self.busy = busy
            self.hearsConditions = hearsConditions
        }
    }

    /// What operators know it by: host and port of its edge.
    package var name: String
    package var version: String
    /// Of each topic that has streams here.
    package var workers: [Workers] = []
    /// Wakes in flight on its streams.
    package var wakes = 0
    /// The digests of what must be equal in all gateways, by the names of the keys.
    package var digests: [String: UInt64] = [:]
    package var isDraining = false

    package init(name: String, version: String) {
        self.name = name
        self.version = version
    }
}

/// What there is besides this gateway, as of the last second.
package struct ClusterView: Sendable {
    /// One gateway that lives.
    package struct Member: Sendable {
        package let number: GatewayNumber
        /// When it was attached and when it last said how it is, by the primary's clock in milliseconds since 1970.
        package let since: Int64
        package let reportedAt: Int64
        package let report: GatewayReport

        package init(number: GatewayNumber, since: Int64, reportedAt: Int64, report: GatewayReport) {
            self.number = number
            self.since = since
            self.reportedAt = reportedAt
            self.report = report
        }
    }

    package let now: Instant
    /// The primary's clock, in milliseconds since 1970.
    package let wall: Int64
    /// All that live, this one included, by number.
    package let members: [Member]
    /// Gateways that are dead and may have wakes still.
    package let dead: [GatewayNumber]
    /// The topics of which something waits for a slot, and since when the longest waits.
    package let ready: [(topic: TopicIndex, since: Instant)]
    /// The earliest moment at which a device has something due.
    package let nextDue: Instant?
    /// How many devices there are, removed ones included, of all topics and of each.
    package let deviceCount: Int

    package init(
        now: Instant,
        wall: Int64,
        members: [Member],
        dead: [GatewayNumber],
        ready: [(topic: TopicIndex, since: Instant)],
        nextDue: Instant?,
        deviceCount: Int
    ) {
        self.now = now
        self.wall = wall
        self.members = members
        self.dead = dead
        self.ready = ready
        self.nextDue = nextDue
        self.deviceCount = deviceCount
    }
}

/// What gateways tell one another; nothing hangs on its arrival but how soon something happens.
package enum ClusterNotice: Hashable, Sendable {
    /// Something of a topic waits for a slot.
    case ready(TopicIndex)
    /// A wake of the gateway named has ended: its stream's slot is free.
    ///
    /// - `reason`: why it expired; nil when it ended otherwise.
    case ended(holder: GatewayNumber, WakeID, reason: ExpirationReason?)
    /// A wake that had ended before was answered late: the stream that had it, at whichever gateway, is awake.
    case answeredLate(WakeID)
    /// Conditions of a device have changed.
    case conditions(DeviceToken, TopicIndex)
}
