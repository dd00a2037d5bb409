import Engine
import Wire

/// Who waits for a long list, the first first, and the lists.
///
/// A list passes over every topic or every device with tasks, and may take as long as a thousand pushes: a step writes
/// one, and none while another waits for its commit, so that neither the others nor the memory wait for a crowd of
/// them. A list of devices passes over all there are, and takes several steps.
struct LongLists {
    /// What is listed.
    enum Subject {
        case topics
        case tasks(TaskQuestion)
        case devices(DeviceQuestion, DeviceSearch)
    }

    /// The most devices that a step looks at.
    private static let placesMax = 32_768

    private struct Entry {
        var subject: Subject
        let reply: StreamAddress
        /// Whose topics the list shows.
        let caller: Caller
    }

    private var entries: [Entry] = []
    /// The first entry that has no list yet.
    private var first = 0

    mutating func append(_ subject: Subject, _ reply: StreamAddress, _ caller: Caller) {
        self.entries.append(Entry(subject: subject, reply: reply, caller: caller))
    }

    /// Whether `group` has room for a list that somebody waits for.
    func isNext(_ group: StepGroup) -> Bool { self.first < self.entries.count && !group.hasLongList }

    /// Writes the next list, if it is time.
    mutating func writeNext(to stage: EffectStage, _ workspace: Workspace, _ webhooks: [String: WebhookStatus]) {
        guard self.isNext(stage.group) else { return }
        guard workspace.failure?.durableError != nil || self.isFound(workspace) else { return }
        let entry = self.entries[self.first]
        self.first += 1
        if self.first == self.entries.count {
            self.entries.removeAll()
            self.first = 0
        }
        stage.group.hasLongList = true
        if let failure = workspace.failure, let error = failure.durableError {
            stage.answer(entry.reply, .refused(failure.refusal(error)))
        } else {
            stage.answer(entry.reply, Self.list(entry, workspace, webhooks))
        }
    }

    /// Goes on with the search for what the first entry lists.
    ///
    /// - Returns: whether it has ended.
    private mutating func isFound(_ workspace: Workspace) -> Bool {
        guard case .devices(let question, var search) = self.entries[self.first].subject else { return true }
        let isFound = workspace.engine.look(&search, placesMax: Self.placesMax)
        self.entries[self.first].subject = .devices(question, search)
        return isFound
    }

    private static func list(_ entry: Entry, _ workspace: Workspace, _ webhooks: [String: WebhookStatus]) -> Outcome {
        var writer = JSONWriter()
        writer.beginObject()
        switch entry.subject {
        case .topics:
            writer.key("topics")
            workspace.writeTopics(for: entry.caller, webhooks, to: &writer)
        case .tasks(let question):
            writer.key("tasks")
            workspace.writeTasks(question, for: entry.caller, to: &writer)
        case .devices(let question, let search): workspace.writeDevices(question, search, to: &writer)
        }
        writer.endObject()
        return .json(writer)
    }
}
