import Engine
import Wire

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
            let workers = self.workerCounts(topic.index)
            writer.key("workers")
            writer.integer(workers.connected)
            workers.writeStalls(to: &writer)
            writer.key("pending")
            writer.integer(topic.books.pending)
            writer.key("inFlight")
            writer.integer(topic.books.inFlight)
            writer.key("paused")
            writer.bool(topic.isPaused)
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
            if list?.device.token != task.device {
                list = TaskList(device: self.engine.snapshot(device), offset: self.offset)
            }
            self.dispatcher.noteTakers(of: &task, device)
            list?.write(task, to: &writer)
        }
        writer.endArray()
    }

    /// The devices in memory that a list is about.
    func devices(of subject: ListedRows, for caller: Caller) -> [DeviceToken] {
        switch subject {
        case .tasks(let question): self.devices(of: question, for: caller)
        case .devices(let question): self.devices(of: question, for: caller)
        }
    }

    /// The devices of the tasks that a question is about, as far as they are in memory: each once for each task.
    private func devices(of question: TaskQuestion, for caller: Caller) -> [DeviceToken] {
        let topics = self.topics(question.topic, for: caller)
        let filter = TaskFilter(topics: topics, kind: question.kind, state: question.state)
        return self.engine.tasks(filter, countMax: Self.tasksMax).map(\.device)
    }

    /// The search for the devices that a question is about, as far as a caller reaches them.
    func search(_ question: DeviceQuestion, for caller: Caller) -> DeviceSearch {
        DeviceSearch(
            topics: self.topics(question.topic, for: caller),
            after: question.after,
            countMax: question.examined
        )
    }

    /// Appends the members of a list of devices: those that a search has found and the question is about.
    func writeDevices(_ question: DeviceQuestion, _ search: DeviceSearch, to writer: inout JSONWriter) {
        let filter = DeviceFilter(state: question.state, hold: question.hold)
        var count = 0
        var next = search.isFull ? search.tokens.last : nil
        writer.key("devices")
        writer.beginArray()
        for token in search.tokens {
            guard let device = self.engine.find(token) else { continue }
            let snapshot = self.engine.snapshot(device)
            guard filter.takes(snapshot) else { continue }
            DeviceLine(device: snapshot, offset: self.offset).write(to: &writer)
            count += 1
            guard count < question.limit else {
                if token != search.tokens.last || search.isFull { next = token }
                break
            }
        }
        writer.endArray()
        writer.key("next")
        writer.optional(next ?? question.lastRead) { writer, token in writer.hex { token.writeHex(to: &$0) } }
    }

    /// The devices in memory that a question is about, in the order of their tokens.
    private func devices(of question: DeviceQuestion, for caller: Caller) -> [DeviceToken] {
        let filter = DeviceFilter(state: question.state, hold: question.hold)
        var search = self.search(question, for: caller)
        _ = self.engine.look(&search, placesMax: .max)
        return search.tokens.filter { token in
            self.engine.find(token).map { filter.takes(self.engine.snapshot($0)) } ?? false
        }
    }

    /// The topics that a question is about, without those that are unknown; nil stands for all of them.
    func topics(_ name: String?, for caller: Caller) -> Set<TopicIndex>? {
        let names: Set<String>
        switch (name, caller.topics) {
        case (nil, .all): return nil
        case (nil, .only(let own)): names = Set(own)
        case (let name?, _): names = caller.reaches(name) ? [name] : []
        }
        return Set(names.compactMap { name in name.withByteView { self.engine.findTopic($0) } })
    }
}
