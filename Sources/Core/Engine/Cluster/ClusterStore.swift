package import Wire

/// What many gateways share: rows of devices, and what finds them, in a database that many processes write at once.
///
/// A transaction locks and reads the rows of the devices it names, and writes them back; nobody else reads or writes
/// them in between. Requests are taken from one thread, which never waits for them: each has its replies, which are
/// fetched with `takeReplies` after the store has rung. Every commit is a commit of the whole: what its reply lets out
/// is on stable storage on as many machines as the database is told to keep it on.
///
/// A store is attached to the database under a number that no other run of a gateway ever had, or it is not attached:
/// then transactions fail. A gateway whose number others have found dead commits nothing any more under it.
package protocol ClusterStore: AnyObject {
    /// How many transactions may be open at a time.
    var transactionsMax: Int { get }

    /// Takes a request; never waits.
    func submit(_ request: ClusterRequest)

    /// Appends what has come since the last call, in its order.
    func takeReplies(into replies: inout [ClusterReply])

    /// Lets go of the gateway's number, if nothing is open, and ends every connection; waits for that.
    func stop()
}

/// Names an open transaction; the engine counts them from 1.
package struct TransactionNumber: Hashable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// The number of one run of one gateway: from 1, each once.
package struct GatewayNumber: Hashable, Comparable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// What an engine asks of the store that it shares with others.
package enum ClusterRequest {
    /// Begins a transaction: locks and reads rows. Answered by `loaded` or `failed`.
    case load(TransactionNumber, LoadPlan)
    /// Writes, and commits. Answered by `committed` or `failed`; the transaction is over.
    case commit(TransactionNumber, ClusterWrites)
    /// Ends a transaction, of which nothing is written. Not answered.
    case abandon(TransactionNumber)
    /// Reads the last committed version of rows. It takes no lock and waits for no lock of a row, and there is nothing
    /// to commit or abandon. Answered by `loaded` or `failed`.
    case read(TransactionNumber, ReadPlan)
    /// Reads what is counted, in one snapshot. Answered by `counts`, or `failed` with this number.
    ///
    /// - `topics`: the topics that are asked about besides all together; nil for every topic.
    case count(TransactionNumber, topics: [TopicIndex]?)
    /// Makes topics of these names, each where there is none. Answered by `topics` or `topicsRefused`, unless the store
    /// is not attached.
    case addTopics([String])
    /// Says how this gateway is; to be said each second. Answered by `view`, unless it is not attached.
    case report(GatewayReport)
    /// Tells other gateways something. Not answered: what is told may be lost, and nothing may hang on it.
    case tell([ClusterNotice])
    /// Keeps something that all gateways share under a name. Answered by `value` when it is durable or by `unkept`,
    /// unless the store is not attached.
    case keep(name: String, [UInt8])
    /// A dead gateway has no wakes left: adds what it counted to what dead ones counted. Not answered.
    case bury(GatewayNumber)
}

/// The rows that a transaction locks and reads.
package struct LoadPlan {
    /// Rows that are found by something else than a device.
    package enum Selection {
        case none
        /// Devices that have something due by now, the first first; those that others have locked are passed over.
        case due(countMax: Int)
        /// Devices of which a lane waits for a slot; those that others have locked are passed over.
        case ready(ReadyPlan)
        /// Devices with wakes that this gateway holds, or held; those that others have locked are passed over.
        case wakes(of: GatewayNumber, countMax: Int)
    }

    /// Devices by their tokens, each once; those that there are not are left out of the answer.
    package var tokens: [DeviceToken] = []
    /// The devices of wakes that are in flight, or have ended in the last ten minutes.
    package var wakes: [WakeID] = []
    package var selection = Selection.none
    /// True if the named devices that others have locked are left out and listed in `LoadedDevices.passedOver`. The
    /// load otherwise waits for them for a moment, and fails with `ClusterFailure.locked`.
    package var passesOverLocked = false

    package init() {}
}

/// The rows that are read for a question.
package struct ReadPlan {
    /// Rows that are found by something else than a device.
    package enum Selection {
        case none
        /// Devices that have requests, sessions or habits, behind this token in the order of tokens; of one topic, or
        /// of any.
        case withTasks(topic: TopicIndex?, after: DeviceToken?, countMax: Int)
        /// Devices behind this token in the order of tokens, of these topics or of any.
        case inOrder(topics: [TopicIndex]?, after: DeviceToken?, countMax: Int)
        /// Devices with a pending push behind this token in the order of tokens, of these topics or of any.
        case pending(topics: [TopicIndex]?, after: DeviceToken?, countMax: Int)
    }

    /// Devices by their tokens, each once; tokens of no device are left out of the answer.
    package var tokens: [DeviceToken] = []
    /// The devices of wakes that are in flight, or have ended in the last ten minutes.
    package var wakes: [WakeID] = []
    package var selection = Selection.none

    package init() {}
}

/// Which lanes of a topic that wait for a slot are asked for.
package struct ReadyPlan: Sendable {
    package var topic: TopicIndex
    /// Only of these devices; empty for any.
    package var devices: [DeviceToken] = []
    package var takesPushes: Bool
    /// Patterns of identifiers: a name, or a beginning and `.*`, which stands for at least one character more.
    package var tasks: [String] = []
    /// Patterns of sessions' names.
    package var sessions: [String] = []
    /// What a task may need.
    package var resources: [String] = []
    package var countMax: Int

    package init(topic: TopicIndex, takesPushes: Bool, countMax: Int) {
        self.topic = topic
        self.takesPushes = takesPushes
        self.countMax = countMax
    }
}

/// What one transaction writes.
package struct ClusterWrites {
    package var devices: [SharedDeviceChange] = []
    /// What this transaction adds to what is counted, by topic; the store counts all together itself.
    package var counts: [(topic: TopicIndex, added: Books)] = []
    /// Refused pushes of this gateway since it was attached, as `Rejections` keeps them: those of the topics that
    /// changed, and `RecordKey.everyTopic`.
    package var rejections: [(topic: UInt32, content: [UInt8])] = []
    /// What happened, for the delivery log.
    package var events: [HistoryEvent] = []

    package init() {}

    /// The wakes that are in flight no more.
    package var endedWakes: [WakeID] {
        var wakes: [WakeID] = []
        for index in self.devices.indices where !self.devices[index].ended.isEmpty {
            wakes += self.devices[index].ended
        }
        return wakes
    }
}
