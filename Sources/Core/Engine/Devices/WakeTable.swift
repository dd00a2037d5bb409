public import Wire

/// Something of each of many wakes, found by their ids.
///
/// It is 256 maps, which the random bits of an id choose from: when one grows, a few thousand wakes are moved, and not
/// all of a million at once. Other modules have it made for their own values, as generic code that is not would be many
/// times slower.
@usableFromInline
package struct WakeTable<Value> {
    @inlinable static var mapCount: Int { 256 }

    @usableFromInline var maps = [WakeMap<Value>](repeating: WakeMap(), count: Self.mapCount)
    @usableFromInline var wakeCount = 0

    @inlinable
    package init() {}

    @inlinable
    package subscript(wake: WakeID) -> Value? {
        get { self.maps[self.map(wake)][wake] }
        set {
            let map = self.map(wake)
            let before = self.maps[map].count
            self.maps[map][wake] = newValue
            self.wakeCount += self.maps[map].count - before
        }
    }

    /// How many wakes there are.
    package var count: Int { self.wakeCount }

    @inlinable
    func map(_ wake: WakeID) -> Int {
        Int(truncatingIfNeeded: wake.first) & (Self.mapCount - 1)
    }
}
