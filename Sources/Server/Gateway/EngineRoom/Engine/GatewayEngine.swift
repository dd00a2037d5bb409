/// What decides over every push and every wake of a gateway, one batch after the other.
///
/// Verbs come in as values, many in a batch, with one call for all of them. What comes of them leaves as values as
/// well, by the engine's `GroupOutlet`, once it cannot be lost: each push has one `PushReply`, each request one
/// `Outcome`, and what is for one stream leaves in the order in which it came about. Wakes leave for streams that
/// subscribed through this engine.
///
/// There may be other engines on the same store, in other processes. So nobody who uses one may take it that a free
/// slot brings a wake, since another may have got it; that a wake ends with the stream that holds it, since its result
/// may come from anywhere; or that wakes of others are lost because this engine starts.
package protocol GatewayEngine: AnyObject {
    /// What whatever thread may call instead of `step`, one at a time, with a batch that is brief; nil when the engine
    /// is bound to its own thread.
    var briefStep: ((CommandBatch) -> Int64)? { get }

    /// Takes a batch, which is empty afterwards.
    ///
    /// - Returns: how many milliseconds may pass until the next step, if nothing arrives before.
    func step(_ batch: CommandBatch) -> Int64

    /// Makes the rest durable and lets it out; nothing is stepped afterwards.
    func finish()
}
