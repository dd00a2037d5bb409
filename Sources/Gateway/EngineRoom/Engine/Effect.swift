package import Bytes
package import WakeDispatch

/// What the engine has for an outlet; its bytes are valid while it is handed over.
package enum Effect {
    /// The answer to a push.
    case pushAnswer(PushReply)
    /// The answer to another request: a JSON body, or none when it is empty.
    case answer(StreamAddress, status: Int, body: ByteView)
    /// The answer to who asked for every metric, as `MetricsText` writes it.
    case metrics(StreamAddress, text: ByteView)
    /// The stream is subscribed: its response begins.
    case subscribed(StreamAddress)
    /// A wake for an open stream.
    case wake(StreamAddress, StagedWake)
    /// A wake that the stream holds has expired.
    case expired(StreamAddress, WakeID)
    /// A wake that the stream held has ended.
    case released(StreamAddress, WakeID)
    /// The stream's worker stops, and holds no wake any more.
    case drained(StreamAddress)
    /// Nothing is launched any more.
    case draining
}
