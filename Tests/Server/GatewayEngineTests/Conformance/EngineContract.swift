import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// A conversation with an engine of some kind, in virtual time.
final class EngineContract: OutputHolder {
    private let under: any EngineUnderTest
    private let events: EventService
    /// The test's number as a follower of events; nil while it does not follow.
    private var follower: Int?
    private let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)
    /// All results in order.
    private(set) var heard: [EngineOutput] = []
    private var lastQuestion = 1_000_000
    /// The maximum time until the engine's next step, in milliseconds, as returned by its last step.
    private(set) var wait: Int64 = 0

    /// Launches of a device are a minute apart, a wake has twenty seconds, and a push has three attempts.
    static let policy: [(PolicyParameter, Double)] = [
        (.launchInterval, 60), (.executionWindow, 20), (.maxExtension, 30), (.maxAttempts, 3), (.immediateBurst, 2),
        (.immediateRefill, 300), (.defaultTTL, 7200),
    ]

    init(_ kind: EngineKind, _ change: (inout EngineConfiguration) -> Void = { _ in }) throws {
        var configuration = EngineRig.open(Self.policy)
        change(&configuration)
        let world = EngineWorld(self.clock, seed: 1)
        let setting = EngineSetting(configuration: configuration, world: world)
        self.events = setting.events
        self.under = try kind.make(setting)
        self.take()
    }

    /// Returns an engine in which device 1 has the wake of push 2 in flight on stream 1.
    static func launched(
        _ kind: EngineKind,
        slots: Int = 4,
        _ change: (inout EngineConfiguration) -> Void = { _ in }
    ) throws -> (EngineContract, ReceivedWake) {
        let contract = try EngineContract(kind, change)
        contract.ask { $0.subscribe(1, slots: slots) }
        contract.ask { $0.push(2, 1) }
        return (contract, try contract.lastWake())
    }

    // MARK: Time and commits

    /// Sends requests to the engine in one batch, without waiting for the answers.
    func step(_ fill: (Requests) -> Void = { _ in }) {
        let requests = Requests()
        fill(requests)
        requests.batch.notePushesLeave()
        self.wait = self.under.engine.step(requests.batch)
        #expect(requests.batch.isEmpty, "a batch that was taken is empty")
        for _ in 0..<100 where self.wait == 0 { self.wait = self.under.engine.step(CommandBatch()) }
        self.take()
    }

    /// Commits everything handed over, and takes the results.
    func commit() {
        self.under.commit()
        self.take()
    }

    /// Commits and performs steps until nothing more happens.
    func settle() {
        for round in 0..<200 where round < 3 || !self.under.isIdle {
            self.commit()
            self.step()
        }
        self.commit()
        #expect(self.under.isIdle, "all work ends")
    }

    /// Sends requests to the engine in one batch, and waits for the answers.
    func ask(_ fill: (Requests) -> Void) {
        self.step(fill)
        self.settle()
    }

    /// Passes time, and performs everything that is due.
    func pass(seconds: Int64) { self.pass(milliseconds: seconds * 1000) }

    func pass(milliseconds: Int64) {
        self.clock.change { $0.pass(milliseconds) }
        self.step()
        self.settle()
    }

    /// The wall clock, in milliseconds since 1970.
    var wall: Int64 { self.clock.now.wall }

    /// Sets the wall clock ten seconds ahead of policy time.
    func setWallClockAhead() { self.clock.change { $0.stepWall(by: 10_000) } }

    func failNextCommit() { self.under.failNextCommit() }

    func restart() throws {
        try self.under.restart()
        self.take()
    }

    func finish() {
        self.under.engine.finish()
        self.take()
    }

    private func take() {
        let heard = EngineOutput.all(from: self.under.loop)
        self.heard += heard
        let batch = CommandBatch()
        for case .asked(let request) in heard { batch.append(.request(request)) }
        guard !batch.isEmpty else { return }
        _ = self.under.engine.step(batch)
        self.take()
    }

    // MARK: What is followed

    /// Starts to collect events for `followed`.
    func follow() { self.follower = self.events.follow {} }

    /// Returns the events since the last call.
    func followed() -> [LiveEvent] {
        guard let follower else { return [] }
        var watched: [WatchedEvent] = []
        while !self.events.take(follower, into: &watched).isAll {}
        return watched.compactMap { LiveEvent($0) }
    }

    // MARK: What was heard

    /// The requests in the order in which they were answered.
    var answered: [Int] { self.heard.compactMap(\.answered) }

    /// Returns a member of the object with which a request was answered, as text; empty if there is none.
    func member(_ request: Int, _ path: String...) -> String { self.member(request, at: path) }

    func member(_ request: Int, at path: [String]) -> String {
        let value = JSONValue(self.text(request).utf8)?.value(at: path)
        return value?.text ?? value?.described ?? ""
    }

    /// Asks for a list page by page, and returns its elements, each as the number of its device and a member.
    ///
    /// - Parameter ask: asks for the page after the end of another; nil for the first page.
    func pages(
        _ from: Int,
        of list: String,
        _ token: String,
        _ member: String,
        ask: (Requests, Int, String?) -> Void
    ) throws -> [String] {
        var (request, after, lines) = (from, String?.none, [String]())
        while true {
            self.ask { ask($0, request, after) }
            #expect(self.answer(request) == "200" && self.answerCount(request) == 1)
            var index = 0
            while case let hex = self.member(request, list, "\(index)", token), !hex.isEmpty {
                let number = try #require(Int(hex.prefix(16), radix: 16), "a token begins with its device's number")
                lines.append("\(number) \(self.member(request, list, "\(index)", member))")
                index += 1
            }
            let next = self.member(request, "next")
            guard next != "null" else { return lines }
            (request, after) = (request + 1, next)
            try #require(request < from + 90, "a list ends")
        }
    }

    /// A wake that never existed.
    static let unknownWake = WakeID(random: (1, 2))

    /// Returns the last wake.
    func lastWake() throws -> ReceivedWake { try #require(self.wakes.last) }

    // MARK: ActivityCounters

    /// Sends one more request, waits for its answer, and returns its number.
    func question(_ fill: (Requests, Int) -> Void) -> Int {
        self.lastQuestion += 1
        self.ask { fill($0, self.lastQuestion) }
        return self.lastQuestion
    }

    func statistics(topic: Int? = nil) throws -> Statistics {
        let question = self.question { requests, number in
            if let topic { requests.statistics(number, topic: topic) } else { requests.statistics(number) }
        }
        guard case .statistics(let statistics) = self.outcome(question) else {
            throw RigFailure("statistics are answered \(self.answer(question))")
        }
        return statistics
    }

    /// Returns the counters, which must always balance.
    func counters() throws -> ActivityCounters {
        let counters = try self.statistics().counters
        #expect(counters.accepted == counters.accountedFor, "\(counters)")
        #expect(counters.requests.submitted.sum == counters.requestsAccountedFor, "\(counters)")
        #expect(counters.sessions.finished == counters.sessions.accountedFor, "\(counters)")
        return counters
    }
}
