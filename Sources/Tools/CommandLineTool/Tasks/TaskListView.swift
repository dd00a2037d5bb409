import Platform
package import Wire

/// The data of `wakegate task list --watch`: the last known tasks, and the speed of each.
package struct TaskListModel: Sendable {
    /// The owner of the tasks, for the title of the view.
    package let title: String
    /// The kind to show; nil for all kinds.
    private let kind: String?
    private let state: String?
    /// The tasks in three groups: running continued tasks, other running tasks, and pending tasks. Nil before the first
    /// answer.
    package private(set) var tasks: [TaskStatus]?
    /// The reason why the gateway does not answer; nil while it answers.
    package private(set) var trouble: String?
    private var paces: [TaskStatus.Key: RateMeter] = [:]
    /// The last line printed for each task, if the output is not a terminal.
    private var written: [TaskStatus.Key: String] = [:]

    package init(title: String, kind: String? = nil, state: String? = nil) {
        self.title = title
        self.kind = kind
        self.state = state
    }

    /// Sets the tasks from an answer of `/v1/tasks` or an answer about the tasks of one device.
    ///
    /// - Parameters:
    ///   - answer: the answer.
    ///   - now: the time of a monotonic clock, in milliseconds.
    package mutating func take(_ answer: JSONValue, at now: Int64) {
        self.trouble = nil
        let tasks = TaskStatus.list(answer, kind: self.kind, state: self.state)
        let ranks = tasks.map { $0.hasBar ? 0 : $0.isRunning ? 1 : 2 }
        self.tasks = (0...2).flatMap { rank in zip(tasks, ranks).filter { $0.1 == rank }.map(\.0) }
        var paces: [TaskStatus.Key: RateMeter] = [:]
        for task in tasks where task.hasBar {
            var pace = self.paces[task.key] ?? RateMeter()
            pace.saw(task.progress?.completed ?? 0, at: now)
            paces[task.key] = pace
        }
        self.paces = paces
    }

    /// Records that the gateway does not answer.
    package mutating func lost(_ trouble: String) { self.trouble = trouble }

    package func pace(of task: TaskStatus) -> RateMeter { self.paces[task.key] ?? RateMeter() }

    /// Returns a line for each new or changed task since the last call, and for each task that has disappeared.
    package mutating func changes() -> String {
        let tasks = self.tasks ?? []
        let shown = Dictionary(tasks.map { ($0.key, self.line(of: $0)) }) { $1 }
        let gone = self.written.keys.filter { shown[$0] == nil }.map { key in
            let isOn = tasks.contains { $0.key.name == key.name && $0.key.submittedAt == key.submittedAt }
            return isOn ? "" : "\(Self.place(key)) is over\n"
        }
        let lines = tasks.compactMap { task -> String? in
            let line = shown[task.key] ?? ""
            return self.written[task.key] == line ? nil : "\(line)\n"
        }
        self.written = shown
        return (gone.sorted() + lines).joined()
    }

    private func line(of task: TaskStatus) -> String {
        let state = task.isRunning ? "running" : "waiting"
        let texts = [task.title, task.subtitle].filter { !$0.isEmpty && $0 != task.key.name }.joined(separator: ": ")
        let facts = task.hasBar ? ProgressBar.counts(task) : task.isRunning ? "" : task.remark
        return TerminalText.sanitized(
            [Self.place(task.key), task.kind, state, facts, task.isRunning ? texts : ""].filter { !$0.isEmpty }
                .joined(separator: "  ")
        )
    }

    private static func place(_ key: TaskStatus.Key) -> String {
        key.device.isEmpty ? key.name : "\(key.name)  \(key.device)"
    }
}

/// A drawing of the tasks as lines for a terminal. Running continued tasks have a bar.
package struct TaskListView: Sendable {
    private let model: TaskListModel
    private let size: Terminal.Size
    private let now: Int64

    /// - Parameters:
    ///   - model: the data to draw.
    ///   - size: the size of the terminal.
    ///   - now: the time in milliseconds since 1970.
    package init(_ model: TaskListModel, size: Terminal.Size, now: Int64) {
        self.model = model
        self.size = size
        self.now = now
    }

    /// The number of digits of a device token to show.
    private static let deviceDigits = 10

    /// The lines of the view, no more than the terminal has rows.
    package var lines: [StyledLine] {
        var lines = [self.head]
        if let trouble = self.model.trouble { lines.append(StyledLine(trouble, .bad)) }
        guard let tasks = self.model.tasks else {
            return self.size.framed(lines + [StyledLine("waiting for the gateway", .faint)])
        }
        if tasks.isEmpty { lines.append(StyledLine("no tasks", .faint)) }
        // The last line and the number of omitted tasks also need rows.
        var room = self.size.height - lines.count - 2
        for (index, task) in tasks.enumerated() {
            let block = task.hasBar ? self.block(of: task) : self.rows(of: task)
            guard block.count <= room else {
                lines.append(StyledLine("and \(tasks.count - index) more", .faint))
                break
            }
            room -= block.count
            lines += block
        }
        return self.size.framed(lines)
    }

    private var head: StyledLine {
        var line = StyledLine("WakeGate ", .strong)
        line.append("\(self.model.title)  ")
        guard let tasks = self.model.tasks else { return line }
        if self.model.trouble != nil { line.append("gone  ", .bad) }
        let running = tasks.count { $0.isRunning }
        line.append("\(running) running, \(tasks.count - running) waiting", .faint)
        return line
    }

    private func block(of task: TaskStatus) -> [StyledLine] {
        var line = StyledLine(task.title, .strong)
        if !task.subtitle.isEmpty { line.append("  \(task.subtitle)") }
        let name = task.title == task.key.name ? [] : [task.key.name]
        let place = (name + [self.device(of: task)]).filter { !$0.isEmpty }.joined(separator: "  ")
        if !place.isEmpty { line.append("  \(place)", .faint) }
        return [line, ProgressBar.line(task, self.model.pace(of: task), width: self.size.width, now: self.now)]
    }

    /// Returns the lines of a task: one line, and further lines for the remark if it does not fit in the first.
    private func rows(of task: TaskStatus) -> [StyledLine] {
        var line = StyledLine()
        line.append("\(task.key.name)  \(task.kind)  ")
        line.append(task.isRunning ? "running" : "waiting", task.isRunning ? .first : .warning)
        let device = self.device(of: task)
        if !device.isEmpty { line.append("  \(device)", .faint) }
        guard line.count + 2 + task.remark.count > self.size.width else {
            line.append("  \(task.remark)", .faint)
            return [line]
        }
        return [line]
            + WrappedText.lines("  \(task.remark)", width: self.size.width).map { StyledLine($0, .faint) }
    }

    private func device(of task: TaskStatus) -> String {
        let device = task.key.device
        return device.count > Self.deviceDigits ? "\(device.prefix(Self.deviceDigits))…" : device
    }
}

/// The live view of `wakegate task list --watch`.
extension TaskListModel: WatchedView {
    mutating func take(_ news: WatchConnection.News) {
        switch news {
        case .past, .opened: break
        case .event(_, let answer): self.take(answer, at: SystemClock.monotonic)
        case .lost(let cause, _): self.lost(WatchConnection.News.trouble(cause))
        }
    }

    func lines(_ size: Terminal.Size) -> [StyledLine] {
        TaskListView(self, size: size, now: SystemClock.wall).lines
    }

    mutating func text() -> String { self.changes() }
}
