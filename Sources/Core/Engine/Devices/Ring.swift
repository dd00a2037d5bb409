/// The last four of something, the oldest first.
package struct Ring<Element> {
    static var capacity: Int { 4 }
    private var slots = InlineArray<4, Element?>(repeating: nil)

    /// An empty ring.
    package init() {}

    /// Adds an element; the oldest makes room.
    ///
    /// - Returns: the element that made room.
    package mutating func append(_ element: Element) -> Element? {
        for index in 0..<Self.capacity where self.slots[index] == nil {
            self.slots[index] = element
            return nil
        }
        return self.shift(element)
    }

    /// Takes the oldest out if it satisfies `condition`.
    package mutating func popFirst(where condition: (Element) -> Bool) -> Element? {
        guard let first = self.slots[0], condition(first) else { return nil }
        return self.shift(nil)
    }

    /// The newest element that satisfies `condition`.
    func last(where condition: (Element) -> Bool) -> Element? {
        for index in (0..<Self.capacity).reversed() {
            if let element = self.slots[index], condition(element) { return element }
        }
        return nil
    }

    /// The oldest element.
    var first: Element? { self.slots[0] }

    /// The elements, the oldest first.
    package var elements: [Element] {
        (0..<Self.capacity).compactMap { self.slots[$0] }
    }

    /// How many elements satisfy `condition`.
    func count(where condition: (Element) -> Bool) -> Int {
        var count = 0
        self.forEach(where: condition) { _ in count += 1 }
        return count
    }

    /// Calls `body` with the elements that satisfy `condition`, the oldest first.
    func forEach(where condition: (Element) -> Bool, _ body: (Element) -> Void) {
        for index in 0..<Self.capacity {
            if let element = self.slots[index], condition(element) { body(element) }
        }
    }

    private mutating func shift(_ element: Element?) -> Element? {
        let first = self.slots[0]
        for index in 1..<Self.capacity { self.slots[index - 1] = self.slots[index] }
        self.slots[Self.capacity - 1] = element
        return first
    }
}
