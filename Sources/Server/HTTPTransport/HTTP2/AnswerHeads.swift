internal import Wire

/// The heads of answers that the library has still to send, in the order in which it was asked to.
///
/// The library sends HEADERS frames without fields; each gets its own when it leaves.
@safe
struct AnswerHeads: ~Copyable {
    private static let prefixBytes = 8

    /// For each head the number of its stream, how many bytes its fields take, and these.
    private var queue = ByteBuffer()

    /// Adds the fields of an answer's head, or of an interim one, in HPACK.
    mutating func append(_ block: ByteView, for number: Int32) {
        precondition(block.count < 1 << 14, "the fields of a response fit into one frame")
        self.queue.append(memoryOf: number)
        self.queue.append(memoryOf: Int32(block.count))
        self.queue.append(block)
    }

    /// Appends a HEADERS frame, which has no field, with the fields of the answer that it begins.
    ///
    /// What the library has put into its block is kept: it says what size of table the block expects.
    mutating func move(into frame: ByteView, to output: inout ByteBuffer) {
        let head = FrameHead(frame)
        let fields = self.take(for: head.streamNumber)
        head.withLength(frame.count - FrameHead.bytes + fields.count).write(to: &output)
        output.append(frame.dropFirst(FrameHead.bytes), fields)
    }

    /// The fields of the answer on the stream, which is the first in the queue but for those of streams that are gone;
    /// valid until the queue changes.
    private mutating func take(for number: Int32) -> ByteView {
        while true {
            let queued = self.queue.view
            let count = Int(queued.load(Int32.self, at: 4))
            let isWanted = queued.load(Int32.self, at: 0) == number
            let fields = queued.slice(Self.prefixBytes, count: count)
            self.queue.consume(Self.prefixBytes + count)
            if isWanted { return fields }
        }
    }

    /// Frees what is kept for heads to come, unless there are some.
    mutating func freeSpareMemory() {
        if self.queue.isEmpty { self.queue.free() }
    }

    /// Forgets what is left: the library has nothing more to send.
    mutating func removeAll() {
        self.queue.removeAll(keepingBytesMax: 4096)
    }
}
