/// What waits in the order in which it came; taking the first costs the same however many wait.
///
/// Other modules have it made for their own elements, as generic code that is not would be many times slower.
@usableFromInline
package struct FIFOQueue<Element> {
    @usableFromInline var elements: [Element] = []
    /// The elements before it have been taken.
    @usableFromInline var firstIndex = 0

    /// An empty queue.
    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { self.firstIndex == self.elements.count }

    /// The element that has waited longest.
    @inlinable
    package var first: Element? {
        self.firstIndex < self.elements.count ? self.elements[self.firstIndex] : nil
    }

    @inlinable
    package mutating func append(_ element: Element) { self.elements.append(element) }

    /// Takes the element that has waited longest.
    @inlinable
    package mutating func popFirst() -> Element? {
        guard self.firstIndex < self.elements.count else { return nil }
        let element = self.elements[self.firstIndex]
        self.firstIndex += 1
        // The memory is kept; an empty array would make some. A queue that is never empty keeps no more than it had.
        if self.firstIndex == self.elements.count {
            self.elements.removeAll(keepingCapacity: true)
            self.firstIndex = 0
        } else if self.firstIndex >= 1024, self.firstIndex * 2 >= self.elements.count {
            self.elements.removeFirst(self.firstIndex)
            self.firstIndex = 0
        }
        return element
    }

    /// For how many elements it has memory.
    @inlinable
    package var capacity: Int { self.elements.capacity }

    /// Gives the memory of an empty queue back that a burst has left, unless it is for no more elements than these.
    @inlinable
    package mutating func shrink(keeping count: Int) {
        guard self.isEmpty, self.capacity > count else { return }
        self = FIFOQueue()
    }

    /// Drops every element and keeps the memory.
    @inlinable
    package mutating func removeAll() {
        self.elements.removeAll(keepingCapacity: true)
        self.firstIndex = 0
    }
}
