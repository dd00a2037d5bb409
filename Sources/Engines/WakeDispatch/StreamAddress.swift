/// Where a worker's stream, or a request that waits for its answer, is found.
///
/// The dispatcher carries it and never looks inside.
package enum StreamAddress: Hashable, BitwiseCopyable, Sendable {
    /// A stream of a connection.
    case stream(LoopStream)
    /// The stream of a push whose answer fault rules get before it is sent.
    case faulted(LoopStream)
    /// The wakes of the webhook with this number.
    case webhook(UInt32)
    /// The results that the webhook with this number reports: nobody waits for their answers.
    case webhookReport(UInt32)
}
