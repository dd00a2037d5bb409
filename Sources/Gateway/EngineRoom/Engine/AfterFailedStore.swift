/// What becomes of a request once the store has failed, when nothing changes any more.
package enum AfterFailedStore: Hashable, Sendable {
    /// The request is refused: it would change something.
    case refused
    /// The request is answered from what was durable last, as far as that can be read.
    case answeredFromDurableState
    /// The request is answered as ever: nothing of what is stored is in it, or it tells of the failure.
    case answered
}
