/// How often things go wrong by chance between gateways and a simulated database: once in so many; 0 for never.
package struct DatabaseFaults: Sendable {
    /// The connection is cut when a commit has been done and its reply is on the way.
    package var lostReplies = 0
    /// The connection is cut while a commit is on its way, which may arrive all the same.
    package var lostCommits = 0
    /// A transaction's connection is cut before it has read its rows.
    package var lostLoads = 0
    /// A commit is refused.
    package var refusedCommits = 0
    /// A transaction is said to wait for another that waits for it.
    package var deadlocks = 0
    /// A notice does not arrive, or arrives twice.
    package var lostNotices = 0
    package var doubledNotices = 0

    package init() {}

    package static let none = DatabaseFaults()
}
