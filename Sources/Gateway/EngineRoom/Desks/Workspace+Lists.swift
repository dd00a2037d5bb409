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
        var left = Self.tasksMax
        for topic in self.topics(question.topic, for: caller) {
            let filter = TaskFilter(topic: topic, kind: question.kind, state: question.state)
            let tasks = self.engine.tasks(filter, countMax: left)
            left -= tasks.count
            var list: TaskList?
            for task in tasks {
                if list?.device.token != task.device {
                    list = self.engine.find(task.device).map { TaskList(self.engine.snapshot($0), self.offset) }
                }
                list?.write(task, to: &writer)
            }
            guard left > 0 else { break }
        }
        writer.endArray()
    }

    /// The topics that a question is about, nil standing for all of them.
    private func topics(_ name: String?, for caller: Caller) -> [TopicIndex?] {
        let names: [String]
        switch (name, caller.topics) {
        case (nil, .all): return [nil]
        case (nil, .only(let own)): names = own.sorted()
        case (let name?, _): names = caller.reaches(name) ? [name] : []
        }
        // Typed, so that a topic that is unknown is left out and never stands for all of them.
        let found: [TopicIndex] = names.compactMap { name in name.withByteView { self.engine.findTopic($0) } }
        return found
    }
}
