import Access
import Bytes
import DeviceEngine
import WakeDispatch

extension Workspace {
    /// Appends an array of the topics that a caller reaches.
    func writeTopics(for caller: Caller, _ webhooks: [String: WebhookStatus], to writer: inout JSONWriter) {
        writer.beginArray()
        for topic in self.engine.topicSnapshots where caller.reaches(topic.name) {
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
            if let webhook = webhooks[topic.name] {
                writer.key("webhook")
                webhook.write(to: &writer)
            }
            writer.endObject()
        }
        writer.endArray()
    }

    /// The most tasks of all devices that are listed.
    static let tasksMax = 1000

    /// Appends an array of what waits and runs on the devices that a caller reaches.
    func writeTasks(_ question: TaskQuestion, for caller: Caller, to writer: inout JSONWriter) {
        writer.beginArray()
        let topics = self.topics(question.topic, for: caller)
        let filter = TaskFilter(topics: topics, kind: question.kind, state: question.state)
        var list: TaskList?
        for var task in self.engine.tasks(filter, countMax: Self.tasksMax) {
            guard let device = self.engine.find(task.device) else { continue }
            if list?.device.token != task.device { list = TaskList(self.engine.snapshot(device), self.offset) }
            self.dispatcher.noteTakers(of: &task, device)
            list?.write(task, to: &writer)
        }
        writer.endArray()
    }

    /// The devices of the tasks that a question is about, as far as they are in memory: each once for each task.
    func devices(of question: TaskQuestion, for caller: Caller) -> [DeviceToken] {
        let topics = self.topics(question.topic, for: caller)
        let filter = TaskFilter(topics: topics, kind: question.kind, state: question.state)
        return self.engine.tasks(filter, countMax: Self.tasksMax).map(\.device)
    }

    /// The topics that a question is about, without those that are unknown; nil stands for all of them.
    private func topics(_ name: String?, for caller: Caller) -> Set<TopicIndex>? {
        let names: Set<String>
        switch (name, caller.topics) {
        case (nil, .all): return nil
        case (nil, .only(let own)): names = Set(own)
        case (let name?, _): names = caller.reaches(name) ? [name] : []
        }
        return Set(names.compactMap { name in name.withByteView { self.engine.findTopic($0) } })
    }
}
