package import Bytes

/// Something of each of many wakes, found by their ids.
///
/// It is 256 dictionaries, which the random bits of an id choose from: when one grows, a few thousand wakes are moved,
/// and not all of a million at once.
package struct WakeTable<Value> {
    private static var shardCount: Int { 256 }

    private var shards = [[WakeID: Value]](repeating: [:], count: Self.shardCount)
    /// How many wakes there are.
    package private(set) var count = 0

    package init() {}

    package subscript(wake: WakeID) -> Value? {
        get { self.shards[self.shard(wake)][wake] }
        set {
            let shard = self.shard(wake)
            let before = self.shards[shard].count
            self.shards[shard][wake] = newValue
            self.count += self.shards[shard].count - before
        }
    }

    private func shard(_ wake: WakeID) -> Int {
        Int(truncatingIfNeeded: wake.first) & (Self.shardCount - 1)
    }
}
