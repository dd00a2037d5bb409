package import Policy

/// A random trace of pushes, task requests and sessions that contains many edge cases of the rules.
package struct TaskTrace {
    package enum Event {
        case push(name: String, priority: Int, expiration: Int64?)
        case report(DeviceFacts)
        case submit(Request)
        case finished(session: String, count: Int)
        case cancel(String)
    }

    package struct Request {
        package var identifier: String
        package var kind: String
        package var earliestBegin: Int64?
        package var needsNetwork = false
        package var needsPower = false
        package var fails = false
    }

    package struct Step {
        package var moment: Int64
        package var device: String
        package var event: Event
        package var line: String

        /// An event without an effect of its own, at the same time for the same device. When a simulator takes it, the
        /// simulator outputs everything that has happened up to this time.
        package var barrier: String {
            #"{"t": \#(TaskTrace.seconds(self.moment)), "device": "\#(self.device)", "cancel": "-"}"#
        }
    }

    /// The answer to a wake. `delay` is the time from the launch to the answer, and `advance` is the interval of
    /// progress reports, both in milliseconds.
    package struct Answer {
        package var outcome: String
        package var delay: Int64
        package var advance: Int64?

        package init(outcome: String, delay: Int64, advance: Int64? = nil) {
            self.outcome = outcome
            self.delay = delay
            self.advance = advance
        }
    }

    package private(set) var headers: [String] = []
    package private(set) var steps: [Step] = []
    package private(set) var limits = Parameters()
    package private(set) var worker = [Answer(outcome: "newData", delay: 1000)]
    package private(set) var answers: [String: [Answer]] = [:]
    /// The permitted task identifiers; nil if all are permitted.
    package private(set) var permitted: Set<String>?
    /// The end of the simulation, in milliseconds; nil to run until nothing more can happen.
    package private(set) var until: Int64?

    private var random: SeededGenerator
    private var now: Int64
    private var states: [String: DeviceFacts] = [:]
    /// The identifier of the last submitted task.
    private var latest: String?
    /// The hour of the day at which a device is habitually used; nil without a habit.
    private var habit: Int64?
    private let isSlow: Bool
    /// The percentage of events not chosen by `pushShare` that are finished transfers of sessions.
    private let sessionShare: Int
    /// The percentage of events that are chosen as pushes before any other kind is considered.
    private let pushShare: Int

    private static let known =
        ["a.r0", "a.r1"] + (0..<12).map { "a.p\($0)" } + (0..<12).map { "b.c\($0)" }
    /// The task identifiers in the trace. The fewer there are, the more events share an identifier.
    private let identifiers: [String]
    private let sessions: [String]

    package init(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        self.now = 0
        self.isSlow = random.chance(40)
        let count = random.pick([3, 6, Self.known.count])
        self.identifiers = count < Self.known.count ? (0..<count).map { _ in random.pick(Self.known) } : Self.known
        // A session and a task may have the same name, and must still be independent.
        self.sessions = [self.identifiers[0]] + (1..<random.pick([2, 16])).map { "s\($0)" }
        self.sessionShare = random.pick([5, 5, 60])
        self.pushShare = random.pick([0, 0, 70])
        self.random = random
        self.addLimits()
        self.addAnswers()
        if self.random.chance(15) { self.addPermission() }
        let devices = (0..<self.random.pick([1, 1, 2, 4])).map { "d\($0)" }
        if self.isSlow, self.random.chance(70) { self.addHabit(devices[0]) }
        for _ in 0..<self.random.pick([10, 30, 60]) {
            self.addPause()
            self.addStep(self.random.pick(devices))
        }
        // At the end of the trace, no condition prevents launches.
        for device in devices {
            self.now += 1000
            var state = DeviceFacts()
            state.charging = true
            state.appState = "active"
            self.add(device, .report(state))
            self.now += 1000
            state.appState = "background"
            self.add(device, .report(state))
        }
        guard self.random.chance(10) else { return }
        // The headers of a trace may be in any order.
        let until = self.random.pick([self.now / 3, self.now / 2, self.now, self.now + 1_800_000])
        self.headers.insert("{\"until\": \(Self.seconds(until))}", at: 0)
        self.until = until
    }

    package static func seconds(_ milliseconds: Int64) -> String {
        let rest = String(1000 + milliseconds % 1000).dropFirst()
        return "\(milliseconds / 1000).\(rest)"
    }

    private mutating func addPause() {
        let quick: [Int64] = [0, 0, 0, 1, 500, 1000, 2000, 4999, 5000, 30_000, 60_000, 450_000, 900_000]
        let slow: [Int64] = [0, 0, 1000, 60_000, 3_600_000, 7_200_000, 21_600_000, 39_600_000, 43_200_000, 86_400_000]
        self.now += self.random.pick(self.isSlow ? slow : quick)
        guard let habit = self.habit, self.random.chance(15) else { return }
        // Choose a time before, in or after the lead of the next habitual hour.
        let day: Int64 = 86_400_000
        let next = (self.now - habit * 3_600_000 + day) / day * day + habit * 3_600_000
        let lead = self.limits.refreshLead
        let before = [lead + 7_200_000, lead + 60_000, lead + 1, lead, lead - 1, lead / 2, 0, -1_800_000]
        self.now = max(self.now, next - self.random.pick(before))
    }
}

// MARK: - Headers

extension TaskTrace {
    private mutating func addLimits() {
        let choices: [(PolicyParameter, [Int])] = [
            (.launchInterval, [5, 60, 900]), (.dailyLaunches, [1, 2, 5]), (.budgetWindow, [60, 3600, 86_400]),
            (.immediateBurst, [1, 2, 3]), (.executionWindow, [5, 30]), (.maxAttempts, [1, 2, 3]),
            (.maxPenalty, [0, 1, 4]), (.maxInterval, [20, 3600, 14_400]), (.defaultTTL, [600, 2_592_000]),
            (.immediateRefill, [5, 60, 900]), (.processingWindow, [5, 60, 600]), (.processingInterval, [5, 60, 3600]),
            (.progressWindow, [5, 60]), (.continuedMax, [1, 2, 3]), (.usageWindow, [0, 5, 3600, 604_800]),
            (.refreshFlex, [0, 3600, 14_400, 100_000]), (.refreshLead, [0, 900, 5400]),
        ]
        var members: [String] = []
        for (name, values) in choices where self.random.chance(50) {
            let value = self.random.pick(values)
            precondition(name.set(Double(value), in: &self.limits), "\(name) must be \(name.requirement)")
            members.append("\"\(name.rawValue)\": \(value)")
        }
        if self.random.chance(50) {
            let level = self.random.pick([0, 0.2, 0.5])
            precondition(PolicyParameter.criticalBattery.set(level, in: &self.limits), "a level is from 0 to 1")
            members.append("\"criticalBattery\": \(level)")
        }
        self.headers.append("{\"policy\": {\(members.joined(separator: ", "))}}")
    }

    private mutating func addPermission() {
        let choices = [["a.*", "b.c1"], ["b.*"], ["a.r0", "a.p*", "b"], ["a.r1.*", "a.p0", "b.c*", "b.c.*"], []]
        // Only the last of several lines applies.
        for patterns in (0..<self.random.pick([1, 1, 2])).map({ _ in self.random.pick(choices) }) {
            self.headers.append("{\"permitted\": [\(patterns.map { "\"\($0)\"" }.joined(separator: ", "))]}")
            self.permitted = Set(
                self.identifiers.filter { identifier in
                    patterns.contains { pattern in
                        let beginning = String(pattern.dropLast())
                        return pattern == identifier
                            || pattern.hasSuffix(".*") && identifier.hasPrefix(beginning) && identifier != beginning
                    }
                }
            )
        }
    }

    private mutating func addAnswers() {
        let delays: [Int64] = [0, 1, 500, 2000, 4999, 5000, 30_000, 60_000]
        let advances: [Int64?] = [nil, 999, 2000, 4999, 5000]
        func text(_ answer: Answer) -> String {
            let advance = answer.advance.map { ", \(Self.seconds($0))" } ?? ""
            return "[\"\(answer.outcome)\", \(Self.seconds(answer.delay))\(advance)]"
        }
        // The next `tasks` line adds to this line, and replaces the answers of the tasks that both lines name.
        if self.random.chance(30) {
            let former = Answer(outcome: "failure", delay: 7000)
            let name = self.random.pick(self.identifiers)
            self.answers[name] = [former]
            self.headers.append("{\"tasks\": {\"\(name)\": [\(text(former))]}}")
        }
        var members: [String] = []
        for name in Set(self.identifiers + self.sessions).sorted() where self.random.chance(60) {
            let answers = (0..<self.random.pick([1, 2, 3])).map { _ in
                Answer(
                    outcome: self.random.pick(["success", "failure", "lost", "lost", "none"]),
                    delay: self.random.pick(delays),
                    advance: self.random.pick(advances)
                )
            }
            self.answers[name] = answers
            members.append("\"\(name)\": [\(answers.map(text).joined(separator: ", "))]")
        }
        self.headers.append("{\"tasks\": {\(members.joined(separator: ", "))}}")
        self.worker = (0..<self.random.pick([1, 2, 3])).map { _ in
            let outcome = self.random.pick(["newData", "newData", "noData", "failed", "lost", "none"])
            return Answer(outcome: outcome, delay: self.random.pick(delays))
        }
        self.headers.append("{\"worker\": [\(self.worker.map(text).joined(separator: ", "))]}")
    }
}

// MARK: - Events

extension TaskTrace {
    private mutating func addStep(_ device: String) {
        let push = Event.push(name: "", priority: 0, expiration: nil)
        if self.random.chance(self.pushShare) { return self.add(device, push) }
        switch self.random.number(below: 100) {
        case 0..<self.sessionShare:
            let session = self.random.pick(self.sessions)
            self.add(device, .finished(session: session, count: self.random.pick([1, 2, 5])))
        case 40..<50: self.add(device, push)
        case 50..<70: self.addReport(device)
        case 70..<77: self.add(device, .cancel(self.anyIdentifier()))
        default: self.addRequest(device)
        }
    }

    private mutating func addRequest(_ device: String) {
        var identifier = self.anyIdentifier()
        // Submit continued tasks mostly while the device is active.
        if identifier.hasPrefix("b"), self.states[device]?.isActive != true, self.random.chance(70) {
            identifier = self.random.pick(self.identifiers)
        }
        self.latest = identifier
        var kind =
            identifier.hasPrefix("a.r") ? "appRefresh" : identifier.hasPrefix("a.p") ? "processing" : "continued"
        if self.random.chance(8) { kind = self.random.pick(["appRefresh", "processing", "continued"]) }
        // With a habit, submit more refreshes, because habits affect no other kind.
        if self.habit != nil, self.random.chance(40) { kind = "appRefresh" }
        var request = Request(identifier: identifier, kind: kind)
        if self.random.chance(40) {
            request.earliestBegin = self.now + self.random.pick([0, 1, 5000, 60_000, 3_600_000, 40_000_000])
        }
        request.needsNetwork = kind == "processing" && self.random.chance(30)
        request.needsPower = kind == "processing" && self.random.chance(30)
        request.fails = kind == "continued" && self.random.chance(30)
        self.add(device, .submit(request))
        guard self.random.chance(8) else { return }
        self.now += self.random.pick([0, 1, 500])
        self.add(device, .cancel(identifier))
    }

    /// Adds uses of a device at the same hour on several days.
    private mutating func addHabit(_ device: String) {
        let habit = Int64(self.random.number(below: 24))
        let hour = habit * 3_600_000
        for day in 0..<Int64(self.random.pick([2, 3, 4])) {
            self.now = day * 86_400_000 + hour
            var state = DeviceFacts()
            state.appState = "active"
            self.add(device, .report(state))
            self.now += 600_000
            self.add(device, .report(DeviceFacts()))
        }
        self.habit = habit
        self.now += Int64(self.random.number(below: 86_400)) * 1000
    }

    private mutating func anyIdentifier() -> String {
        self.random.chance(40) ? self.latest ?? self.identifiers[0] : self.random.pick(self.identifiers)
    }

    private mutating func addReport(_ device: String) {
        var state = self.states[device] ?? DeviceFacts()
        // Start or end uses of the device often, because habits result from uses.
        if self.random.chance(60) {
            state.appState = state.isActive ? "background" : "active"
        } else if self.random.chance(50) {
            state.appState = "forceQuit"
        }
        if self.random.chance(20) {
            state.backgroundRefresh = self.random.pick(["available", "available", "available", "denied", "restricted"])
        }
        if self.random.chance(25) {
            state.thermalState = self.random.pick(["nominal", "nominal", "fair", "serious", "critical"])
        }
        if self.random.chance(25) { state.charging = self.random.chance(60) }
        if self.random.chance(20) { state.lowPowerMode = self.random.chance(30) }
        if self.random.chance(20) { state.network = self.random.chance(70) }
        if self.random.chance(20) { state.batteryLevel = self.random.pick([1, 0.2, 0.199, 0.05]) }
        self.add(device, .report(state))
    }

    private mutating func add(_ device: String, _ event: Event) {
        var event = event
        let body: String
        switch event {
        case .push:
            let name = "n\(self.steps.count)"
            let priority = self.random.pick([nil, 1, 5, 5, 5, 10])
            let lives: [Int64] = [-1, 0, 1, 5000, 30_000, 600_000, 3_600_000]
            let end = max(1, self.now + self.random.pick(lives))
            let expiration = self.random.pick([nil, nil, nil, nil, 0, end, end, end])
            event = .push(name: name, priority: priority ?? 10, expiration: expiration)
            let urgency = priority.map { ", \"priority\": \($0)" } ?? ""
            let life = expiration.map { ", \"expiration\": \($0 == 0 ? "0" : Self.seconds($0))" } ?? ""
            body = #""push": {"apnsID": "\#(name)"\#(urgency)\#(life)}"#
        case .report(let state):
            let before = self.states[device] ?? DeviceFacts()
            self.states[device] = state
            body = "\"conditions\": {\(self.members(state, since: before))}"
        case .submit(let request):
            var members = ["\"identifier\": \"\(request.identifier)\"", "\"kind\": \"\(request.kind)\""]
            if let earliest = request.earliestBegin { members.append("\"earliestBegin\": \(Self.seconds(earliest))") }
            if request.needsNetwork { members.append("\"requiresNetworkConnectivity\": true") }
            if request.needsPower { members.append("\"requiresExternalPower\": true") }
            if request.fails { members.append("\"strategy\": \"fail\"") }
            body = "\"submit\": {\(members.joined(separator: ", "))}"
        case .finished(let session, let count): body = #""finished": {"session": "\#(session)", "count": \#(count)}"#
        case .cancel(let identifier): body = "\"cancel\": \"\(identifier)\""
        }
        let line = #"{"t": \#(Self.seconds(self.now)), "device": "\#(device)", \#(body)}"#
        self.steps.append(Step(moment: self.now, device: device, event: event, line: line))
    }

    /// Returns the members of a conditions report: all changes since `before`, and sometimes unchanged members.
    private mutating func members(_ state: DeviceFacts, since before: DeviceFacts) -> String {
        var members: [String] = []
        func add(_ name: String, _ value: String, _ isSame: Bool) {
            if !isSame || self.random.chance(15) { members.append("\"\(name)\": \(value)") }
        }
        func add(_ name: String, _ field: KeyPath<DeviceFacts, String>) {
            add(name, "\"\(state[keyPath: field])\"", state[keyPath: field] == before[keyPath: field])
        }
        func add(_ name: String, _ field: KeyPath<DeviceFacts, Bool>) {
            add(name, "\(state[keyPath: field])", state[keyPath: field] == before[keyPath: field])
        }
        add("appState", \.appState)
        add("backgroundRefresh", \.backgroundRefresh)
        add("thermalState", \.thermalState)
        add("charging", \.charging)
        add("lowPowerMode", \.lowPowerMode)
        add("network", \.network)
        // Memory pressure below `critical` has no effect.
        if self.random.chance(10) { add("memoryPressure", self.random.pick(["\"normal\"", "\"warning\""]), false) }
        add("batteryLevel", "\(state.batteryLevel)", state.batteryLevel == before.batteryLevel)
        return members.joined(separator: ", ")
    }
}

/// A device's conditions in the terms of a trace.
package struct DeviceFacts: Sendable {
    package var appState = "background"
    package var backgroundRefresh = "available"
    package var batteryLevel = 1.0
    package var charging = false
    package var lowPowerMode = false
    package var thermalState = "nominal"
    package var network = true

    package var isActive: Bool { self.appState == "active" }

    /// Returns true if the conditions hold back a push with this priority.
    package func isHeld(_ priority: Int, criticalBattery: Double = 0.2) -> Bool {
        if self.isActive { return false }
        if self.appState == "forceQuit" || self.backgroundRefresh != "available" || !self.network { return true }
        if self.thermalState == "critical" || priority == 1 { return true }
        if priority == 10 { return false }
        return self.thermalState == "serious" || (self.batteryLevel < criticalBattery && !self.charging)
    }

    package init() {}
}

extension Parameters {
    /// Returns the minimum time between two launches, in milliseconds.
    package func interval(penalty: Int64, priority: Int, _ device: DeviceFacts) -> Int64 {
        var interval = self.launchInterval
        for _ in 0..<penalty { interval *= 2 }
        if device.lowPowerMode && priority < 10 { interval *= 2 }
        return min(interval, max(self.launchInterval, self.maxInterval))
    }
}
