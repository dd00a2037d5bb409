package import Wire

/// Finds a topic by the bytes of its name, without making a string of them.
package struct TopicNames: ~Copyable {
    private var cells: [UInt32] = Array(repeating: 0, count: 64)
    /// The names, one behind the other, and where each ends.
    private var text = ByteBuffer()
    private var ends: [Int] = []
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
        self.name(Int(topic.rawValue)) == name
    }

    /// Adds a name that is not there yet; topics are numbered in the order of their adding.
    package mutating func insert(_ name: ByteView) -> TopicIndex {
        self.text.append(name)
        self.ends.append(self.text.count)
        if self.ends.count * 2 > self.cells.count {
            self.cells = Array(repeating: 0, count: self.cells.count * 2)
            for number in self.ends.indices.dropLast() { self.link(number) }
        }
        self.link(self.ends.count - 1)
        return TopicIndex(rawValue: UInt32(self.ends.count - 1))
    }

    private func name(_ number: Int) -> ByteView {
        self.text.view[(number == 0 ? 0 : self.ends[number - 1])..<self.ends[number]]
    }

    private mutating func link(_ number: Int) {
        var place = self.place(self.name(number))
        while self.cells[place] != 0 { place = (place + 1) & (self.cells.count - 1) }
        self.cells[place] = UInt32(number + 1)
    }

    private func place(_ name: ByteView) -> Int {
        Int(truncatingIfNeeded: self.key.hash(name)) & (self.cells.count - 1)
    }
}
