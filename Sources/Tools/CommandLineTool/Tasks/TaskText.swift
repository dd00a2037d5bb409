package import Wire

/// Formats the gateway's answers about background tasks.
package enum TaskText {
    /// Returns a line about a submission, such as `scheduled, may launch in 15 min (2026-11-23T17:00:00Z)`. If the
    /// gateway gives a hint, it is on a second line.
    ///
    /// - Parameters:
    ///   - answer: the gateway's answer.
    ///   - now: the time in milliseconds since 1970.
    package static func submitted(_ answer: JSONValue, now: Int64) -> String {
        let disposition = answer["disposition"]?.text ?? "submitted"
        guard disposition != "launched" else { return "launched\n" }
        var parts = [disposition]
        if let eligible = answer["eligibleAt"]?.number {
            parts.append("may launch in \(TimeText.wait(until: eligible, now: now)) (\(TimeText.due(eligible)))")
        }
        if let held = answer["held"]?.text {
            parts.append(held == "worker" ? "waits for a free slot of a worker that takes it" : "held: \(held)")
        }
        let hint = answer["hint"]?.text.map { "hint: \(TerminalText.sanitized($0))\n" } ?? ""
        return parts.joined(separator: ", ") + "\n" + hint
    }

    /// Returns the tasks of one device, running tasks first.
    ///
    /// - Parameters:
    ///   - answer: the answer of `/v1/devices/<token>/tasks`.
    ///   - kind: the kind to show; nil for all kinds.
    ///   - state: the state to show; nil for all states.
    package static func device(_ answer: JSONValue, kind: String? = nil, state: String? = nil) -> String {
        let rows = TaskStatus.list(answer, kind: kind, state: state).map(\.row)
        return rows.isEmpty ? self.none : TableText.lines([["identifier", "kind", "state", ""]] + rows)
    }

    /// Returns the tasks of all devices.
    ///
    /// - Parameter answer: the answer of `/v1/tasks`.
    package static func all(_ answer: JSONValue) -> String {
        let rows = TaskStatus.list(answer).map { [$0.key.device.isEmpty ? "-" : $0.key.device, $0.topic] + $0.row }
        return rows.isEmpty
            ? self.none : TableText.lines([["device", "topic", "identifier", "kind", "state", ""]] + rows)
    }

    /// Returns lines about the tasks of a device, with the reasons for their states; empty without tasks.
    ///
    /// - Parameter device: the answer of `/v1/devices/<token>`. Its member `tasks` has the form of the answer of
    ///   `/v1/devices/<token>/tasks`.
    package static func explanation(_ device: JSONValue) -> [String] {
        let rows = TaskStatus.list(device["tasks"] ?? .null).map(\.row)
        guard !rows.isEmpty else { return [] }
        return ["", "tasks, running ones first:"] + TableText.lines(rows).split(separator: "\n").map { "  \($0)" }
    }

    /// Returns a line about the use of a device; nil if the gateway reports no use.
    ///
    /// - Parameter usage: the member `usage` of a device's explanation.
    package static func usage(_ usage: JSONValue?) -> String? {
        guard let usage, case .object = usage else { return nil }
        let last = usage["lastUse"]?.number.map { "last use \(TimeText.instant($0))" } ?? "never used"
        let hours = (usage["habitualHours"]?.elements ?? []).compactMap(\.number).map { JSONNumber.text(of: $0) }
        return hours.isEmpty ? last : "\(last), habitually at hours \(hours.joined(separator: ", ")) UTC"
    }

    // MARK: Rows

    /// Returns the reason why a task is pending, or the progress of a running task.
    fileprivate static func remark(_ task: JSONValue, _ state: String) -> String {
        var parts: [String] = []
        if let progress = task["progress"], case .object = progress { parts.append(self.progress(progress)) }
        if let count = task["count"]?.number { parts.append("\(JSONNumber.text(of: count)) finished") }
        if state == "running" {
            if let deadline = task["deadline"]?.number { parts.append("deadline \(TimeText.due(deadline))") }
            if let attempts = task["attempts"]?.number { parts.append("attempt \(JSONNumber.text(of: attempts))") }
            if let worker = task["worker"]?.text { parts.append("worker \(worker)") }
        } else if let why = task["why"]?.text {
            parts.append(why)
        } else {
            if let held = task["held"]?.text { parts.append("held: \(held)") }
            if let eligible = task["eligibleAt"]?.number { parts.append("may launch \(TimeText.due(eligible))") }
        }
        return parts.joined(separator: ", ")
    }

    /// Formats progress, such as `10/100 Exporting, frame 10`, or `10 done` if the total is unknown.
    private static func progress(_ progress: JSONValue) -> String {
        let counts = ["completed", "total"].map { TableText.number(progress[$0]) }
        let texts = ["title", "subtitle"].compactMap { progress[$0]?.text }
        let done = progress["total"]?.number == 0 ? "\(counts[0]) done" : counts.joined(separator: "/")
        return done + (texts.isEmpty ? "" : " \(texts.joined(separator: ", "))")
    }

    private static let none = "no tasks\n"
}

/// The state of a task, for views.
package struct TaskStatus: Hashable, Sendable {
    /// The key of one launch of a task, or of a pending request.
    package struct Key: Hashable, Sendable {
        package let device: String
        package let name: String
        package let submittedAt: Double
        package let wake: String?
    }

    /// The progress of a continued task.
    package struct Progress: Hashable, Sendable {
        package let completed: Double
        /// The total number of units; 0 if unknown.
        package let total: Double

        /// The completed fraction, from 0 to 1; nil if the total is unknown.
        package var share: Double? { self.total > 0 ? min(1, max(0, self.completed / self.total)) : nil }
    }

    package let key: Key
    package let kind: String
    let topic: String
    let state: String
    /// The title that a person sees: the last reported title, the title of the request, or the identifier.
    package let title: String
    /// The text below the title; empty if there is none.
    package let subtitle: String
    /// The progress; nil if the task has not reported any.
    package private(set) var progress: Progress?
    /// The deadline in milliseconds since 1970; nil for a pending task.
    package let deadline: Double?
    /// The reason why the task is pending, or its progress, as a cell of a list.
    package let remark: String

    /// Returns the tasks in an answer about all devices, or the running and then the waiting tasks in an answer about
    /// one device.
    ///
    /// - Parameters:
    ///   - answer: the answer.
    ///   - kind: the kind of the tasks; nil for all kinds.
    ///   - state: the state of the tasks; nil for all states.
    static func list(_ answer: JSONValue, kind: String? = nil, state: String? = nil) -> [TaskStatus] {
        let ofDevice = ["running", "waiting"].flatMap { name in
            (answer[name]?.elements ?? []).map { TaskStatus($0, state: name) }
        }
        return ((answer["tasks"]?.elements ?? []).map { TaskStatus($0) } + ofDevice).filter { task in
            (kind == nil || task.kind == kind) && (state == nil || task.state == state)
        }
    }

    /// - Parameters:
    ///   - task: a task of the list of all tasks or of a device's lists.
    ///   - state: the member of a device's answer that lists the task; nil if the task has a member `state`.
    package init(_ task: JSONValue, state: String? = nil) {
        let state = state ?? task["state"]?.text ?? "-"
        let progress = task["progress"] ?? .null
        let name = task["identifier"]?.text ?? task["session"]?.text ?? "-"
        self.key = Key(
            device: task["device"]?.text ?? "",
            name: name,
            submittedAt: task["submittedAt"]?.number ?? 0,
            wake: task["wake"]?.text
        )
        self.kind = task["kind"]?.text ?? "-"
        self.topic = task["topic"]?.text ?? "-"
        self.state = state
        self.title = progress["title"]?.text ?? task["title"]?.text ?? name
        self.subtitle = progress["subtitle"]?.text ?? task["subtitle"]?.text ?? ""
        self.progress = progress["completed"]?.number.map { completed in
            Progress(completed: completed, total: progress["total"]?.number ?? 0)
        }
        self.deadline = task["deadline"]?.number
        self.remark = TaskText.remark(task, state)
    }

    /// A copy of this status in which the progress equals the total.
    package var finished: TaskStatus {
        var finished = self
        if let total = self.progress?.total, total > 0 { finished.progress = Progress(completed: total, total: total) }
        return finished
    }

    package var isRunning: Bool { self.state == "running" }

    /// The cells of a table.
    fileprivate var row: [String] { [self.key.name, self.kind, self.state, self.remark] }

    /// True if views show the task with a progress bar.
    package var hasBar: Bool { self.isRunning && self.kind == "continued" }
}

/// A meter for the rate of a growing count, such as completed units or bytes.
///
/// A pure type: times are milliseconds on the caller's clock.
package struct RateMeter: Sendable {
    /// The period over which the rate is measured, in milliseconds. A count that does not grow for this long has
    /// stalled.
    private let window: Int64
    /// The samples of the window, and one from before it.
    private var samples: [(at: Int64, count: Double)] = []

    package init(window: Int64 = 15_000) {
        self.window = window
    }

    /// Records the count. If it is less than before, the measurement starts again.
    package mutating func saw(_ count: Double, at now: Int64) {
        if let last = self.samples.last, count < last.count { self.samples = [] }
        self.samples.append((now, count))
        while self.samples.count > 1, now - self.samples[1].at > self.window { self.samples.removeFirst() }
    }

    /// The time between the first and the last sample.
    private var span: Int64 { (self.samples.last?.at ?? 0) - (self.samples.first?.at ?? 0) }

    /// The rate per second; nil if too little time has passed.
    package var rate: Double? {
        guard let first = self.samples.first, let last = self.samples.last, self.span >= 200 else { return nil }
        return (last.count - first.count) * 1000 / Double(self.span)
    }

    /// True if the count was observed for the whole period and did not grow in it.
    package var isStalled: Bool { self.span >= self.window && self.rate == 0 }
}

/// The progress of a continued task as one line: a bar, followed by numbers.
package enum ProgressBar {
    /// The range of the bar's width, in characters. In a narrower line, only the numbers are shown.
    package static let widths = 8...40
    /// The characters for one to seven eighths of a cell.
    private static let eighths: [Character] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"]

    /// Returns the bar and its numbers as a line of `width` characters.
    ///
    /// - Parameters:
    ///   - status: the state of a running continued task.
    ///   - pace: the speed of the task.
    ///   - width: the available width, in characters.
    ///   - now: the time in milliseconds since 1970.
    package static func line(_ status: TaskStatus, _ pace: RateMeter, width: Int, now: Int64) -> StyledLine {
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

    /// Returns the filled and the empty part of a bar of `length` characters. If `share` is nil, the bar is empty.
    package static func bar(_ share: Double?, _ length: Int) -> (done: String, left: String) {
        let all = max(0, length) * 8
        let done = min(all, max(0, Int(saturating: (share ?? 0) * Double(all))))
        var text = String(repeating: "█", count: done / 8)
        if done % 8 > 0 { text.append(self.eighths[done % 8 - 1]) }
        return (text, String(repeating: "·", count: max(0, length) - text.count))
    }

    /// Formats the reported progress, such as `40 %  40 of 100`.
    package static func counts(_ status: TaskStatus) -> String {
        guard let progress = status.progress else { return "no progress told yet" }
        let completed = self.count(progress.completed)
        guard let share = progress.share else { return "\(completed) done" }
        return "\(Int(saturating: share * 100)) %  \(completed) of \(self.count(progress.total))"
    }

    /// Formats the progress with speed and remaining time, such as `40 %  40 of 100  8.0/s  0:07 left`.
    package static func facts(_ status: TaskStatus, _ pace: RateMeter, now: Int64) -> String {
        let untilDeadline = status.deadline.map { "\(self.clock(($0 - Double(now)) / 1000)) to its deadline" }
        var parts = [self.counts(status)]
        guard let progress = status.progress else {
            return (parts + [untilDeadline].compactMap(\.self)).joined(separator: "  ")
        }
        let speed = pace.rate ?? 0
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

    /// Formats a duration, such as `0:07`, `12:30` or `3:05:00`.
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
