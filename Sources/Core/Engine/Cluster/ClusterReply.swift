package import Policy
package import Wire

/// What a shared store answers, or tells unasked.
package enum ClusterReply {
    /// The store is attached under a new number: wakes that were held under another are lost.
    case attached(Attachment)
    /// The store is no longer attached: nothing commits until it is attached again, which it tries by itself.
    ///
    /// - Parameter error: why, with the server and the remedy.
    case detached(StoreError)
    case loaded(TransactionNumber, LoadedDevices)
    /// The commit is durable.
    ///
    /// - Parameter endedElsewhere: the wakes that it ended whose holder is another gateway.
    case committed(TransactionNumber, endedElsewhere: [HeldElsewhere])
    case failed(TransactionNumber, ClusterFailure)
    case counts(TransactionNumber, ClusterCounts)
    /// Every topic there is, by number: after `addTopics`, and when another gateway has made one.
    case topics([String])
    /// Topics that were asked for cannot be made, or be read, for this cause.
    case topicsRefused(StoreError)
    case view(ClusterView)
    case told(ClusterNotice)
    /// What is kept under a name is this: kept by this gateway, or by another one.
    case value(name: String, [UInt8])
    /// A value was not kept, for this cause. It may have been kept if the answer of the database was lost.
    case unkept(name: String, [UInt8], StoreError)
}

/// A wake that another gateway holds.
package struct HeldElsewhere: Hashable, Sendable {
    package let wake: WakeID
    package let holder: GatewayNumber

    package init(wake: WakeID, holder: GatewayNumber) {
        self.wake = wake
        self.holder = holder
    }
}

/// What a gateway begins with under a new number.
package struct Attachment {
    package let number: GatewayNumber
    /// Every topic, by number.
    package let topics: [String]
    /// What all gateways share under names.
    package var values: [String: [UInt8]]
    /// Policy time, and the primary's clock in milliseconds since 1970.
    package let now: Instant
    package let wall: Int64

    package init(number: GatewayNumber, topics: [String], values: [String: [UInt8]], now: Instant, wall: Int64) {
        self.number = number
        self.topics = topics
        self.values = values
        self.now = now
        self.wall = wall
    }
}

/// Why a transaction has changed nothing.
package enum ClusterFailure: Error {
    /// Somebody else was faster, or two waited for one another: the same again, from its beginning, may succeed.
    case conflict
    /// Another session holds a lock of a row, or of a table, and did not release it for a moment.
    ///
    /// - Parameter holder: the session with the lock of a table, if it is known.
    case locked(LockHolder?)
    /// The database does not take it: its answer is a refusal. What is tried again later may succeed.
    case refused(StoreError)
}

/// A session of the database that holds a lock. Its identity is its process and its application: it may begin one query
/// after the other.
package struct LockHolder: Hashable, Sendable {
    package let pid: Int32
    package let application: String
    /// The start of its last query, in milliseconds since 1970; nil if the role may not see it.
    package let queryStart: Int64?

    package init(pid: Int32, application: String, queryStart: Int64?) {
        self.pid = pid
        self.application = application
        self.queryStart = queryStart
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.pid == right.pid && left.application == right.application
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.pid)
        hasher.combine(self.application)
    }
}

/// A named device that a load left out because another session has locked its row.
package struct PassedOverDevice {
    package let token: DeviceToken
    /// The wake that named the device; nil if its token did.
    package let wake: WakeID?
    /// The session with the lock, if it is known.
    package let holder: LockHolder?

    package init(token: DeviceToken, wake: WakeID?, holder: LockHolder?) {
        self.token = token
        self.wake = wake
        self.holder = holder
    }
}

/// The rows that a transaction has read.
package struct LoadedDevices {
    /// Policy time, which never goes back from one transaction that saw a row to the next.
    package let now: Instant
    /// The primary's clock, in milliseconds since 1970.
    package let wall: Int64
    package var devices: [SharedDevice]
    /// There may be more of what was selected.
    package var hasMore: Bool
    /// The last device of the slice that a question looked at, if fewer rows were found in it than were asked for and
    /// there are others behind it. It may be of any topic.
    package var sliceEnd: DeviceToken?
    /// Of a selection of wakes of a gateway: those of its wakes in flight that these devices have. A device may have
    /// wakes of other gateways besides.
    package var heldWakes: [WakeID]
    /// The named devices that others have locked, of a plan that passes over them; one entry for each token and wake.
    package var passedOver: [PassedOverDevice]
    /// False while a gateway may be attached that cannot read memory pressure in the records of devices.
    package var keepsMemoryPressure = true

    package init(
        now: Instant,
        wall: Int64,
        devices: [SharedDevice],
        hasMore: Bool,
        heldWakes: [WakeID] = [],
        passedOver: [PassedOverDevice] = []
    ) {
        self.now = now
        self.wall = wall
        self.devices = devices
        self.hasMore = hasMore
        self.heldWakes = heldWakes
        self.passedOver = passedOver
    }
}

/// What is counted.
package struct ClusterCounts {
    package let total: Books
    package let byTopic: [TopicIndex: Books]
    /// Refused pushes as `Rejections` keeps them, the total under `RecordKey.everyTopic`, one for each gateway that
    /// counted some.
    package let rejections: [(topic: UInt32, content: [UInt8])]

    package init(total: Books, byTopic: [TopicIndex: Books], rejections: [(topic: UInt32, content: [UInt8])]) {
        self.total = total
        self.byTopic = byTopic
        self.rejections = rejections
    }
}

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

    /// The most offers of one report.
    package static let offersMax = 256

    /// What operators know it by: host and port of its edge.
    package var name: String
    package var version: String
    /// Of each topic that has streams here.
    package var workers: [Workers] = []
    /// The kinds of these streams by what they take, at most `offersMax`; none from a gateway of an earlier version.
    package var offers: [StreamOffer] = []
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
