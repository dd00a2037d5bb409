import Policy
import Wire

/// Traces of the simulator.
enum TraceTarget {
    /// A push may specify a thousand million attempts, and the simulator would perform all of them.
    private static let overrides = [("maxAttempts", 3.0)]

    static func check(_ input: ByteView) throws(BrokenPromise) {
        let lines = input.string.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var output: [String] = []
        do throws(TraceError) {
            try Simulator.run(trace: lines, overrides: self.overrides) { output.append($0) }
        } catch {
            try promise(error.line.map { (1...lines.count).contains($0) } == true, "the fault has no line: \(error)")
            return try promise(!error.fault.isEmpty && !error.remedy.isEmpty, "the fault says nothing: \(error)")
        }
        try self.checkOutcomes(output)
    }

    private static func checkOutcomes(_ output: [String]) throws(BrokenPromise) {
        var latest: Int64 = 0
        var events: [String: Int] = [:]
        for line in output.dropLast() {
            guard let outcome = try? JSONReader.read(line), case .number(let time)? = outcome["t"],
                case .exact(let moment) = time.milliseconds, case .string(let event)? = outcome["event"]
            else { throw BrokenPromise("an outcome cannot be read: \(line)") }
            try promise(moment >= latest, "time runs backwards: \(line)")
            latest = moment
            let subject = outcome["apnsID"] != nil ? "" : outcome["task"] != nil ? "tasks." : "sessions."
            events[subject + event, default: 0] += 1
        }
        guard let last = output.last, let summary = (try? JSONReader.read(last))?["summary"] else {
            throw BrokenPromise("the summary is missing")
        }
        let counts = Dictionary(uniqueKeysWithValues: summary.members.map { ($0.name, self.count($0.value)) })
        let ends = counts.filter { $0.key.hasPrefix("discarded.") }.values.reduce(0, +)
        let accounted = ["completed", "coalesced", "pending", "inFlight"].reduce(ends) { $0 + (counts[$1] ?? 0) }
        try promise(counts["accepted"] ?? 0 == accounted, "the books do not balance: \(last)")
        try promise(counts["accepted"] ?? 0 == events["push"] ?? 0, "not every push has its line: \(last)")
        try promise(counts["launched"] ?? 0 == events["launch"] ?? 0, "not every launch has its line: \(last)")
        try self.checkTasks(counts, events, last)
    }

    private static func checkTasks(
        _ counts: [String: Int],
        _ events: [String: Int],
        _ last: String
    ) throws(BrokenPromise) {
        func sum(_ prefix: String) -> Int { counts.filter { $0.key.hasPrefix(prefix) }.values.reduce(0, +) }
        let ends = sum("tasks.discarded.") + sum("tasks.results.") - (counts["tasks.results.lost"] ?? 0)
        let tasks = ["tasks.replaced", "tasks.cancelled", "tasks.waiting", "tasks.inFlight"]
        let tasksAccounted = tasks.reduce(ends) { $0 + (counts[$1] ?? 0) }
        try promise(counts["tasks.submitted"] ?? 0 == tasksAccounted, "the books of tasks do not balance: \(last)")
        let sessions = ["sessions.completed", "sessions.waiting", "sessions.inFlight"]
        let accounted = sessions.reduce(sum("sessions.discarded.")) { $0 + (counts[$1] ?? 0) }
        try promise(counts["sessions.finished"] ?? 0 == accounted, "the books of sessions do not balance: \(last)")
        let submitted = (counts["tasks.submitted"] ?? 0) + sum("tasks.refused.")
        try promise(submitted == events["tasks.submit"] ?? 0, "not every submission has its line: \(last)")
        for kind in ["tasks", "sessions"] {
            try promise(
                sum("\(kind).results.") == events["\(kind).result"] ?? 0,
                "not every result has its line: \(last)"
            )
        }
    }

    private static func count(_ value: JSONValue) -> Int {
        guard case .number(let number) = value else { return -1 }
        return Int(number.text) ?? -1
    }
}
