package import LaunchPolicy

/// A wake that ended, remembered for workers that answer late or twice.
package struct EndedWake: Hashable, Sendable {
    package let id: WakeID
    package let outcome: WakeOutcome
    package let at: Instant
}

/// What the engine remembers of a device besides its state: made when the first push arrives.
struct DeviceMemory {
    /// The most ended wakes remembered a device.
    static let endedWakesMax = 4
    /// The most events remembered a device; the history store keeps more.
    static let recentMax = 4

    /// The wakes that ended last, the oldest first.
    var endedWakes = Ring<EndedWake>()
    /// What happened last, the oldest first.
    var recent = Ring<RecentEvent>()
}

/// The last four of something, the oldest first.
struct Ring<Element> {
    static var capacity: Int { 4 }
    private var slots = InlineArray<4, Element?>(repeating: nil)

    /// Adds an element; the oldest makes room.
    ///
    /// - Returns: the element that made room.
    mutating func append(_ element: Element) -> Element? {
        for index in 0..<Self.capacity where self.slots[index] == nil {
            self.slots[index] = element
            return nil
        }
        return self.shift(element)
    }

    /// Takes the oldest out if it satisfies `condition`.
    mutating func popFirst(where condition: (Element) -> Bool) -> Element? {
        guard let first = self.slots[0], condition(first) else { return nil }
        return self.shift(nil)
    }

    /// The elements, the oldest first.
    var elements: [Element] {
        (0..<Self.capacity).compactMap { self.slots[$0] }
    }

    private mutating func shift(_ element: Element?) -> Element? {
        let first = self.slots[0]
        for index in 1..<Self.capacity { self.slots[index - 1] = self.slots[index] }
        self.slots[Self.capacity - 1] = element
        return first
    }
}

extension EmbeddedEngine {
    /// The bytes a device's recent events cost, once a push has arrived for it.
    package var recentBytes: Int { MemoryLayout<Ring<RecentEvent>>.stride }
}
