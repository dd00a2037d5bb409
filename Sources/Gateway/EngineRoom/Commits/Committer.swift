package import DeviceEngine

/// Makes groups durable, one at a time, and lets out what they have to tell.
///
/// While a group is being committed, the engine steps on and collects the next.
package protocol Committer: AnyObject {
    /// What the store is at.
    ///
    /// - Parameter ringingWhenIdle: when it is busy, the engine is woken once it is not. After a failure it always is.
    func status(ringingWhenIdle: Bool) -> CommitStatus

    /// How long commits took until now.
    var commitTimes: CommitTimes { get }

    /// Takes a group over, and gives an empty one for it. The store must be idle.
    func submit(_ group: inout StepGroup)

    /// Waits until nothing is being committed.
    func waitUntilIdle() -> CommitStatus

    /// After a failure: the group that failed, to be refused, in exchange for an empty one; and the store, to be
    /// asked what is durable.
    func takeFailure(_ group: inout StepGroup) -> any RecordStore

    /// Ends once it has committed what it was given, and waits for that.
    func stop()
}

/// What a store is at.
package enum CommitStatus {
    case idle, busy
    /// A commit failed; nothing is committed any more.
    case failed(StoreError)
}

/// Makes the committer of a store: groups leave by the outlet once they are durable, and the engine is woken with
/// `ring`.
package typealias CommitterMaker = (
    _ store: any RecordStore, _ outlet: GroupOutlet, _ ring: @escaping @Sendable () -> Void
) throws(StoreError) -> any Committer
