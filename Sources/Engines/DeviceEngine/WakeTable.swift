public import Bytes

/// Something of each of many wakes, found by their ids.
///
/// It is 256 dictionaries, which the random bits of an id choose from: when one grows, a few thousand wakes are moved,
/// and not all of a million at once. Other modules have it made for their own values, as generic code that is not would
/// be many times slower.
@usableFromInline
package struct WakeTable<Value> {
    @inlinable static var shardCount: Int { 256 }

    @usableFromInline var shards = [[WakeID: Value]](repeating: [:], count: Self.shardCount)
    @usableFromInline var valueCount = 0

    @inlinable
    package init() {}

    @inlinable
    package subscript(wake: WakeID) -> Value? {
        get { self.shards[self.shard(wake)][wake] }
        set {
            let shard = self.shard(wake)
            let before = self.shards[shard].count
            self.shards[shard][wake] = newValue
            self.valueCount += self.shards[shard].count - before
        }
    }

    /// How many wakes there are.
    package var count: Int { self.valueCount }

    @inlinable
    func shard(_ wake: WakeID) -> Int {
        Int(truncatingIfNeeded: wake.first) & (Self.shardCount - 1)
    }
}
