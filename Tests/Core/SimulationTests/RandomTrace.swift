import WakeGateTestKit

/// A random trace that covers corner cases often: few devices, round times, small limits.
struct RandomTrace {
    private(set) var lines: [String] = []
    private(set) var facts = TraceFacts()

    private var random: SeededGenerator
    private var now: Int64 = 0
    private var devices: [String: DeviceFacts] = [:]

    init(seed: UInt64) {
        self.random = SeededGenerator(seed: seed)
        self.addLimits()
        self.addWorker()
        let names = (0..<self.random.pick([1, 1, 2, 3])).map { "d\($0)" }
        let stopsEarly = self.random.chance(10)
        if stopsEarly {
            let until = Int64.random(in: 0...20_000_000, using: &self.random)
            self.lines.append(#"{"until": \#(Self.seconds(until))}"#)
        }
        for _ in 0..<self.random.pick([5, 20, 50]) {
            self.addStep()
            let name = self.random.pick(names)
            if self.random.chance(72) { self.addRandomPush(name) } else { self.addRandomReport(name) }
        }
        guard !stopsEarly else { return }
        for name in names { self.addFinal(name) }
    }

    private static func seconds(_ milliseconds: Int64) -> String {
        let rest = String(1000 + milliseconds % 1000).dropFirst()
        return "\(milliseconds / 1000).\(rest)"
    }

    private mutating func addStep() {
        let steps: [Int64] = [0, 0, 1, 500, 1000, 5000, 30_000, 60_000, 300_000, 450_000, 900_000]
        let any = Int64.random(in: 0...2_000_000, using: &self.random)
        self.now += self.random.pick(steps + [any])
    }
}

// MARK: - Headers

extension RandomTrace {
    private mutating func addLimits() {
        var members: [String] = []
        var limits = self.facts.limits
        func choose(
            _ name: String,
            _ field: WritableKeyPath<TraceLimits, Int64>,
            _ unit: Int64,
            _ values: [Int64]
        ) {
            guard self.random.chance(50) else { return }
            let value = self.random.pick(values)
            limits[keyPath: field] = value * unit
            members.append("\"\(name)\": \(value)")
        }
        choose("launchInterval", \.launchInterval, 1000, [60, 300, 900])
        choose("dailyLaunches", \.dailyLaunches, 1, [1, 2, 3, 5])
        choose("budgetWindow", \.budgetWindow, 1000, [600, 3600, 86_400])
        choose("immediateBurst", \.immediateBurst, 1, [1, 2, 3])
        choose("immediateRefill", \.immediateRefill, 1000, [60, 900, 3600])
        choose("executionWindow", \.executionWindow, 1000, [5, 30])
        choose("maxAttempts", \.maxAttempts, 1, [1, 2, 3])
        choose("maxPenalty", \.maxPenalty, 1, [0, 1, 2, 4])
        choose("maxInterval", \.maxInterval, 1000, [30, 900, 3600, 14_400])
        choose("defaultTTL", \.defaultTTL, 1000, [600, 7200, 2_592_000])
        self.facts.limits = limits
        self.lines.append("{\"policy\": {\(members.joined(separator: ", "))}}")
    }

    private mutating func addWorker() {
        self.facts.isWorkerGood = self.random.chance(40)
        let answers =
            self.facts.isWorkerGood ? ["newData", "noData"] : ["newData", "noData", "failed", "lost", "none"]
        let delays =
            self.facts.isWorkerGood ? ["0", "0.001", "0.5", "1"] : ["0", "0.5", "1", "4.999", "5", "29.999", "40"]
        let steps = (0..<self.random.pick([1, 2, 3, 4])).map { _ in
            "[\"\(self.random.pick(answers))\", \(self.random.pick(delays))]"
        }
        self.lines.append("{\"worker\": [\(steps.joined(separator: ", "))]}")
    }
}

// MARK: - Events

extension RandomTrace {
    private mutating func addRandomPush(_ device: String) {
        let priority = self.random.pick([nil, 1, 5, 5, 5, 10])
        let expiration: Int64?
        switch Int.random(in: 0..<20, using: &self.random) {
        case 0..<9: expiration = nil
        case 9..<12: expiration = 0
        case 12: expiration = self.now > 0 ? self.now - 1 : nil
        case 13: expiration = self.now > 0 ? self.now : nil
        default: expiration = self.now + self.random.pick([1, 5000, 30_000, 60_000, 600_000, 3_600_000, 14_400_000])
        }
        self.addPush(device, priority: priority, expiration: expiration)
    }

    private mutating func addPush(_ device: String, priority: Int?, expiration: Int64?) {
        let name = "p\(self.facts.pushes.count)"
        var members = ["\"apnsID\": \"\(name)\""]
        if let priority { members.append("\"priority\": \(priority)") }
        if let expiration { members.append("\"expiration\": \(expiration == 0 ? "0" : Self.seconds(expiration))") }
        self.addEvent(device, "push", members)
        let push = TraceFacts.Push(moment: self.now, priority: priority ?? 10, expiration: expiration)
        self.facts.pushes[name] = push
    }

    private mutating func addRandomReport(_ device: String) {
        var state = self.devices[device] ?? DeviceFacts()
        var members: [String] = []
        func text(_ name: String, _ field: WritableKeyPath<DeviceFacts, String>, _ values: [String]) {
            guard self.random.chance(35) else { return }
            state[keyPath: field] = self.random.pick(values)
            members.append("\"\(name)\": \"\(state[keyPath: field])\"")
        }
        func flag(_ name: String, _ field: WritableKeyPath<DeviceFacts, Bool>, _ values: [Bool]) {
            guard self.random.chance(35) else { return }
            state[keyPath: field] = self.random.pick(values)
            members.append("\"\(name)\": \(state[keyPath: field])")
        }
        text("appState", \.appState, ["background", "background", "active", "active", "forceQuit"])
        text("backgroundRefresh", \.backgroundRefresh, ["available", "available", "available", "denied", "restricted"])
        text("thermalState", \.thermalState, ["nominal", "nominal", "fair", "serious", "critical"])
        // Memory pressure does not affect pushes.
        if self.random.chance(10) {
            members.append("\"memoryPressure\": \"\(self.random.pick(["normal", "warning", "critical"]))\"")
        }
        flag("charging", \.charging, [true, false])
        flag("lowPowerMode", \.lowPowerMode, [true, false])
        flag("network", \.network, [true, true, true, false])
        if self.random.chance(35) {
            state.batteryLevel = self.random.pick([1, 1, 0.2, 0.199, 0.05])
            members.append("\"batteryLevel\": \(state.batteryLevel)")
        }
        self.addReport(device, state, members)
    }

    private mutating func addReport(_ device: String, _ state: DeviceFacts, _ members: [String]) {
        self.addEvent(device, "conditions", members)
        self.devices[device] = state
        self.facts.reports[device, default: []].append(TraceFacts.Report(moment: self.now, device: state))
    }

    /// Makes a device launchable again, and adds a push that lives long enough to be launched for certain.
    private mutating func addFinal(_ device: String) {
        self.now += 1000
        let members = [
            #""appState": "background", "backgroundRefresh": "available", "thermalState": "nominal""#,
            #""lowPowerMode": false, "network": true, "batteryLevel": 1"#,
        ]
        var state = DeviceFacts()
        state.charging = self.devices[device]?.charging ?? false
        self.addReport(device, state, members)
        self.facts.finalPushes[device] = "p\(self.facts.pushes.count)"
        self.addPush(device, priority: 5, expiration: self.now + 200_000_000)
    }

    private mutating func addEvent(_ device: String, _ kind: String, _ members: [String]) {
        let body = members.joined(separator: ", ")
        self.lines.append(#"{"t": \#(Self.seconds(self.now)), "device": "\#(device)", "\#(kind)": {\#(body)}}"#)
    }
}

/// The contents of a random trace for the checkers, in milliseconds. Nothing here uses the code under test.
struct TraceFacts {
    struct Push {
        var moment: Int64
        var priority: Int
        /// The expiration in the trace; 0 means now or never.
        var expiration: Int64?
    }

    /// The conditions of a device from an instant on.
    struct Report {
        var moment: Int64
        var device: DeviceFacts
    }

    var limits = TraceLimits()
    /// The pushes by apns-id.
    var pushes: [String: Push] = [:]
    var reports: [String: [Report]] = [:]
    /// The last push of each device, after which it has no holds; empty if the trace stops early.
    var finalPushes: [String: String] = [:]
    /// True if every wake is answered in time with success.
    var isWorkerGood = false

    /// Returns every state of the device during the millisecond `moment`, in order.
    func states(of device: String, at moment: Int64) -> [DeviceFacts] {
        let reports = self.reports[device] ?? []
        let before = reports.last { $0.moment < moment }?.device ?? DeviceFacts()
        return [before] + reports.filter { $0.moment == moment }.map(\.device)
    }
}

/// A promise of the rules that an outcome broke.
struct Violation: CustomStringConvertible {
    enum Promise: String, CaseIterable {
        case oneInFlight, spacing, budget, allowance, holds, attempts, joint, expiry, forceQuit, disposition
        case wakeEnd, retry, conservation, order, starvation
    }

    let promise: Promise
    let moment: Int64
    let device: String
    let what: String

    var description: String {
        "\(self.promise.rawValue): \(self.what) (device \(self.device) at \(self.moment) ms)"
    }
}

/// The number of occurrences of each corner case, to ensure that the promises were tested.
struct Sightings {
    private(set) var counts: [String: Int] = [:]

    mutating func saw(_ what: String) {
        self.counts[what, default: 0] += 1
    }

    mutating func add(_ other: Sightings) {
        self.counts.merge(other.counts, uniquingKeysWith: +)
    }
}
