/// Names one connection of one loop; a slot that is used again has another generation.
package struct ConnectionID: Hashable, Sendable {
    /// The place in the loop's table.
    package let index: UInt32
    /// Counts the connections that have had this place, from 1.
    package let generation: UInt32

    @inlinable
    package init(index: UInt32, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    /// Both numbers at once.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(self.index) << 32 | UInt64(self.generation))
    }
}

/// Names one request and its answer on one loop.
package struct StreamID: Hashable, Sendable {
    package let connection: ConnectionID
    /// The HTTP/2 stream number, or the ordinal of an HTTP/1.1 request on its connection, from 1.
    package let number: Int32

    @inlinable
    package init(connection: ConnectionID, number: Int32) {
        self.connection = connection
        self.number = number
    }

    /// Few words are quicker than many, and no two streams have the same.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.connection)
        hasher.combine(UInt64(UInt32(bitPattern: self.number)))
    }
}
