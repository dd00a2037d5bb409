package import Engine

/// What is to be told to other gateways, each once however often it is said before it goes out.
package struct NoticeQueue {
    /// The most that waits: what comes then is not told, as nothing may hang on it.
    package static let countMax = 20_000

    package private(set) var items: [NoticePayload.Item] = []
    private var known: Set<NoticePayload.Item> = []

    package init() {}

    package var isEmpty: Bool { self.items.isEmpty }

    package mutating func append(_ item: NoticePayload.Item) {
        guard self.items.count < Self.countMax, self.known.insert(item).inserted else { return }
        self.items.append(item)
    }

    /// The next payload; nil when nothing waits.
    package mutating func takePayload(sender: GatewayNumber) -> String? {
        guard !self.items.isEmpty else { return nil }
        let (text, end) = NoticePayload.write(self.items, from: 0, sender: sender)
        for item in self.items[..<end] { self.known.remove(item) }
        self.items.removeFirst(end)
        return text
    }

    package mutating func removeAll() {
        self.items.removeAll()
        self.known.removeAll()
    }
}
