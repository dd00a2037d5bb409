import Bytes
import Simulation
import Text

/// Traces of the simulator.
enum TraceTarget {
    /// A push may name a thousand million attempts; the simulator would make them all.
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
            events[event, default: 0] += 1
        }
        guard let last = output.last, let summary = (try? JSONReader.read(last))?["summary"] else {
            throw BrokenPromise("there is no summary")
        }
        let counts = Dictionary(uniqueKeysWithValues: summary.members.map { ($0.name, self.count($0.value)) })
        let ends = counts.filter { $0.key.hasPrefix("discarded.") }.values.reduce(0, +)
        let accounted = ["completed", "coalesced", "pending", "inFlight"].reduce(ends) { $0 + (counts[$1] ?? 0) }
        try promise(counts["accepted"] ?? 0 == accounted, "the books do not balance: \(last)")
        try promise(counts["accepted"] ?? 0 == events["push"] ?? 0, "not every push has its line: \(last)")
        try promise(counts["launched"] ?? 0 == events["launch"] ?? 0, "not every launch has its line: \(last)")
    }

    private static func count(_ value: JSONValue) -> Int {
        guard case .number(let number) = value else { return -1 }
        return Int(number.text) ?? -1
    }
}
