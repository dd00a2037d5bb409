package import Bytes

/// Finds a topic by the bytes of its name, without making a string of them.
package struct TopicNames {
    private var cells: [UInt32] = Array(repeating: 0, count: 64)
    private var names: [[UInt8]] = []
    /// Keeps strangers from choosing names that collide.
    private let key: HashKey

    /// No names.
    ///
    /// - Parameter key: what names are hashed with.
    package init(key: HashKey) {
        self.key = key
    }

    /// The number of the topic with this name; nil when there is none.
    package func find(_ name: ByteView) -> TopicIndex? {
        var place = self.place(name)
        while self.cells[place] != 0 {
            let topic = self.cells[place] - 1
            if self.isName(name, of: TopicIndex(rawValue: topic)) { return TopicIndex(rawValue: topic) }
            place = (place + 1) & (self.cells.count - 1)
        }
        return nil
    }

    func isName(_ name: ByteView, of topic: TopicIndex) -> Bool {
        self.names[Int(topic.rawValue)].withByteView { $0 == name }
    }

    /// Adds a name that is not there yet; topics are numbered in the order of their adding.
    package mutating func insert(_ name: ByteView) -> TopicIndex {
        self.names.append(name.array)
        if self.names.count * 2 > self.cells.count {
            self.cells = Array(repeating: 0, count: self.cells.count * 2)
            for number in self.names.indices.dropLast() { self.link(number) }
        }
        self.link(self.names.count - 1)
        return TopicIndex(rawValue: UInt32(self.names.count - 1))
    }

    private mutating func link(_ number: Int) {
        var place = self.names[number].withByteView { self.place($0) }
        while self.cells[place] != 0 { place = (place + 1) & (self.cells.count - 1) }
        self.cells[place] = UInt32(number + 1)
    }

    private func place(_ name: ByteView) -> Int {
        Int(truncatingIfNeeded: self.key.hash(name)) & (self.cells.count - 1)
    }
}
