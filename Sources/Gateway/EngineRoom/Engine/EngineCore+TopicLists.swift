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
        if let error = self.failure?.durableError { return self.answer(list.reply, .refused(.storeFailed(error))) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("topics")
        writer.beginArray()
        for topic in self.engine.topicSnapshots where list.caller.reaches(topic.name) {
            writer.beginObject()
            writer.key("topic")
            writer.string(topic.name)
            writer.key("devices")
            writer.integer(topic.books.registered)
            writer.key("workers")
            writer.integer(self.workerCounts(topic.index).connected)
            writer.key("pending")
            writer.integer(topic.books.pending)
            writer.key("inFlight")
            writer.integer(topic.books.inFlight)
            if let webhook = self.webhooks[topic.name] {
                writer.key("webhook")
                webhook.write(to: &writer)
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        self.answer(list.reply, .json(writer))
    }
}
