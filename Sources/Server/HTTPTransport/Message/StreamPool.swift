/// The stream states of one loop, made in chunks and used again and again.
@safe
package final class StreamPool {
    private static let chunkCount = 64

    /// The most bytes a free state keeps in each of its buffers.
    static let keptBytesMax = 16_384
    /// The most states handed out at a time.
    var streamsMax: Int
    private var chunks: [UnsafeMutablePointer<StreamState>] = unsafe []
    private var free: StreamSlot?
    /// The states handed out and not given back.
    package private(set) var usedCount = 0

    /// - Parameter streamsMax: the most states handed out at a time.
    package init(streamsMax: Int) {
        self.streamsMax = streamsMax
    }

    deinit {
        while let chunk = unsafe self.chunks.popLast() {
            unsafe chunk.deinitialize(count: StreamPool.chunkCount)
            unsafe chunk.deallocate()
        }
    }

    /// - Returns: an empty state in phase `receiving`, or nil when all are in use.
    @inline(__always)
    package func take(number: Int32, now: Int64) -> StreamSlot? {
        guard self.usedCount < self.streamsMax else { return nil }
        if self.free == nil { self.grow() }
        guard let slot = self.free else { return nil }
        self.free = slot.state.next
        self.usedCount += 1
        slot.state.next = nil
        slot.state.number = number
        slot.state.phase = .receiving
        slot.state.since = now
        return slot
    }

    /// Takes back a state that `take` handed out; its memory is kept unless it is of extraordinary size.
    @inline(__always)
    package func giveBack(_ slot: StreamSlot) {
        precondition(slot.state.phase != .free, "a stream state was given back twice")
        slot.state.reset(keepingBytesMax: Self.keptBytesMax)
        slot.state.phase = .free
        slot.state.next = self.free
        self.free = slot
        self.usedCount -= 1
    }

    private func grow() {
        let chunk = UnsafeMutablePointer<StreamState>.allocate(capacity: StreamPool.chunkCount)
        for index in 0..<StreamPool.chunkCount {
            unsafe (chunk + index).initialize(to: StreamState())
            let slot = unsafe StreamSlot(pointer: chunk + index)
            slot.state.next = self.free
            self.free = slot
        }
        unsafe self.chunks.append(chunk)
    }
}

/// The place of one `StreamState` in its slab.
///
/// Safe because slabs live as long as their loop, and a slot is only used by the loop's thread.
@safe
package struct StreamSlot: Equatable {
    let pointer: UnsafeMutablePointer<StreamState>

    /// The state that lies there.
    package var state: StreamState {
        @inline(__always) _read { yield unsafe self.pointer.pointee }
        @inline(__always) nonmutating _modify { yield unsafe &self.pointer.pointee }
    }

    /// Whether both are the same place.
    package static func == (left: StreamSlot, right: StreamSlot) -> Bool {
        unsafe left.pointer == right.pointer
    }
}

/// Streams in the order they came, linked through their states: adding, removing and finding the oldest cost nothing.
struct StreamList {
    private(set) var first: StreamSlot?
    private var last: StreamSlot?
    private(set) var count = 0

    mutating func append(_ slot: StreamSlot) {
        slot.state.previous = self.last
        slot.state.next = nil
        if let last = self.last { last.state.next = slot } else { self.first = slot }
        self.last = slot
        self.count += 1
    }

    mutating func remove(_ slot: StreamSlot) {
        let previous = slot.state.previous
        let next = slot.state.next
        if let previous { previous.state.next = next } else { self.first = next }
        if let next { next.state.previous = previous } else { self.last = previous }
        slot.state.previous = nil
        slot.state.next = nil
        self.count -= 1
    }
}
