import Engine
import Foundation
import Policy
import Testing
import WakeGateTestKit

@Suite("The engine and the simulator agree", .timeLimit(.minutes(15)))
struct ConformanceTests {
    /// A worked example, by its folder and its name.
    struct Example: CustomTestStringConvertible, Sendable {
        let folder: String
        let name: String

        var testDescription: String { self.name }

        var lines: [String] {
            get throws {
                let path = "Tests/Core/SimulationTests/\(self.folder)/\(self.name)"
                let text = try String(contentsOf: Checkout.root.appending(path: path), encoding: .utf8)
                return text.split(separator: "\n").map(String.init)
            }
        }

        static func all(_ folder: String) -> [Example] {
            let root = Checkout.root.appending(path: "Tests/Core/SimulationTests/\(folder)")
            let files = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
            return files.filter { $0.hasSuffix(".trace.jsonl") }.sorted().map { Example(folder: folder, name: $0) }
        }
    }

    private static let ofPushes = Example.all("Vectors")
    private static let ofTasks = Example.all("BackgroundVectors")

    private static let seeds = SimulationSeeds(seed: "WAKEGATE_SEED", factor: "WAKEGATE_TRACE_FACTOR")

    @Test("There are worked examples to compare")
    func found() {
        #expect(Self.ofPushes.count >= 49)
        #expect(Self.ofTasks.count >= 51)
    }

    @Test(
        "Dispatcher and engine agree with the simulator on a trace, to the millisecond",
        arguments: ofPushes + ofTasks
    )
    func agrees(example: Example) throws {
        let comparison = try TraceComparison(try example.lines)
        #expect(comparison.differences.isEmpty)
        #expect(comparison.lineCount > 0)
    }

    @Test("Both also agree on random traces of pushes, requests and sessions", arguments: 0..<4 as Range<UInt64>)
    func agreesAtRandom(group: UInt64) throws {
        for seed in Self.seeds.group(group, of: 100) {
            let trace = TaskTrace(seed: seed)
            let comparison = try TraceComparison(trace.headers + trace.steps.map(\.line), isOrdered: false)
            guard let first = comparison.differences.first else { continue }
            Issue.record("replay with WAKEGATE_SEED=\(seed): \(first); \(comparison.differences.count) in all")
        }
    }
}

/// A trace, played to the simulator and to the production dispatcher and engine.
struct TraceComparison {
    private(set) var differences: [String] = []
    /// The number of lines that the simulator produced.
    private(set) var lineCount = 0

    /// - Parameter isOrdered: true to compare the order of lines at the same time. If workers answer at the very time
    ///   of a launch, the simulator processes the answer before it launches in another lane.
    init(_ trace: [String], isOrdered: Bool = true) throws {
        var expected: [String: [String]] = [:]
        var launches: [LaunchKind: Int64] = [:]
        var simulator = try Simulator()
        func note(_ line: Simulator.Line) {
            switch line {
            case .push(let line):
                expected[line.device, default: []].append(line.driverText)
                if case .launch = line.event { launches[.push, default: 0] += 1 }
            case .task(let line):
                expected[line.device, default: []].append(line.driverText)
                if case .launch(let kind, _, _) = line.event { launches[LaunchKind(kind), default: 0] += 1 }
            }
        }
        for line in trace { try simulator.take(line, note) }
        let summary = simulator.finish(note)
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
        self.compare("launches of pushes", launches[.push] ?? 0, driver.counters.launched)
        for kind in TaskKind.allCases {
            self.compare("launches of \(kind)", launches[LaunchKind(kind)] ?? 0, driver.counters.tasks.launched[kind])
        }
        self.comparePushes(driver.counters, summary)
        self.compareRequests(driver.counters, summary.tasks)
        self.compareSessions(driver.counters, summary.sessions)
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

// MARK: - ActivityCounters

extension TraceComparison {
    private mutating func comparePushes(_ counters: ActivityCounters, _ summary: Summary) {
        self.compare("accepted", summary.accepted, counters.accepted)
        self.compare("launched", summary.launched, counters.launched)
        self.compare("completed", summary.completed, counters.completed)
        self.compare("coalesced", summary.coalesced, counters.coalesced)
        self.compare("pending", summary.pending, counters.pending)
        self.compare("inFlight", summary.inFlight, counters.inFlight)
        for reason in DiscardReason.ofPushes {
            self.compare("discarded.\(reason)", summary.discarded[reason], counters.discarded[reason])
        }
        for outcome in WakeOutcome.allCases {
            self.compare("results.\(outcome)", summary.results[outcome], counters.results[outcome])
        }
    }

    private mutating func compareRequests(_ counters: ActivityCounters, _ summary: Summary.Tasks) {
        self.compare("tasks.submitted", summary.submitted, counters.requests.submitted.sum)
        self.compare("tasks.replaced", summary.replaced, counters.requests.replaced)
        self.compare("tasks.cancelled", summary.cancelled, counters.requests.cancelled)
        self.compare("tasks.waiting", summary.waiting, counters.requests.waiting.sum)
        self.compare("tasks.inFlight", summary.inFlight, counters.requests.inFlight.sum)
        for refusal in TaskRefusal.allCases {
            self.compare("tasks.refused.\(refusal)", summary.refused[refusal], counters.requests.refused[refusal])
        }
        for reason in DiscardReason.ofTasks {
            self.compare("tasks.discarded.\(reason)", summary.discarded[reason], counters.requests.discarded[reason])
        }
        for outcome in TaskOutcome.allCases {
            self.compare("tasks.results.\(outcome)", summary.results[outcome], counters.requestResults(outcome))
        }
        self.compare("requests accounted for", counters.requests.submitted.sum, counters.requestsAccountedFor)
    }

    private mutating func compareSessions(_ counters: ActivityCounters, _ summary: Summary.Sessions) {
        self.compare("sessions.finished", summary.finished, counters.sessions.finished)
        self.compare("sessions.refused", summary.refused, counters.sessions.refused)
        self.compare("sessions.completed", summary.completed, counters.sessions.completed)
        self.compare("sessions.waiting", summary.waiting, counters.sessions.waiting)
        self.compare("sessions.inFlight", summary.inFlight, counters.sessions.inFlight)
        for reason in DiscardReason.ofTasks {
            self.compare("sessions.discarded.\(reason)", summary.discarded[reason], counters.sessions.discarded[reason])
        }
        for outcome in TaskOutcome.allCases {
            self.compare("sessions.results.\(outcome)", summary.results[outcome], counters.tasks[.urlSession][outcome])
        }
        self.compare("transfers accounted for", counters.sessions.finished, counters.sessions.accountedFor)
    }
}

extension OutcomeLine {
    /// The line in the format of `TraceDriver`.
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

@Suite("An engine that shares its store", .timeLimit(.minutes(15)))
struct SharedEngineTests {
    private static let seedCount = 60

    private func run(
        _ seed: UInt64,
        _ loading: SharedComparison.Loading,
        _ spoil: @escaping (SharedDeviceChange) -> SharedDeviceChange = { $0 }
    ) throws -> SharedComparison {
        var generator = SeededGenerator(seed: seed &* 31)
        let configuration = SharedComparison.configuration(&generator)
        let comparison = try SharedComparison(configuration, loading, mayFail: seed.isMultiple(of: 3), seed: seed)
        comparison.shared.spoil = spoil
        try comparison.begin()
        for _ in 0..<50 {
            try comparison.performNext()
            if !comparison.differences.isEmpty { break }
        }
        return comparison
    }

    @Test(
        "An engine that shares its store behaves like one that keeps all devices",
        arguments: SharedComparison.Loading.allCases
    )
    func same(_ loading: SharedComparison.Loading) throws {
        var (wakes, failures) = (0, 0)
        for seed in 1...UInt64(Self.seedCount) {
            let comparison = try self.run(seed, loading)
            let difference = comparison.differences.first ?? "none"
            #expect(comparison.differences.isEmpty, "seed \(seed): \(difference)")
            guard comparison.differences.isEmpty else { return }
            wakes += comparison.wakes.count
            failures += comparison.shared.failureCount
        }
        #expect(wakes > 300)
        #expect(failures > 300)
    }

    /// Errors of a store or an engine that the comparison must detect.
    enum Fault: CaseIterable {
        case due, ready, derived, ended

        func spoil(_ change: SharedDeviceChange) -> SharedDeviceChange {
            let device = change.device
            return SharedDeviceChange(
                device: SharedDevice(
                    token: device.token,
                    record: device.record,
                    tasks: device.tasks,
                    derived: self == .derived ? Self.miscounted(device.derived) : device.derived
                ),
                topic: change.topic,
                isNew: change.isNew,
                due: self == .due && !change.isNew ? .unchanged : change.due,
                ready: self == .ready && !change.isNew ? nil : change.ready,
                launched: change.launched,
                ended: self == .ended ? [] : change.ended
            )
        }

        /// Replaces the hold, if the state contains one after a digest and a due time, by one that the counters do not
        /// include.
        private static func miscounted(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            if bytes.count > 18, bytes[1] & 0x98 == 0x98 { bytes[18] = bytes[18] == 5 ? 6 : 5 }
            return bytes
        }
    }

    @Test("A store that loses something is found out", arguments: Fault.allCases)
    func faults(_ fault: Fault) throws {
        let isFound = try (1...UInt64(Self.seedCount)).contains { seed in
            do {
                return try !self.run(seed, .needed, fault.spoil).differences.isEmpty
            } catch is StoreError {
                return true
            }
        }
        #expect(isFound)
    }
}
