import Wire

/// Devices whose conditions have changed, by numbers that outlive the step that changed them: streams that do not read
/// hear of them later. There are as many as some stream is still to hear of, or heard of since there was none.
struct HeardDevices {
    private var numbers: [DeviceToken: Int] = [:]
    private var tokens: [DeviceToken] = []
    /// The topics of these devices.
    private(set) var topics: Set<TopicIndex> = []

    var isEmpty: Bool { self.tokens.isEmpty }

    /// What stands for a device of this topic in logs; the engine does not know it.
    mutating func index(_ token: borrowing DeviceToken, _ topic: TopicIndex) -> DeviceIndex {
        self.topics.insert(topic)
        let number = self.numbers[copy token] ?? self.tokens.count
        if number == self.tokens.count {
            self.numbers[copy token] = number
            self.tokens.append(copy token)
        }
        return DeviceIndex(rawValue: UInt32(number))
    }

    /// The device that this stands for.
    func token(_ index: DeviceIndex) -> DeviceToken { self.tokens[Int(index.rawValue)] }

    mutating func removeAll() {
        self.numbers.removeAll(keepingCapacity: true)
        self.tokens.removeAll(keepingCapacity: true)
        self.topics.removeAll(keepingCapacity: true)
    }
}
