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
