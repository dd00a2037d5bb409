import Access
import Answers
import Bytes
import DeviceEngine
import WakeDispatch

/// Who waits for a list of topics, the first first.
struct TopicListQueue {
    struct Entry {
        let reply: StreamAddress
        /// Whose topics the list shows.
        let caller: Caller
    }

    private var entries: [Entry] = []
    /// The first entry that has no list yet.
    private var first = 0

    var isEmpty: Bool { self.first == self.entries.count }

    mutating func append(_ reply: StreamAddress, _ caller: Caller) {
        self.entries.append(Entry(reply: reply, caller: caller))
    }

    mutating func popFirst() -> Entry? {
        guard !self.isEmpty else { return nil }
        defer {
            self.first += 1
            if self.isEmpty {
                self.entries.removeAll()
                self.first = 0
            }
        }
        return self.entries[self.first]
    }
}

/// A list passes over every topic, and may be as long as a thousand pushes: a step writes one, and none while another
/// waits for its commit, so that neither the others nor the memory wait for a crowd of them.
extension EngineCore {
    /// The next step has a list to write.
    var isTopicListNext: Bool { !self.topicLists.isEmpty && !self.stage.group.hasTopicList }

    func writeNextTopicList() {
        guard self.isTopicListNext, let list = self.topicLists.popFirst() else { return }
        self.stage.group.hasTopicList = true
        self.write(list)
    }

    private func write(_ list: TopicListQueue.Entry) {
        if let error = self.failure?.durableError { return self.answer(list.reply, .storeFailed(error)) }
        self.writer.beginObject()
        self.writer.key("topics")
        self.writer.beginArray()
        for topic in self.engine.topicSnapshots where list.caller.reaches(topic.name) {
            self.writer.beginObject()
            self.writer.key("topic")
            self.writer.string(topic.name)
            self.writer.key("devices")
            self.writer.integer(topic.books.registered)
            self.writer.key("workers")
            self.writer.integer(self.workerCounts(topic.index).connected)
            self.writer.key("pending")
            self.writer.integer(topic.books.pending)
            self.writer.key("inFlight")
            self.writer.integer(topic.books.inFlight)
            if let webhook = self.webhooks[topic.name] {
                self.writer.key("webhook")
                webhook.write(to: &self.writer)
            }
            self.writer.endObject()
        }
        self.writer.endArray()
        self.writer.endObject()
        self.answer(list.reply, status: 200)
    }
}
