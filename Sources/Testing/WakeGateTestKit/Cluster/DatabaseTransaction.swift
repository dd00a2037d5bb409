import Engine
import Policy
import Wire

/// One transaction of a simulated database, as its server knows it, and how far its client has come with it.
final class DatabaseTransaction {
    /// What the server has done of it.
    enum State {
        /// Nothing, or locks were taken and another one's is waited for.
        case loading
        /// Rows were read.
        case open
        /// A commit waits for another commit, which inserts the same device.
        case inserting
        /// A commit is written, and a standby does not have it yet.
        case replicating
        case committed([HeldElsewhere])
        case rolledBack
    }

    /// What its client waits for.
    enum Wait {
        case rows, nothing, end
    }

    let number: TransactionNumber
    let store: SimulatedClusterStore
    let gateway: GatewayNumber
    /// The place of its connection among its store's.
    let connection: Int
    let plan: LoadPlan

    var state = State.loading
    var wait = Wait.rows
    /// The client has lost the connection: what was on its way does not arrive.
    var isCut = false
    /// The client asks, over another connection, what has become of it.
    var isInDoubt = false
    /// The client has given it up.
    var isAbandoned = false
    /// When its rows were read, in policy time.
    var moment = Instant.distantPast
    /// Whose locks it has, and whose it takes yet, in order.
    var locked: [DeviceToken] = []
    var wanted: [DeviceToken] = []
    /// The number of locks that it has waited for.
    var waitCount = 0
    /// Devices that were there when it looked for them.
    var found: Set<DeviceToken> = []
    var commit: DatabaseCommit?
    /// What its connection has counted when it is committed, of the topics that change.
    var counts: [TopicIndex: Books] = [:]

    init(
        _ number: TransactionNumber,
        _ plan: LoadPlan,
        of store: SimulatedClusterStore,
        _ gateway: GatewayNumber,
        connection: Int
    ) {
        self.number = number
        self.plan = plan
        self.store = store
        self.gateway = gateway
        self.connection = connection
    }

    var isOver: Bool {
        switch self.state {
        case .committed, .rolledBack: true
        case .loading, .open, .inserting, .replicating: false
        }
    }
}
