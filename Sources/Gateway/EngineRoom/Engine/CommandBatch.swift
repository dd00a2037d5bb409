package import Bytes
import Platform
import WakeDispatch

/// What one loop has for the engine from one turn, in order.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class CommandBatch: MailboxBatch, @unchecked Sendable {

    package init() {}
    private enum Tag {
        static let push: UInt8 = 0
        static let command: UInt8 = 1
    }

    /// A tag for each item; a push's memory and bytes follow its tag, other commands lie in `commands`.
    private var items = ByteBuffer()
    private var commands: [EngineCommand] = []
    /// How many pushes and commands there are.
    private(set) var count = 0

    /// How many pushes there are: each is answered once.
    package private(set) var answersDue = 0

    /// The pushes by when they left their loops.
    private(set) var arrivals: [PushArrival] = []

    package var isEmpty: Bool { self.count == 0 }

    package func append(_ command: EngineCommand) {
        self.items.append(Tag.command)
        self.commands.append(command)
        self.count += 1
    }

    /// Takes a push; the counts of `push` are those of the views.
    package func append(
        _ push: PushCommand,
        topic: ByteView,
        collapseID: ByteView,
        payload: ByteView,
        trace: ByteView = ByteView()
    ) {
        self.items.append(Tag.push)
        self.items.append(memoryOf: push)
        self.items.append(topic)
        self.items.append(collapseID)
        self.items.append(payload)
        self.items.append(trace)
        self.count += 1
        self.answersDue += 1
    }

    /// Notes when the pushes of the batch leave their loop; called once, when they do.
    package func notePushesLeave() {
        guard self.answersDue > 0 else { return }
        self.arrivals.append(PushArrival(at: SystemClock.monotonicMicroseconds, count: Int64(self.answersDue)))
    }

    /// Takes over everything of another batch.
    package func append(_ other: CommandBatch) {
        self.items.append(other.items.view)
        self.commands.append(contentsOf: other.commands)
        self.count += other.count
        self.answersDue += other.answersDue
        self.arrivals += other.arrivals
    }

    package func removeAll() {
        self.items.removeAll()
        self.commands.removeAll(keepingCapacity: true)
        self.count = 0
        self.answersDue = 0
        self.arrivals.removeAll(keepingCapacity: true)
    }

    /// Hands over every item in order; the view holds a push's topic, collapse id, payload and trace.
    func forEach(push: (PushCommand, ByteView) -> Void, command: (EngineCommand) -> Void) {
        let bytes = self.items.view
        var offset = 0
        var nextCommand = 0
        while offset < bytes.count {
            let tag = bytes[offset]
            offset += 1
            if tag == Tag.push {
                let header = bytes.load(PushCommand.self, at: offset)
                offset += MemoryLayout<PushCommand>.size
                push(header, bytes[offset..<offset + header.trailingCount])
                offset += header.trailingCount
            } else {
                command(self.commands[nextCommand])
                nextCommand += 1
            }
        }
    }
}
