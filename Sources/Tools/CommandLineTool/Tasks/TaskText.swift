package import Wire

/// What a gateway answers about background tasks, for people.
package enum TaskText {
    /// One line about a submission, such as `scheduled, may launch in 15 min (2026-11-23T17:00:00Z)`, and one for a
    /// hint of the gateway.
    ///
    /// - Parameters:
    ///   - answer: that of the gateway.
    ///   - now: in milliseconds since 1970.
    package static func submitted(_ answer: JSONValue, now: Int64) -> String {
        let disposition = answer["disposition"]?.text ?? "submitted"
        guard disposition != "launched" else { return "launched\n" }
        var parts = [disposition]
        if let eligible = answer["eligibleAt"]?.number {
            parts.append("may launch in \(TimeText.wait(until: eligible, now: now)) (\(TimeText.instant(eligible)))")
        }
        if let held = answer["held"]?.text {
            parts.append(held == "worker" ? "waits for a free slot of a worker that takes it" : "held: \(held)")
        }
        let hint = answer["hint"]?.text.map { "hint: \(TerminalText.harmless($0))\n" } ?? ""
        return parts.joined(separator: ", ") + "\n" + hint
    }

    /// The tasks of one device, those that run first.
    ///
    /// - Parameters:
    ///   - answer: that of `/v1/devices/<token>/tasks`.
    ///   - isShown: which tasks are shown.
    package static func device(_ answer: JSONValue, where isShown: (_ task: JSONValue, _ state: String) -> Bool)
        -> String
    {
        let rows = ["running", "waiting"].flatMap { state in
            (answer[state]?.elements ?? []).filter { isShown($0, state) }.map { self.row($0, state) }
        }
        return rows.isEmpty ? self.none : TableText.lines([["identifier", "kind", "state", ""]] + rows)
    }

    /// The tasks of all devices.
    ///
    /// - Parameter answer: that of `/v1/tasks`.
    package static func all(_ answer: JSONValue) -> String {
        let tasks = answer["tasks"]?.elements ?? []
        let rows = tasks.map { task in
            [task["device"]?.text ?? "-", task["topic"]?.text ?? "-"] + self.row(task, task["state"]?.text ?? "-")
        }
        return rows.isEmpty
            ? self.none : TableText.lines([["device", "topic", "identifier", "kind", "state", ""]] + rows)
    }

    /// Lines about the tasks of a device in its explanation, each with the reason; empty without any.
    ///
    /// - Parameter device: the answer of `/v1/devices/<token>`, whose `tasks` is as that of the route for tasks.
    package static func explanation(_ device: JSONValue) -> [String] {
        let tasks = device["tasks"] ?? .null
        let listed = ["running", "waiting"].flatMap { state in
            (tasks[state]?.elements ?? []).map { self.row($0, state) }
        }
        guard !listed.isEmpty else { return [] }
        return ["", "tasks, those that run first:"]
            + TableText.lines(listed).split(separator: "\n").map { "  \($0)" }
    }

    /// One line about the use of a device; nil when the gateway tells nothing of it.
    ///
    /// - Parameter usage: the member of an explanation.
    package static func usage(_ usage: JSONValue?) -> String? {
        guard let usage, case .object = usage else { return nil }
        let last = usage["lastUse"]?.number.map { "last use \(TimeText.instant($0))" } ?? "never used"
        let hours = (usage["habitualHours"]?.elements ?? []).compactMap(\.number).map { JSONNumber.text(of: $0) }
        return hours.isEmpty ? last : "\(last), habitually at hours \(hours.joined(separator: ", ")) UTC"
    }

    // MARK: Rows

    private static func row(_ task: JSONValue, _ state: String) -> [String] {
        let name = task["identifier"]?.text ?? task["session"]?.text ?? "-"
        return [name, task["kind"]?.text ?? "-", state, self.remark(task, state)]
    }

    /// Why a task waits, or how far one is that runs.
    static func remark(_ task: JSONValue, _ state: String) -> String {
        var parts: [String] = []
        if let progress = task["progress"], case .object = progress { parts.append(self.progress(progress)) }
        if let count = task["count"]?.number { parts.append("\(JSONNumber.text(of: count)) finished") }
        if state == "running" {
            if let deadline = task["deadline"]?.number { parts.append("deadline \(TimeText.instant(deadline))") }
            if let attempts = task["attempts"]?.number { parts.append("attempt \(JSONNumber.text(of: attempts))") }
        } else if let why = task["why"]?.text {
            parts.append(why)
        } else {
            if let held = task["held"]?.text { parts.append("held: \(held)") }
            if let eligible = task["eligibleAt"]?.number { parts.append("may launch \(TimeText.instant(eligible))") }
        }
        return parts.joined(separator: ", ")
    }

    /// Such as `10/100 Exporting, frame 10`, or `10 done` of a total that is not known.
    private static func progress(_ progress: JSONValue) -> String {
        let counts = ["completed", "total"].map { progress[$0]?.number.map { JSONNumber.text(of: $0) } ?? "-" }
        let texts = ["title", "subtitle"].compactMap { progress[$0]?.text }
        let done = progress["total"]?.number == 0 ? "\(counts[0]) done" : counts.joined(separator: "/")
        return done + (texts.isEmpty ? "" : " \(texts.joined(separator: ", "))")
    }

    private static let none = "no tasks\n"
}

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

/// How far a continued task is, as a line of a terminal: a bar, and numbers beside it.
package enum ProgressBar {
    /// The widest that a bar is, in characters, and the narrowest; below that there are numbers alone.
    package static let widths = 8...40
    /// Eighths of a character, but for none and all of it.
    private static let eighths: [Character] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"]

    /// The bar and its numbers in `width` characters.
    ///
    /// - Parameters:
    ///   - status: of a continued task that runs.
    ///   - pace: how fast it is.
    ///   - width: how many characters there are.
    ///   - now: in milliseconds since 1970.
    package static func line(_ status: TaskStatus, _ pace: TaskPace, width: Int, now: Int64) -> StyledLine {
        let facts = self.facts(status, pace, now: now)
        let room = width - facts.count - 2
        var line = StyledLine()
        if room >= self.widths.lowerBound {
            let length = min(room, self.widths.upperBound)
            let (done, left) = self.bar(status.progress?.share, length)
            line.append(done, pace.isStalled ? .warning : .first)
            line.append(left, .faint)
            line.append("  ")
        }
        line.append(facts, pace.isStalled ? .warning : .plain)
        return line
    }

    /// What is done and what is left of a bar of so many characters; one without a share has all of it left.
    package static func bar(_ share: Double?, _ length: Int) -> (done: String, left: String) {
        let all = max(0, length) * 8
        let done = min(all, max(0, Int(saturating: (share ?? 0) * Double(all))))
        var text = String(repeating: "█", count: done / 8)
        if done % 8 > 0 { text.append(self.eighths[done % 8 - 1]) }
        return (text, String(repeating: "·", count: max(0, length) - text.count))
    }

    /// What was told of a task: such as `40 %  40 of 100`.
    package static func counts(_ status: TaskStatus) -> String {
        guard let progress = status.progress else { return "no progress told yet" }
        let completed = self.count(progress.completed)
        guard let share = progress.share else { return "\(completed) done" }
        return "\(Int(saturating: share * 100)) %  \(completed) of \(self.count(progress.total))"
    }

    /// Such as `40 %  40 of 100  8.0/s  0:07 left`.
    package static func facts(_ status: TaskStatus, _ pace: TaskPace, now: Int64) -> String {
        let untilDeadline = status.deadline.map { "\(self.clock(($0 - Double(now)) / 1000)) to its deadline" }
        var parts = [self.counts(status)]
        guard let progress = status.progress else {
            return (parts + [untilDeadline].compactMap(\.self)).joined(separator: "  ")
        }
        let speed = pace.speed
        if pace.isStalled, progress.share != 1 {
            parts.append("stalled")
            if let untilDeadline { parts.append(untilDeadline) }
        } else if speed > 0 {
            parts.append("\(speed >= 10 ? self.count(speed.rounded()) : self.tenths(speed))/s")
            let left = progress.total - progress.completed
            if left > 0, progress.total > 0 { parts.append("\(self.clock(left / speed)) left") }
        }
        return parts.joined(separator: "  ")
    }

    /// A duration such as `0:07`, `12:30` or `3:05:00`.
    package static func clock(_ seconds: Double) -> String {
        let whole = max(0, min(Int(saturating: seconds.rounded()), 359_999))
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
        let minutes = whole / 60 % 60
        return whole < 3600
            ? "\(minutes):\(two(whole % 60))" : "\(whole / 3600):\(two(minutes)):\(two(whole % 60))"
    }

    private static func count(_ number: Double) -> String { String(Int(saturating: number)) }

    private static func tenths(_ number: Double) -> String {
        let tenths = Int(saturating: (number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
