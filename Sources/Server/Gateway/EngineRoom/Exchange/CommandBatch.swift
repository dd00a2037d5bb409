import Engine
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
    /// The memory of each push, and behind it its topic, collapse id, payload and trace.
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

    /// Takes a push; the counts of `push` are those of the views.
    package func append(
        _ push: PushCommand,
        topic: ByteView,
        collapseID: ByteView,
        payload: ByteView,
        trace: ByteView = ByteView()
    ) {
        self.items.append(.push)
        self.pushes.append(memoryOf: push)
        self.pushes.append(topic)
        self.pushes.append(collapseID)
        self.pushes.append(payload)
        self.pushes.append(trace)
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

    /// Hands over every item in order; the view holds a push's topic, collapse id, payload and trace.
    package func forEach(push: (PushCommand, ByteView) -> Void, command: (EngineCommand) -> Void) {
        let bytes = self.pushes.view
        var offset = 0
        var nextCommand = 0
        for item in self.items {
            switch item {
            case .push:
                let header = bytes.load(PushCommand.self, at: offset)
                offset += MemoryLayout<PushCommand>.size
                push(header, bytes[offset..<offset + header.trailingCount])
                offset += header.trailingCount
            case .command:
                command(self.commands[nextCommand])
                nextCommand += 1
            }
        }
    }
}
