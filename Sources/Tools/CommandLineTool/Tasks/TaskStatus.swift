package import Wire

/// What a gateway says of one task, as far as views need it.
package struct TaskStatus: Hashable, Sendable {
    /// A task of a device, in one launch.
    package struct Key: Hashable, Sendable {
        package let device: String
        package let name: String
        package let submittedAt: Double
        package let wake: String?
    }

    /// How far a continued task is, and the texts that it shows.
    package struct Progress: Hashable, Sendable {
        package let completed: Double
        /// 0 for one that is not known.
        package let total: Double

        /// The share that is done, from 0 to 1; nil when the total is not known.
        package var share: Double? { self.total > 0 ? min(1, max(0, self.completed / self.total)) : nil }
    }

    package let key: Key
    package let topic: String
    package let kind: String
    package let isRunning: Bool
    /// What a person sees of it: the title that was told last, or that of the request, else its identifier.
    package let title: String
    /// Empty for none.
    package let subtitle: String
    /// Nil for a task that has told nothing.
    package private(set) var progress: Progress?
    /// In milliseconds since 1970; nil for one that waits.
    package let deadline: Double?
    /// Why it waits or how far it is, as a line of a list has it.
    package let remark: String

    /// - Parameters:
    ///   - task: one of a list, or of a device's lists.
    ///   - state: which of a device's lists it is in; nil for a task that says so itself.
    package init(_ task: JSONValue, state: String? = nil) {
        let state = state ?? task["state"]?.text ?? ""
        let progress = task["progress"] ?? .null
        let name = task["identifier"]?.text ?? task["session"]?.text ?? "-"
        self.key = Key(
            device: task["device"]?.text ?? "",
            name: name,
            submittedAt: task["submittedAt"]?.number ?? 0,
            wake: task["wake"]?.text
        )
        self.topic = task["topic"]?.text ?? ""
        self.kind = task["kind"]?.text ?? "-"
        self.isRunning = state == "running"
        self.title = progress["title"]?.text ?? task["title"]?.text ?? name
        self.subtitle = progress["subtitle"]?.text ?? task["subtitle"]?.text ?? ""
        self.progress = progress["completed"]?.number.map { completed in
            Progress(completed: completed, total: progress["total"]?.number ?? 0)
        }
        self.deadline = task["deadline"]?.number
        self.remark = TaskText.remark(task, state)
    }

    /// The task with all of it done, as far as it has said how much that is.
    package var finished: TaskStatus {
        var finished = self
        if let total = self.progress?.total, total > 0 { finished.progress = Progress(completed: total, total: total) }
        return finished
    }

    /// Whether it shows a bar.
    package var hasBar: Bool { self.isRunning && self.kind == "continued" }
}

/// How fast a task advances, by what was seen of it.
package struct TaskPace: Sendable {
    /// The speed is judged by so many milliseconds of the past; a task that did not advance in them has stalled.
    package static let span: Int64 = 15_000

    private var points: [(at: Int64, completed: Double)] = []

    package init() {}

    /// The task was so far at a moment, in milliseconds of a clock that never goes back.
    package mutating func saw(_ completed: Double, at now: Int64) {
        self.points.append((now, completed))
        while self.points.count > 2, now - self.points[1].at > Self.span { self.points.removeFirst() }
    }

    /// Units a second; 0 for one that stands, or was seen once.
    package var speed: Double {
        guard let first = self.points.first, let last = self.points.last, last.at > first.at else { return 0 }
        return max(0, (last.completed - first.completed) / Double(last.at - first.at) * 1000)
    }

    /// Whether it has been seen for long enough and has not advanced.
    package var isStalled: Bool {
        guard let first = self.points.first, let last = self.points.last else { return false }
        return last.at - first.at >= Self.span && self.speed <= 0
    }
}
