import Gateway
import Platform
import Testing
import WakeGateTestKit

@Suite("The interval between commits", .timeLimit(.minutes(15)))
struct CommitBatchingTests {
    @Test("With many fast senders commits are an interval apart, even on a fast disk")
    func many() {
        for rate in [20_000, 40_000, 100_000] as [Int64] {
            var scene = Scene(senders: .many(perSecond: rate))
            scene.run(until: 30_000)
            #expect(scene.commits.count > 150, "no rest was known to be worth anything yet")
            scene.run(until: 1_000_000)
            let before = scene.commits.count
            scene.run(until: 2_000_000)
            let perCommit = Int(rate) / (scene.commits.count - before)
            let due = Int(rate * CommitBatching.intervalMax / 1_000_000)
            #expect(abs(perCommit - due) <= due / 5, "\(rate) a second")
            #expect(scene.longestWait <= CommitBatching.intervalMax + Scene.commitTime)
        }
    }

    @Test("With few pushes the store never delays commits")
    func few() {
        var scene = Scene(senders: .many(perSecond: CommitBatching.pushesPerSecondMin * 9 / 10))
        scene.run(until: 5_000_000)
        #expect(scene.longestWait <= 2 * Scene.commitTime)
        #expect(scene.pushCount > 15_000)
    }

    @Test("A single sender that waits for each answer waits only for its commit")
    func alone() {
        var scene = Scene(senders: .waiting(1))
        scene.run(until: 5_000_000)
        #expect(scene.longestWait == Scene.commitTime && scene.commits.count > 15_000)
    }

    @Test("Delays hardly reduce the rate of senders that wait for their answers", arguments: [2, 4, 8, 16])
    func waiting(_ count: Int) {
        let time: Int64 = 20_000_000
        var without = Scene(senders: .waiting(count), rests: false)
        without.run(until: time)
        var with = Scene(senders: .waiting(count))
        with.run(until: time)
        #expect(with.pushCount * 100 >= without.pushCount * 97, "\(with.pushCount) of \(without.pushCount)")
    }

    @Test("Fast senders are slowed only briefly when slow ones join")
    func joined() {
        func pushes(rests: Bool) -> Int {
            var scene = Scene(senders: .waiting(4), rests: rests)
            scene.run(until: 2_000_000)
            scene.join(100, turnTime: 3_000)
            scene.run(until: 20_000_000)
            return scene.pushCount
        }
        let (with, without) = (pushes(rests: true), pushes(rests: false))
        #expect(with * 100 >= without * 95, "\(with) of \(without)")
    }

    @Test("With fewer concurrent pushes the store still delays commits")
    func fewer() {
        var scene = Scene(senders: .many(perSecond: 100_000))
        scene.run(until: 1_000_000)
        scene.senders = .many(perSecond: 20_000)
        scene.run(until: 1_200_000)
        let before = scene.commits.count
        scene.run(until: 2_200_000)
        #expect(scene.commits.count - before < 900, "at most 500 at rest, and 80 to 200 a window without")
    }

    @Test("A push after a pause is not delayed")
    func lull() {
        var scene = Scene(senders: .many(perSecond: 20_000))
        scene.run(until: 1_000_000)
        #expect(scene.batching.isBatching)
        scene.batching.begun()
        scene.batching.committed(1, from: 1_100_000, to: 1_100_100)
        #expect(scene.batching.nextMayBegin < 1_100_100 && !scene.batching.isBatching)
    }

    @Test("A push of a quiet topic ends one rest, whether it arrives before or during it")
    func quietTopic() {
        var scene = Scene(senders: .many(perSecond: 100_000))
        scene.run(until: 1_000_000)
        var batching = scene.batching
        batching.begun()
        batching.collected(1, endsBatch: true)
        batching.committed(100, from: 1_001_000, to: 1_001_100)
        #expect(batching.nextMayBegin == .min && batching.isBatching)
        batching.begun()
        batching.committed(100, from: 1_001_100, to: 1_001_200)
        batching.collected(1)
        #expect(batching.nextMayBegin == 1_001_100 + CommitBatching.intervalMax)
        batching.collected(2, endsBatch: true)
        #expect(batching.nextMayBegin == .min)
    }
}

/// Senders, and a store whose commits all take the same time. Times are in microseconds.
private struct Scene {
    enum Senders {
        /// So many senders that the wait of each has no effect.
        case many(perSecond: Int64)
        /// Senders that each send the next push a while after the answer to the last.
        case waiting(Int)
    }

    static let commitTime: Int64 = 100
    /// The time from an answer to the next push.
    static let turnTime: Int64 = 100

    /// A push that is not durable yet: its arrival, and the time that its sender takes for the next.
    private struct Push {
        let at: Int64
        var turnTime = Scene.turnTime
    }

    var senders: Senders
    var rests = true
    var batching = CommitBatching()
    /// The starts of the commits.
    private(set) var commits: [Int64] = []
    private(set) var pushCount = 0
    private(set) var longestWait: Int64 = 0
    /// The future pushes in order of arrival.
    private var coming: [Push] = []
    /// The start of the next commit.
    private var next: Int64 = 0
    private var random: UInt64 = 1

    init(senders: Senders, rests: Bool = true) {
        self.senders = senders
        self.rests = rests
        // The senders begin one after the other.
        if case .waiting(let count) = senders { self.coming = (0..<count).map { Push(at: Int64($0) * 37) } }
        self.fill(until: 2 * CommitBatching.intervalMax)
    }

    mutating func run(until end: Int64) {
        while self.next < end { self.commit(at: self.next) }
    }

    /// Adds senders that take this long from an answer to the next push.
    mutating func join(_ count: Int, turnTime: Int64) {
        for number in 0..<count { self.insert(Push(at: self.next + Int64(number) * 29, turnTime: turnTime)) }
    }

    private mutating func insert(_ push: Push) {
        let place = self.coming.lastIndex { $0.at <= push.at }.map { $0 + 1 } ?? 0
        self.coming.insert(push, at: place)
    }

    private mutating func commit(at start: Int64) {
        let durable = start + Self.commitTime
        var taken: Int64 = 0
        while let first = self.coming.first, first.at <= start {
            self.longestWait = max(self.longestWait, durable - first.at)
            self.coming.removeFirst()
            taken += 1
            if case .waiting = self.senders {
                self.insert(Push(at: durable + first.turnTime + taken, turnTime: first.turnTime))
            }
        }
        self.fill(until: durable + 2 * CommitBatching.intervalMax)
        self.pushCount += Int(taken)
        self.commits.append(start)
        self.batching.begun()
        self.batching.collected(self.coming(until: durable))
        self.batching.committed(taken, from: start, to: durable)
        self.next = self.beginning(from: durable)
    }

    /// Returns the start of the next commit: pushes are waiting, and the store does not rest.
    private func beginning(from idle: Int64) -> Int64 {
        guard let first = self.coming.first else { return .max }
        var moment = max(first.at, idle)
        guard self.rests else { return moment }
        var batching = self.batching
        while true {
            batching.collected(self.coming(until: moment))
            guard moment < batching.nextMayBegin else { return moment }
            // The engine checks when a push arrives, and the store's thread checks at the end of the rest.
            moment = min(batching.nextMayBegin, self.coming.first { $0.at > moment }?.at ?? .max)
        }
    }

    private func coming(until moment: Int64) -> Int64 {
        Int64(self.coming.prefix { $0.at <= moment }.count)
    }

    /// Adds pushes of many independent senders at random times.
    private mutating func fill(until moment: Int64) {
        guard case .many(let rate) = self.senders else { return }
        while (self.coming.last?.at ?? 0) < moment {
            self.random = self.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let gap = Int64(self.random >> 33) % (2 * 1_000_000 / rate)
            self.coming.append(Push(at: (self.coming.last?.at ?? 0) + gap))
        }
    }
}

@Suite("The store rests between commits", .timeLimit(.minutes(15)))
struct CommitPipelineTests {
    /// A pace of many pushes, the last three of which become durable after an hour. The store rests until then, or
    /// until as many pushes are waiting.
    private static var resting: CommitBatching {
        var batching = CommitBatching()
        let end = SystemClock.monotonicMicroseconds + 3_600_000_000
        for window in 0..<2 {
            let moment = end + Int64(window - 1) * CommitBatching.window
            batching.committed(10_000, from: moment, to: moment)
        }
        batching.committed(3, from: end, to: end)
        return batching
    }

    @Test("Pushes wait until as many as before have arrived, and questions do not wait")
    func rest() throws {
        let rig = try GatewayEngineRig(batching: Self.resting)
        let before = rig.store.commits
        rig.step { $0.explain(1, 1) }
        rig.takeOutputs()
        #expect(rig.answer(1) != nil)
        for request in 2...3 {
            rig.step { $0.push(request, request) }
            rig.takeOutputs()
            #expect(rig.answer(request) == nil && rig.store.commits == before)
        }
        rig.step { $0.statistics(5) }
        rig.takeOutputs()
        #expect(rig.answer(5) == nil, "it does not overtake the pushes")
        rig.step { $0.push(4, 4) }
        try rig.answers(2...5)
        #expect(rig.store.commits == before + 1)
    }

    @Test("A push of a quiet topic does not wait, and those before it are durable together with it")
    func quietTopic() throws {
        let rig = try GatewayEngineRig(batching: Self.resting)
        let before = rig.store.commits
        rig.step { $0.push(1, 1) }
        rig.takeOutputs()
        #expect(rig.answer(1) == nil && rig.store.commits == before)
        rig.step { requests in
            requests.push(2, 2)
            requests.batch.endBatch()
        }
        try rig.answers(1...2)
        #expect(rig.store.commits == before + 1)
    }

    @Test("The engine is woken at the end of a delay, even if earlier answers were sent without a commit")
    func over() throws {
        var batching = Self.resting
        batching.endBatch()
        // A rest ends after two milliseconds; this tests the sleep of the store's thread until then.
        for _ in 0..<50 {
            let rig = try GatewayEngineRig(batching: batching)
            rig.gate.close()
            rig.step { $0.register(1, 1) }
            try rig.waitForCommit()
            rig.step { requests in
                for request in 2...3 { requests.push(request, 1, isDryRun: true) }
            }
            rig.gate.open()
            try rig.answers(1...3)
            rig.step { $0.push(4, 1) }
            // Steps are performed only after a wakeup.
            try rig.answers(4...4)
        }
    }

    @Test("Delayed changes are durable before the gateway ends")
    func end() throws {
        let rig = try GatewayEngineRig(batching: Self.resting)
        let before = rig.store.commits
        rig.step { $0.push(1, 1) }
        #expect(rig.store.commits == before)
        rig.stop()
        #expect(rig.answer(1) != nil && rig.store.commits > before)
    }
}
