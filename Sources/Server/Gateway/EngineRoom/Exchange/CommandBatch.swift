package import Engine
import Platform
package import Wire

/// What one loop has for the engine from one turn, in order.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class CommandBatch: MailboxBatch, @unchecked Sendable {
    private enum Item: BitwiseCopyable {
        /// The next push of `pushes`.
        case push
        /// The next of `commands`.
        case command
    }

    /// The most pushes and commands for which a loop steps the engine: about a tenth of a millisecond.
    private static let itemsOfLoopMax = 256

    private var items: [Item] = []
    /// The stream that each push is answered at, and behind that the push.
    private var pushes = ByteBuffer()
    private var commands: [EngineCommand] = []
    private var areCommandsBrief = true

    /// How many pushes there are: each is answered once.
    package private(set) var answersDue = 0

    /// The pushes by when they left their loops.
    private(set) var arrivals: [PushArrival] = []

    package init() {}

    package var isEmpty: Bool { self.items.isEmpty }

    /// Whether the loop that brings it had better step the engine than wake the engine's thread: it takes the engine
    /// not much longer than a thread takes to wake.
    package var isStepOfLoop: Bool { self.areCommandsBrief && self.items.count <= Self.itemsOfLoopMax }

    package func append(_ command: EngineCommand) {
        self.items.append(.command)
        self.commands.append(command)
        self.areCommandsBrief = self.areCommandsBrief && command.isBrief
    }

    /// Takes a push, which is answered at `stream`.
    package func append(_ push: Push, from stream: StreamAddress) {
        self.items.append(.push)
        self.pushes.append(memoryOf: stream)
        push.append(to: &self.pushes)
        self.answersDue += 1
    }

    /// Notes when the pushes of the batch leave their loop; called once, when they do.
    package func notePushesLeave() {
        guard self.answersDue > 0 else { return }
        self.arrivals.append(PushArrival(at: SystemClock.monotonicMicroseconds, count: Int64(self.answersDue)))
    }

    /// Takes over everything of another batch.
    package func append(_ other: CommandBatch) {
        self.items.append(contentsOf: other.items)
        self.pushes.append(other.pushes.view)
        self.commands.append(contentsOf: other.commands)
        self.areCommandsBrief = self.areCommandsBrief && other.areCommandsBrief
        self.answersDue += other.answersDue
        self.arrivals += other.arrivals
    }

    package func removeAll() {
        self.items.removeAll(keepingCapacity: true)
        self.pushes.removeAll()
        self.commands.removeAll(keepingCapacity: true)
        self.areCommandsBrief = true
        self.answersDue = 0
        self.arrivals.removeAll(keepingCapacity: true)
    }

    /// Hands over every item in order.
    package func forEach(push: (Push, StreamAddress) -> Void, command: (EngineCommand) -> Void) {
        let bytes = self.pushes.view
        var offset = 0
        var nextCommand = 0
        for item in self.items {
            switch item {
            case .push:
                let stream = bytes.load(StreamAddress.self, at: offset)
                offset += MemoryLayout<StreamAddress>.size
                push(Push(in: bytes, at: &offset), stream)
            case .command:
                command(self.commands[nextCommand])
                nextCommand += 1
            }
        }
    }
}

/// A copy of a push, for later than the call that hands the push over.
///
/// `@unchecked Sendable`: nothing of it changes.
package final class KeptPush: @unchecked Sendable {
    /// The stream that it is answered at.
    let stream: StreamAddress
    private let bytes: ByteBuffer

    package init(_ push: Push, from stream: StreamAddress) {
        self.stream = stream
        var bytes = ByteBuffer()
        push.append(to: &bytes)
        self.bytes = bytes
    }

    /// Hands the push over; its views are valid during the call.
    package func read<Result>(_ body: (Push) -> Result) -> Result {
        withExtendedLifetime(self) {
            var offset = 0
            return body(Push(in: self.bytes.view, at: &offset))
        }
    }
}
