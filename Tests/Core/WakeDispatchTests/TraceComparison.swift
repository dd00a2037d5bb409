import Engine
import Policy
import WakeGateTestKit

/// One trace, played to the simulator and to the production dispatcher and engine.
struct TraceComparison {
    private(set) var differences: [String] = []
    /// How many lines the simulator has of it.
    private(set) var lineCount = 0

    /// - Parameter isOrdered: whether the lines of one moment come in the same order, too: where workers answer at the
    ///   very moment of a launch, the simulator hears of it before it launches in another lane.
    init(_ trace: [String], isOrdered: Bool = true) throws {
        var expected: [String: [String]] = [:]
        var launches: [LaunchKind: Int64] = [:]
        var simulator = try Simulator()
        func note(_ line: OutcomeLine) {
            expected[line.device, default: []].append(line.driverText)
            if case .launch = line.event { launches[.push, default: 0] += 1 }
        }
        func note(_ line: TaskLine) {
            expected[line.device, default: []].append(line.driverText)
            if case .launch(let kind, _, _) = line.event { launches[LaunchKind(kind), default: 0] += 1 }
        }
        for line in trace { try simulator.take(line, output: note, tasks: note) }
        let summary = simulator.finish(output: note, tasks: note)
        let driver = try TraceDriver(trace)
        for line in trace { try driver.take(line) }
        driver.finish()
        self.lineCount = expected.values.reduce(0) { $0 + $1.count }
        for device in Set(expected.keys).union(driver.lines.keys).sorted() {
            let (mine, theirs) = (expected[device] ?? [], driver.lines[device] ?? [])
            if isOrdered {
                self.compare(mine, theirs, "device \(device)")
            } else {
                self.compare(Self.sortedByMoment(mine), Self.sortedByMoment(theirs), "device \(device)")
            }
        }
        self.compare("deliveries", launches.values.reduce(0, +), Int64(driver.deliveryCount))
        self.compare("launches of pushes", launches[.push] ?? 0, driver.books.launched)
        for kind in TaskKind.allCases {
            self.compare("launches of \(kind)", launches[LaunchKind(kind)] ?? 0, driver.books.tasks.launched[kind])
        }
        self.comparePushes(driver.books, summary)
        self.compareRequests(driver.books, summary.tasks)
        self.compareSessions(driver.books, summary.sessions)
    }

    private static func sortedByMoment(_ lines: [String]) -> [String] {
        let moments = lines.map { Int64($0.prefix { $0 != " " }) ?? 0 }
        return zip(moments, lines).sorted { $0 < $1 }.map(\.1)
    }

    private mutating func compare(_ expected: [String], _ actual: [String], _ name: String) {
        guard expected != actual else { return }
        let place =
            zip(expected, actual).enumerated().first { $1.0 != $1.1 }?.offset ?? min(expected.count, actual.count)
        func line(_ lines: [String]) -> String { lines.indices.contains(place) ? lines[place] : "nothing" }
        let before = place > 0 ? expected[place - 1] : "nothing"
        self.differences.append("\(name): after \"\(before)\" \"\(line(actual))\" in place of \"\(line(expected))\"")
    }

    private mutating func compare(_ name: String, _ expected: Int64, _ actual: Int64) {
        if expected != actual { self.differences.append("\(name): \(actual) in place of \(expected)") }
    }

    private mutating func compare(_ name: String, _ expected: Int?, _ actual: Int64) {
        self.compare(name, Int64(expected ?? 0), actual)
    }
}

// MARK: - Books

extension TraceComparison {
    private mutating func comparePushes(_ books: Books, _ summary: Summary) {
        self.compare("accepted", summary.accepted, books.accepted)
        self.compare("launched", summary.launched, books.launched)
        self.compare("completed", summary.completed, books.completed)
        self.compare("coalesced", summary.coalesced, books.coalesced)
        self.compare("pending", summary.pending, books.pending)
        self.compare("inFlight", summary.inFlight, books.inFlight)
        for reason in DiscardReason.allCases {
            self.compare("discarded.\(reason)", summary.discarded[reason], books.discarded[reason])
        }
        for outcome in WakeOutcome.allCases {
            self.compare("results.\(outcome)", summary.results[outcome], books.results[outcome])
        }
    }

    private mutating func compareRequests(_ books: Books, _ summary: Summary.Tasks) {
        self.compare("tasks.submitted", summary.submitted, books.requests.submitted.sum)
        self.compare("tasks.replaced", summary.replaced, books.requests.replaced)
        self.compare("tasks.cancelled", summary.cancelled, books.requests.cancelled)
        self.compare("tasks.waiting", summary.waiting, books.requests.waiting.sum)
        self.compare("tasks.inFlight", summary.inFlight, books.requests.inFlight.sum)
        for refusal in TaskRefusal.allCases {
            self.compare("tasks.refused.\(refusal)", summary.refused[refusal], books.requests.refused[refusal])
        }
        for reason in TaskDiscardReason.allCases {
            self.compare("tasks.discarded.\(reason)", summary.discarded[reason], books.requests.discarded[reason])
        }
        for outcome in TaskOutcome.allCases {
            self.compare("tasks.results.\(outcome)", summary.results[outcome], books.requestResults(outcome))
        }
        self.compare("requests accounted for", books.requests.submitted.sum, books.requestsAccountedFor)
    }

    private mutating func compareSessions(_ books: Books, _ summary: Summary.Sessions) {
        self.compare("sessions.finished", summary.finished, books.sessions.finished)
        self.compare("sessions.refused", summary.refused, books.sessions.refused)
        self.compare("sessions.completed", summary.completed, books.sessions.completed)
        self.compare("sessions.waiting", summary.waiting, books.sessions.waiting)
        self.compare("sessions.inFlight", summary.inFlight, books.sessions.inFlight)
        for reason in TaskDiscardReason.allCases {
            self.compare("sessions.discarded.\(reason)", summary.discarded[reason], books.sessions.discarded[reason])
        }
        for outcome in TaskOutcome.allCases {
            self.compare("sessions.results.\(outcome)", summary.results[outcome], books.tasks[.urlSession][outcome])
        }
        self.compare("transfers accounted for", books.sessions.finished, books.sessions.accountedFor)
    }
}

extension OutcomeLine {
    /// The line as `TraceDriver` writes it.
    var driverText: String {
        let what =
            switch self.event {
            case .push(let disposition): "push \(disposition.rawValue)"
            case .launch(let coalesced, let attempt): "launch \(coalesced) \(attempt)"
            case .result(let outcome): "result \(outcome.rawValue)"
            case .discard(let reason): "discard \(reason.rawValue)"
            }
        return "\(self.moment.milliseconds) \(self.apnsID) \(what)"
    }
}
