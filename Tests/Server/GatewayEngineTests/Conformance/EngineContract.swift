import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// A conversation with an engine of some kind, in virtual time.
final class EngineContract {
    private let under: any EngineUnderTest
    private let events: EventDesk
    /// What the desk of events knows the test by; nil when it does not follow.
    private var follower: Int?
    private let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)
    /// Everything that was heard, in its order.
    private(set) var heard: [Heard] = []
    private var lastQuestion = 1_000_000
    /// How many milliseconds the engine wants to be left alone at most, as its last step said.
    private(set) var wait: Int64 = 0

    /// Launches of a device are a minute apart, a wake has twenty seconds, and a push is launched three times.
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

    // MARK: Time and commits

    /// What is asked goes to the engine in one batch; nobody waits for what it is answered.
    func step(_ fill: (Requests) -> Void = { _ in }) {
        let requests = Requests()
        fill(requests)
        requests.batch.notePushesLeave()
        self.wait = self.under.engine.step(requests.batch)
        #expect(requests.batch.isEmpty, "a batch that was taken is empty")
        for _ in 0..<100 where self.wait == 0 { self.wait = self.under.engine.step(CommandBatch()) }
        self.take()
    }

    /// What was handed over becomes durable, and is heard of.
    func commit() {
        self.under.commit()
        self.take()
    }

    /// Commits and steps until nothing more comes.
    func settle() {
        for round in 0..<200 where round < 3 || !self.under.isIdle {
            self.commit()
            self.step()
        }
        self.commit()
        #expect(self.under.isIdle, "everything comes to an end")
    }

    /// What is asked goes to the engine in one batch, and is answered.
    func ask(_ fill: (Requests) -> Void) {
        self.step(fill)
        self.settle()
    }

    /// Time passes, and what is due is done.
    func pass(seconds: Int64) { self.pass(milliseconds: seconds * 1000) }

    func pass(milliseconds: Int64) {
        self.clock.change { $0.pass(milliseconds) }
        self.step()
        self.settle()
    }

    /// The wall clock, in milliseconds since 1970.
    var wall: Int64 { self.clock.now.wall }

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
        var effects = EffectBatch()
        self.under.loop.take(into: &effects)
        let heard = Heard.all(in: effects)
        self.heard += heard
        let batch = CommandBatch()
        for case .asked(let request) in heard { batch.append(.request(request)) }
        guard !batch.isEmpty else { return }
        _ = self.under.engine.step(batch)
        self.take()
    }

    // MARK: What is followed

    /// What happens from now on is there for `followed`.
    func follow() { self.follower = self.events.follow {} }

    func followNoMore() {
        if let follower { self.events.leave(follower) }
        self.follower = nil
    }

    /// What was told since this was last asked.
    func followed() -> [LiveEvent] {
        guard let follower else { return [] }
        var watched: [WatchedEvent] = []
        while !self.events.take(follower, into: &watched).isAll {}
        return watched.compactMap { LiveEvent($0) }
    }

    // MARK: What was heard

    /// How often a request was answered.
    func answerCount(_ request: Int) -> Int { self.heard.count { $0.answered == request } }

    /// The requests in the order in which they were answered.
    var answered: [Int] { self.heard.compactMap(\.answered) }

    /// What a push was answered, in a word; nil when it was not.
    func word(_ request: Int) -> String? { self.reply(request)?.word }

    func reply(_ request: Int) -> PushReply? {
        for case .push(request, let reply) in self.heard { return reply }
        return nil
    }

    func outcome(_ request: Int) -> Outcome? {
        for case .answer(request, let outcome) in self.heard { return outcome }
        return nil
    }

    /// The status of a request's answer, and the reason when it was refused; empty when there is no answer.
    func answer(_ request: Int) -> String {
        guard let outcome = self.outcome(request) else { return "" }
        return outcome.reason.map { "\(outcome.status) \($0)" } ?? "\(outcome.status)"
    }

    /// The body of a request's answer; empty when there is none.
    func text(_ request: Int) -> String {
        var writer = JSONWriter()
        self.outcome(request)?.write(to: &writer)
        return writer.buffer.view.string
    }

    var wakes: [HeardWake] {
        self.heard.compactMap { heard in
            if case .wake(let wake) = heard { wake } else { nil }
        }
    }

    /// The wakes that a stream was told to be rid of, in order.
    func released(_ stream: Int) -> [WakeID] {
        self.heard.compactMap { heard in
            if case .released(let wake, stream) = heard { wake } else { nil }
        }
    }

    /// The wakes that a stream was told to have expired, in order.
    func expired(_ stream: Int) -> [WakeID] {
        self.heard.compactMap { heard in
            if case .expired(let wake, _, stream) = heard { wake } else { nil }
        }
    }

    /// The wakes whose deadlines a stream was told to be near, in order, and how much time was left.
    func warnings(_ stream: Int) -> [(wake: WakeID, deadline: Int64, timeLeft: Int64)] {
        self.heard.compactMap { heard in
            if case .expiring(let wake, let deadline, let timeLeft, stream) = heard {
                (wake, deadline, timeLeft)
            } else {
                nil
            }
        }
    }

    /// Why they had expired, in order.
    func expirations(_ stream: Int) -> [ExpirationReason] {
        self.heard.compactMap { heard in
            if case .expired(_, let reason, stream) = heard { reason } else { nil }
        }
    }

    /// The conditions that a stream was told of, in order.
    func conditions(_ stream: Int) -> [Conditions] {
        self.heard.compactMap { heard in
            if case .conditions(_, let conditions, stream) = heard { conditions } else { nil }
        }
    }

    /// A member of the object that a request was answered with, as text; empty when there is none.
    func member(_ request: Int, _ path: String...) -> String {
        var value: JSONValue? = try? JSONReader.read(self.text(request))
        for name in path {
            if let index = Int(name), case .array(let elements)? = value {
                value = elements.indices.contains(index) ? elements[index] : nil
            } else {
                value = value?[name]
            }
        }
        guard case .string(let text)? = value else { return value?.described ?? "" }
        return text
    }

    /// A stream was told that it holds no wake any more, and ends.
    func hasDrained(_ stream: Int) -> Bool {
        self.heard.contains { heard in
            if case .drained(stream) = heard { true } else { false }
        }
    }

    /// The loop was told that nothing is launched any more.
    var isDraining: Bool {
        self.heard.contains { heard in
            if case .draining = heard { true } else { false }
        }
    }

    /// A wake that there never was.
    static let unknownWake = WakeID(random: (1, 2))

    /// The last wake.
    func lastWake() throws -> HeardWake { try #require(self.wakes.last) }

    // MARK: Books

    func statistics(topic: Int? = nil) throws -> Statistics {
        self.lastQuestion += 1
        let question = self.lastQuestion
        self.ask { requests in
            if let topic { requests.statistics(question, topic: topic) } else { requests.statistics(question) }
        }
        guard case .statistics(let statistics) = self.outcome(question) else {
            throw RigFailure("statistics are answered \(self.answer(question))")
        }
        return statistics
    }

    /// The books, which balance at every moment.
    func books() throws -> Books {
        let books = try self.statistics().books
        #expect(books.accepted == books.accountedFor, "\(books)")
        return books
    }
}
