package import Policy
package import Wire

/// A reply of a shared store to a request, or a notification that it sends on its own.
package enum ClusterReply {
    /// The store is attached under a new number. Wakes launched under an earlier number are lost.
    case attached(Attachment)
    /// The store is detached, and tries to attach again. Until then, nothing commits. The error has the cause, with the
    /// server and the remedy.
    case detached(StoreError)
    case loaded(TransactionNumber, LoadedDevices)
    /// The commit is durable.
    ///
    /// - `endedElsewhere`: the wakes that this commit ended and that another gateway had launched.
    case committed(TransactionNumber, endedElsewhere: [HeldElsewhere])
    case failed(TransactionNumber, ClusterFailure)
    case counts(TransactionNumber, ClusterCounts)
    /// Every topic, by number. Sent after `addTopics`, and when another gateway has added a topic.
    case topics([String])
    /// The requested topics cannot be added or read.
    case topicsRefused(StoreError)
    case view(ClusterView)
    case notified(ClusterNotice)
    /// The stored value under a name, written by this gateway or by another.
    case value(name: String, [UInt8])
    /// A value was probably not stored: the database refused it, or its answer was lost.
    case valueNotStored(name: String, [UInt8], StoreError)
}

/// A wake and the gateway that launched it, if that is another gateway.
package typealias HeldElsewhere = (wake: WakeID, holder: GatewayNumber)

/// The state with which a gateway starts under a new number.
package struct Attachment {
    package let number: GatewayNumber
    /// Every topic, by number.
    package var topics: [String]
    /// The values that all gateways share, by name.
    package var values: [String: [UInt8]]
    /// Policy time, and the clock of the primary database server in milliseconds since 1970.
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

/// The reason why a transaction changed nothing.
package enum ClusterFailure: Error {
    /// Another transaction came first, or two transactions deadlocked. A retry from the beginning may succeed.
    case conflict
    /// Another session holds the lock of a row or of a table and did not release it in time. The holder is the session
    /// that holds a table's lock, if it is known.
    case locked(LockHolder?)
    /// The database refused the transaction. A later retry may succeed.
    case refused(StoreError)
}

/// A session of the database that holds a lock. Equality ignores the query, because a session may start another query.
package struct LockHolder: Hashable, Sendable {
    package let pid: Int32
    package let application: String
    /// The start of the session's last query, in milliseconds since 1970; nil if the gateway's database role may not
    /// read it.
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

/// A requested device that a load skipped because another session has locked its row, the wake by which it was
/// requested unless it was requested by token, and the session that holds the lock if it is known.
package typealias PassedOverDevice = (token: DeviceToken, wake: WakeID?, holder: LockHolder?)

/// The rows that a transaction has read.
package struct LoadedDevices {
    /// Policy time. It never goes back between two transactions that saw the same row.
    package var now: Instant
    /// The primary's clock, in milliseconds since 1970.
    package var wall: Int64
    package var devices: [SharedDevice]
    /// True if the selection may have more rows.
    package var hasMore: Bool
    /// The last examined device, of any topic, if the read examined the maximum number of devices before it found
    /// enough rows. A further read continues after this device.
    package var sliceEnd: DeviceToken?
    /// For a selection of a gateway's wakes: the wakes in flight on these devices that this gateway launched. If the
    /// plan finds lost wakes: those that dead gateways launched. A device may also have wakes of other gateways.
    package var heldWakes: [WakeID]
    /// The requested devices that other sessions have locked, if the plan skips them; one entry for each token and
    /// wake.
    package var passedOver: [PassedOverDevice]

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

/// The counters of the cluster.
package struct ClusterCounts {
    package let total: ActivityCounters
    package let byTopic: [TopicIndex: ActivityCounters]
    /// Rejected pushes as encoded by `Rejections`, one entry per topic and gateway that counted any. The total has the
    /// topic `RecordKey.everyTopic`.
    package let rejections: [(topic: UInt32, content: [UInt8])]

    package init(
        total: ActivityCounters,
        byTopic: [TopicIndex: ActivityCounters],
        rejections: [(topic: UInt32, content: [UInt8])]
    ) {
        self.total = total
        self.byTopic = byTopic
        self.rejections = rejections
    }
}

/// The state of a gateway, reported once per second.
package struct GatewayReport: Sendable {
    /// The streams of one topic's workers.
    package struct Workers: Hashable, Sendable {
        package let topic: TopicIndex
        package let counts: Dispatcher.WorkerCounts
        /// True if at least one of the streams receives conditions.
        package let receivesConditions: Bool

        package init(_ topic: TopicIndex, _ counts: Dispatcher.WorkerCounts, receivesConditions: Bool) {
            self.topic = topic
            self.counts = counts
            self.receivesConditions = receivesConditions
        }
    }

    /// The maximum number of offers in one report.
    package static let offersMax = 256

    /// The gateway's name for operators: host and port of its edge.
    package var name: String
    package var version: String
    /// One entry per topic that has streams on this gateway.
    package var workers: [Workers] = []
    /// The distinct offers of the gateway's streams, at most `offersMax`.
    package var offers: [StreamOffer] = []
    /// The durations of wakes on the gateway's streams.
    package var durations: [WakeDurationRow] = []
    /// The number of wakes in flight on the gateway's streams.
    package var wakes = 0
    /// Digests of the settings that must be equal on all gateways, by key.
    package var digests: [String: UInt64] = [:]
    package var isDraining = false

    package init(name: String, version: String) {
        self.name = name
        self.version = version
    }
}

/// The state of the cluster as of the last second.
package struct ClusterView: Sendable {
    /// A live gateway.
    package struct Member: Sendable {
        package let number: GatewayNumber
        /// The times of its attachment and of its last report, by the primary's clock in milliseconds since 1970.
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
    /// All live gateways, this one included, by number.
    package let members: [Member]
    /// Dead gateways that may still have wakes.
    package let dead: [GatewayNumber]
    /// The topics with a launch that waits for a slot, each with the start of its longest wait.
    package let ready: [(topic: TopicIndex, since: Instant)]
    /// The earliest due time of any device.
    package let nextDue: Instant?
    /// The number of devices of all topics, including removed devices.
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

/// Hints that gateways send each other. A lost notice only delays work.
package enum ClusterNotice: Hashable, Sendable {
    /// A launch of the topic waits for a slot.
    case ready(TopicIndex)
    /// A wake that `holder` launched has ended, so its stream has a free slot.
    ///
    /// - `reason`: the cause of an expiration; nil if the wake ended otherwise.
    case ended(holder: GatewayNumber, WakeID, reason: ExpirationReason?)
    /// A result arrived for a wake that had already ended. Therefore, its stream, on any gateway, counts as responsive.
    case answeredLate(WakeID)
    /// The conditions of a device have changed.
    case conditions(DeviceToken, TopicIndex)
}
