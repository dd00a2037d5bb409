import Access
import Answers
import Bytes
import DeviceEngine
import WakeDispatch

/// Who waits for a list of topics, the first first, and the lists.
///
/// A list passes over every topic, and may be as long as a thousand pushes: a step writes one, and none while another
/// waits for its commit, so that neither the others nor the memory wait for a crowd of them.
struct TopicLists {
    private struct Entry {
        let reply: StreamAddress
        /// Whose topics the list shows.
        let caller: Caller
    }

    private var entries: [Entry] = []
    /// The first entry that has no list yet.
    private var first = 0

    mutating func append(_ reply: StreamAddress, _ caller: Caller) {
        self.entries.append(Entry(reply: reply, caller: caller))
    }

    /// Whether `group` has room for a list that somebody waits for.
    func isNext(_ group: StepGroup) -> Bool { self.first < self.entries.count && !group.hasTopicList }

    /// Writes the next list, if it is time.
    mutating func writeNext(to stage: EffectStage, _ workspace: Workspace, _ webhooks: [String: WebhookStatus]) {
        guard self.isNext(stage.group) else { return }
        let entry = self.entries[self.first]
        self.first += 1
        if self.first == self.entries.count {
            self.entries.removeAll()
            self.first = 0
        }
        stage.group.hasTopicList = true
        if let error = workspace.failure?.durableError {
            stage.answer(entry.reply, .refused(.storeFailed(error)))
        } else {
            stage.answer(entry.reply, Self.list(for: entry.caller, workspace, webhooks))
        }
    }

    private static func list(
        for caller: Caller,
        _ workspace: Workspace,
        _ webhooks: [String: WebhookStatus]
    ) -> Outcome {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("topics")
        writer.beginArray()
        for topic in workspace.engine.topicSnapshots where caller.reaches(topic.name) {
            writer.beginObject()
            writer.key("topic")
            writer.string(topic.name)
            writer.key("devices")
            writer.integer(topic.books.registered)
            writer.key("workers")
            writer.integer(workspace.workerCounts(topic.index).connected)
            writer.key("pending")
            writer.integer(topic.books.pending)
            writer.key("inFlight")
            writer.integer(topic.books.inFlight)
            if let webhook = webhooks[topic.name] {
                writer.key("webhook")
                webhook.write(to: &writer)
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return .json(writer)
    }
}
