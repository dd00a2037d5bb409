package import Wire

/// What a gateway answers about background tasks, for people.
package enum TaskText {
    /// One line about a submission, such as `scheduled, may launch in 15 min (2026-11-23T17:00:00Z)`.
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
        return parts.joined(separator: ", ") + "\n"
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
        return rows.isEmpty ? self.none : self.table([["identifier", "kind", "state", ""]] + rows)
    }

    /// The tasks of all devices.
    ///
    /// - Parameter answer: that of `/v1/tasks`.
    package static func all(_ answer: JSONValue) -> String {
        let tasks = answer["tasks"]?.elements ?? []
        let rows = tasks.map { task in
            [task["device"]?.text ?? "-", task["topic"]?.text ?? "-"] + self.row(task, task["state"]?.text ?? "-")
        }
        return rows.isEmpty ? self.none : self.table([["device", "topic", "identifier", "kind", "state", ""]] + rows)
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
            + self.table(listed).split(separator: "\n").map { "  \($0)" }
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

    /// Columns beside each other, the last as long as it is.
    static func table(_ rows: [[String]]) -> String {
        let harmless = rows.map { $0.map { TerminalText.harmless($0) } }
        let columns = (harmless.first?.count ?? 1) - 1
        let widths = (0..<columns).map { column in harmless.map { $0[column].count }.max() ?? 0 }
        return harmless.map { row in
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            let line = (cells + [row[columns]]).joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed()) + "\n"
        }.joined()
    }
}
