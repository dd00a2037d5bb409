import Engine
import Wire

/// Something that is to be done with the row of one device, and its place in the order in which all came.
///
/// A queue, a transaction and a sort move it about: what is large of it lies elsewhere.
struct QueuedCommand {
    enum Work {
        case push(QueuedPush)
        case request(EngineRequest)
        /// A wake is lost, as the stream that held it has ended.
        case lose(WakeID)
        /// A wake is lost, while the stream that holds it goes on.
        indirect case loseOn(StreamAddress, WakeID, takingBackAttempt: Bool)
    }

    /// From 1; one that came later has a higher one.
    let number: UInt64
    /// Where the queue has its row.
    let place: Int
    /// When a push left its loop, by the monotonic clock in microseconds; 0 for everything else.
    let leftAt: Int64
    let work: Work
}

/// A push that waits.
final class QueuedPush {
    let command: PushCommand
    /// The push's topic, collapse id, payload and trace.
    let bytes: [UInt8]

    init(_ command: PushCommand, _ bytes: [UInt8]) {
        self.command = command
        self.bytes = bytes
    }
}
