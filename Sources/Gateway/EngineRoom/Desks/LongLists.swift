import Access
import Answers
import Bytes
import WakeDispatch

/// Who waits for a long list, the first first, and the lists.
///
/// A list passes over every topic or every device with tasks, and may take as long as a thousand pushes: a step writes
/// one, and none while another waits for its commit, so that neither the others nor the memory wait for a crowd of
/// them.
struct LongLists {
    /// What is listed.
    enum Subject {
        case topics
        case tasks(TaskQuestion)
    }

    private struct Entry {
        let subject: Subject
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
        }
        writer.endObject()
        return .json(writer)
    }
}
