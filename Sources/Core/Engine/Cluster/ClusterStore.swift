package import Wire

/// A database of device rows, with its indexes, that several gateways read and write at the same time.
///
/// A transaction locks and reads the rows of the devices that it names, and writes them back. No other transaction can
/// lock or write them in between. One thread submits requests without blocking, and calls `takeReplies` when the store
/// signals it. A commit is atomic, and durable when its reply arrives: the data is on stable storage on as many
/// machines as the database is configured to use.
///
/// An attached store has a number that no earlier run of any gateway had. While a store is detached, transactions fail.
/// When other gateways have declared a number dead, nothing commits under this number.
package protocol ClusterStore: AnyObject {
    /// The maximum number of open transactions.
    var transactionsMax: Int { get }

    /// Submits a request. Never blocks.
    func submit(_ request: ClusterRequest)

    /// Appends the replies since the last call, in order of arrival.
    func takeReplies(into replies: inout [ClusterReply])

    /// Waits until a reply arrives, at most the given time in milliseconds.
    func waitForReplies(milliseconds: Int64)

    /// Releases the gateway's number if no transaction is open, and waits until every connection is closed.
    func stop()
}

/// The number of an open transaction. The engine counts them from 1.
package struct TransactionNumber: Hashable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// The number of one run of one gateway, counted from 1 and never reused.
package struct GatewayNumber: Hashable, Comparable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A request of an engine to its shared store.
package enum ClusterRequest {
    /// Begins a transaction: locks and reads rows. The reply is `loaded` or `failed`.
    case load(TransactionNumber, LoadPlan)
    /// Writes, commits and ends the transaction. The reply is `committed` or `failed`.
    case commit(TransactionNumber, ClusterWrites)
    /// Ends a transaction without writing anything. No reply follows.
    case abandon(TransactionNumber)
    /// Reads the last committed version of rows without taking or awaiting row locks. There is nothing to commit or
    /// abandon. The reply is `loaded` or `failed`.
    case read(TransactionNumber, ReadPlan)
    /// Reads the counters in one snapshot. The reply is `counts`, or `failed` with this number.
    ///
    /// - `topics`: the topics to read in addition to the totals; nil for every topic.
    case count(TransactionNumber, topics: [TopicIndex]?)
    /// Adds the topics with these names that do not exist yet. The reply is `topics` or `topicsRefused`; none while the
    /// store is detached.
    case addTopics([String])
    /// Reports this gateway's state, once per second. The reply is `view`; none while the store is detached.
    case report(GatewayReport)
    /// Sends notices to other gateways. No reply follows. Notices may be lost, so correctness must not depend on them.
    case sendNotices([ClusterNotice])
    /// Stores a value under a name that all gateways share. The reply is `value` when the value is durable, or
    /// `unkept`; none while the store is detached.
    case storeValue(name: String, [UInt8])
    /// Adds the counters of a dead gateway without wakes to the sum for all dead gateways. No reply follows.
    case retire(GatewayNumber)
}

/// The rows that a transaction locks and reads.
package struct LoadPlan {
    /// Rows that are found without a device's token.
    package enum Selection {
        case none
        /// Devices whose due time has passed, the earliest first. Rows locked by other sessions are skipped.
        case due(countMax: Int)
        /// Devices with a lane that waits for a slot. Rows locked by other sessions are skipped.
        case ready(ReadyPlan)
        /// Devices with wakes in flight that one gateway launched. Rows locked by other sessions are skipped.
        case wakes(of: GatewayNumber, countMax: Int)
    }

    /// Devices by token, each once. The answer leaves out unknown tokens.
    package var tokens: [DeviceToken]
    /// The devices of these wakes are loaded, too. A wake must be in flight or have ended in the last 10 minutes.
    package var wakes: [WakeID] = []
    package var selection: Selection
    /// True to skip requested devices that other sessions have locked, and list them in `LoadedDevices.passedOver`. If
    /// false, the load waits briefly for the locks, then fails with `ClusterFailure.locked`.
    package var passesOverLocked = false
    /// True to find the wakes in flight of dead gateways, of the devices requested by token or wake, for
    /// `LoadedDevices.heldWakes`.
    package var findsLostWakes = false

    package init(tokens: [DeviceToken] = [], selection: Selection = .none) {
        self.tokens = tokens
        self.selection = selection
    }
}

/// The rows to read for a query.
package struct ReadPlan {
    /// Rows that are found without a device's token.
    package enum Selection {
        case none
        /// Devices with requests, sessions or habits, after this token in token order, of one topic or of any.
        case withTasks(topic: TopicIndex?, after: DeviceToken?, countMax: Int)
        /// Devices after this token in token order, of these topics or of any.
        case inOrder(topics: [TopicIndex]?, after: DeviceToken?, countMax: Int)
        /// Devices with a pending push, after this token in token order, of these topics or of any.
        case pending(topics: [TopicIndex]?, after: DeviceToken?, countMax: Int)
    }

    /// Devices by token, each once. The answer leaves out unknown tokens.
    package var tokens: [DeviceToken]
    /// The devices of these wakes are read, too. A wake must be in flight or have ended in the last 10 minutes.
    package var wakes: [WakeID]
    package var selection: Selection

    package init(tokens: [DeviceToken] = [], wakes: [WakeID] = [], selection: Selection = .none) {
        self.tokens = tokens
        self.wakes = wakes
        self.selection = selection
    }
}

/// A selection of a topic's lanes that wait for a slot.
package struct ReadyPlan: Sendable {
    package var topic: TopicIndex
    /// The devices to select from; empty for any.
    package var devices: [DeviceToken] = []
    package var takesPushes: Bool
    /// Patterns of identifiers: a full name, or a prefix and `.*`, which stands for one or more characters.
    package var tasks: [String] = []
    /// Patterns of session names.
    package var sessions: [String] = []
    /// The offered resources. Tasks that need further resources are not selected.
    package var resources: [String] = []
    package var countMax: Int

    package init(topic: TopicIndex, takesPushes: Bool, countMax: Int) {
        self.topic = topic
        self.takesPushes = takesPushes
        self.countMax = countMax
    }
}

/// The writes of one transaction.
package struct ClusterWrites {
    package var devices: [SharedDeviceChange] = []
    /// The changes of the counters, by topic. The store updates the totals from them.
    package var counts: [(topic: TopicIndex, added: ActivityCounters)] = []
    /// Rejected pushes of this gateway since its attachment, as encoded by `Rejections`: the changed topics, and
    /// `RecordKey.everyTopic`.
    package var rejections: [(topic: UInt32, content: [UInt8])] = []
    /// Events for the delivery log.
    package var events: [HistoryEvent] = []

    package init() {}

    /// The wakes that are no longer in flight.
    package var endedWakes: [WakeID] {
        var wakes: [WakeID] = []
        for index in self.devices.indices where !self.devices[index].ended.isEmpty {
            wakes += self.devices[index].ended
        }
        return wakes
    }
}
