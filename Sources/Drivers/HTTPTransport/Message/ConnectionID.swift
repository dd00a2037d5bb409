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
}
