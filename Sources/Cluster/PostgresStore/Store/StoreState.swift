import Engine
import Policy

/// What the connections of a store have in common; the I/O thread alone has it.
final class StoreState {
    let settings: StoreSettings
    /// What is to be handed to the engine.
    var replies: [ClusterReply] = []
    var time = PolicyTime()
    /// The number under which connections are made; nil while there is none.
    var number: GatewayNumber?
    /// Whether the engine was told that the store is attached.
    var isAttached = false
    /// The place of the server that connections try first: that of the one that took the number.
    var firstHost = 0
    /// Why the number is of no use any more, as a connection found out.
    var fault: StoreError?
    /// Settings of the database that the operator is to hear of, each described with its remedy.
    var warnings: [String] = []
    /// How many transactions were written so far.
    private var order: Int64 = 0

    init(_ settings: StoreSettings) {
        self.settings = settings
    }

    func nextOrder() -> Int64 {
        self.order += 1
        return self.order
    }

    func fail(_ number: TransactionNumber, _ failure: ClusterFailure) {
        self.replies.append(.failed(number, failure))
    }
}
