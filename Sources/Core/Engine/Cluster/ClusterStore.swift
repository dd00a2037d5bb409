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
