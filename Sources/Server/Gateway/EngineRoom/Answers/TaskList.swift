package import Engine
package import Policy
import Wire

/// The pending and running tasks of one device, as answers show them.
package struct TaskList {
    let device: DeviceSnapshot
    let offset: WallOffset

    /// Appends an object of both lists.
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

    /// Appends a task as an object that names its device.
    func write(_ task: TaskSnapshot, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("device")
        writer.hex { self.device.token.writeHex(to: &$0) }
        writer.key("topic")
        writer.string(self.device.topic)
        writer.key("state")
        writer.string(task.isIn(.waiting) ? TaskFilter.State.waiting.rawValue : TaskFilter.State.running.rawValue)
        self.writeMembers(of: task, to: &writer)
        writer.endObject()
    }

    private func writeMembers(of snapshot: TaskSnapshot, to writer: inout JSONWriter) {
        let task = snapshot.task
        if task.kind == .urlSession {
            writer.key("session")
            writer.string(snapshot.name)
        } else {
            writer.key("identifier")
            writer.string(snapshot.name)
        }
        writer.key("kind")
        writer.string(task.kind.rawValue)
        writer.key("submittedAt")
        writer.moment(task.arrivedAt, self.offset)
        self.writeOptions(of: snapshot, to: &writer)
        writer.key("attempts")
        writer.integer(task.attempts)
        self.writeState(of: snapshot, to: &writer)
        writer.key("why")
        writer.string(Reasoning(device: self.device, offset: self.offset).task(snapshot))
    }

    /// Appends the options with which the request was submitted.
    private func writeOptions(of snapshot: TaskSnapshot, to writer: inout JSONWriter) {
        let task = snapshot.task
        switch task.kind {
        case .urlSession:
            writer.key("count")
            writer.integer(task.transfers)
            return
        case .appRefresh: break
        case .processing:
            writer.key("requiresNetworkConnectivity")
            writer.bool(task.needs.contains(.network))
            writer.key("requiresExternalPower")
            writer.bool(task.needs.contains(.externalPower))
        case .continued:
            writer.texts(title: snapshot.details.title, subtitle: snapshot.details.subtitle)
            writer.key("resources")
            writer.beginArray()
            for resource in snapshot.details.resources { writer.string(resource) }
            writer.endArray()
            return
        }
        writer.key("earliestBegin")
        writer.moment(task.waitsSince > task.arrivedAt ? task.waitsSince : nil, self.offset)
    }

    private func writeState(of snapshot: TaskSnapshot, to writer: inout JSONWriter) {
        switch snapshot.state {
        case .waiting(let eligibleAt, let held, _):
            writer.key("eligibleAt")
            writer.moment(eligibleAt, self.offset)
            writer.key("held")
            writer.optional(held.first) { writer, code in writer.string(code.name) }
        case .running(let wake, let launchedAt, let deadline, let progress):
            writer.key("eligibleAt")
            writer.null()
            writer.key("held")
            writer.null()
            writer.key("wake")
            writer.hex { wake.write(to: &$0) }
            writer.key("launchedAt")
            writer.moment(launchedAt, self.offset)
            writer.key("deadline")
            writer.moment(deadline, self.offset)
            writer.key("worker")
            writer.optional(snapshot.worker) { writer, name in writer.string(name) }
            guard snapshot.task.kind == .continued else { return }
            writer.key("progress")
            writer.optional(progress) { writer, progress in progress.write(to: &writer) }
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
        writer.key("completed")
        writer.integer(self.completed)
        writer.key("total")
        writer.integer(self.total)
        writer.texts(title: self.title, subtitle: self.subtitle)
        writer.endObject()
    }
}

extension JSONWriter {
    /// Writes the texts of a continued task, if it has any.
    fileprivate mutating func texts(title: String?, subtitle: String?) {
        if let title {
            self.key("title")
            self.string(title)
        }
        if let subtitle {
            self.key("subtitle")
            self.string(subtitle)
        }
    }
}

/// The answer to the submission of a request.
package struct SubmittedTask: Hashable, Sendable {
    package let identifier: String
    package let kind: TaskKind
    package let answer: TaskAnswer
    /// The difference between wall clock and policy time.
    let offset: WallOffset
    /// A sentence for the caller; nil if there is none.
    var hint: String?

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("identifier")
        writer.string(self.identifier)
        writer.key("kind")
        writer.string(self.kind.rawValue)
        writer.key("disposition")
        writer.string(self.answer.disposition.rawValue)
        writer.key("eligibleAt")
        writer.moment(self.answer.eligibleAt, self.offset)
        writer.key("held")
        writer.optional(self.answer.held) { writer, code in writer.string(code.name) }
        if let hint {
            writer.key("hint")
            writer.string(hint)
        }
        writer.endObject()
    }
}
