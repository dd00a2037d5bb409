package import Engine
package import Policy
import Wire

/// The pending and running tasks of one device, for an answer.
package struct TaskList {
    let device: DeviceSnapshot
    let offset: WallOffset

    /// Writes an object with an array of tasks for each state.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        for state in TaskFilter.State.allCases {
            writer.key(state.rawValue)
            writer.beginArray()
            for task in self.device.tasks where task.isIn(state) {
                writer.beginObject()
                self.writeMembers(of: task, to: &writer)
                writer.endObject()
            }
            writer.endArray()
        }
        writer.endObject()
    }

    /// Writes a task as an object that includes its device, topic and state.
    func write(_ task: TaskSnapshot, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.hex("device") { self.device.token.writeHex(to: &$0) }
        writer.member("topic", self.device.topic)
        let state = task.isIn(.waiting) ? TaskFilter.State.waiting : .running
        writer.member("state", state.rawValue)
        self.writeMembers(of: task, to: &writer)
        writer.endObject()
    }

    private func writeMembers(of snapshot: TaskSnapshot, to writer: inout JSONWriter) {
        let task = snapshot.task
        if task.kind == .urlSession {
            writer.member("session", snapshot.name)
        } else {
            writer.member("identifier", snapshot.name)
        }
        writer.member("kind", task.kind.rawValue)
        writer.member("submittedAt", task.arrivedAt, self.offset)
        self.writeOptions(of: snapshot, to: &writer)
        writer.member("attempts", task.attempts)
        self.writeState(of: snapshot, to: &writer)
        writer.member("why", Reasoning(device: self.device, offset: self.offset).task(snapshot))
    }

    /// Appends the options that the request was submitted with.
    private func writeOptions(of snapshot: TaskSnapshot, to writer: inout JSONWriter) {
        let task = snapshot.task
        switch task.kind {
        case .urlSession:
            writer.member("count", task.transfers)
            return
        case .appRefresh: break
        case .processing:
            writer.member("requiresNetworkConnectivity", task.needs.contains(.network))
            writer.member("requiresExternalPower", task.needs.contains(.externalPower))
        case .continued:
            writer.texts(title: snapshot.details.title, subtitle: snapshot.details.subtitle)
            writer.array("resources", snapshot.details.resources) { $0.string($1) }
            return
        }
        writer.member("earliestBegin", task.waitsSince > task.arrivedAt ? task.waitsSince : nil, self.offset)
    }

    private func writeState(of snapshot: TaskSnapshot, to writer: inout JSONWriter) {
        switch snapshot.state {
        case .waiting(let eligibleAt, let held, _):
            writer.member("eligibleAt", eligibleAt, self.offset)
            writer.member("held", held.first?.name)
        case .running(let wake, let launchedAt, let deadline, let progress):
            writer.member("eligibleAt", nil, self.offset)
            writer.member("held", nil as String?)
            writer.hex("wake") { wake.write(to: &$0) }
            writer.member("launchedAt", launchedAt, self.offset)
            writer.member("deadline", deadline, self.offset)
            writer.member("worker", snapshot.worker)
            guard snapshot.task.kind == .continued else { return }
            writer.member("progress", progress) { writer, progress in progress.write(to: &writer) }
        }
    }
}

extension TaskSnapshot {
    fileprivate func isIn(_ state: TaskFilter.State) -> Bool {
        switch self.state {
        case .waiting: state == .waiting
        case .running: state == .running
        }
    }
}

extension TaskProgress {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("completed", self.completed)
        writer.member("total", self.total)
        writer.texts(title: self.title, subtitle: self.subtitle)
        writer.endObject()
    }
}

extension JSONWriter {
    /// Appends the title and the subtitle of a continued task, if it has them.
    fileprivate mutating func texts(title: String?, subtitle: String?) {
        self.member("title", ifPresent: title)
        self.member("subtitle", ifPresent: subtitle)
    }
}

/// The answer to the submission of a task request.
package struct SubmittedTask: Hashable, Sendable {
    package let identifier: String
    package let kind: TaskKind
    package let answer: TaskAnswer
    /// The difference between wall clock and policy time.
    let offset: WallOffset
    /// A sentence with advice for the caller; nil if there is none.
    var hint: String?

    /// Appends all members to the open object.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("identifier", self.identifier)
        writer.member("kind", self.kind.rawValue)
        writer.member("disposition", self.answer.disposition.rawValue)
        writer.member("eligibleAt", self.answer.eligibleAt, self.offset)
        writer.member("held", self.answer.held?.name)
        writer.member("hint", ifPresent: hint)
    }
}
