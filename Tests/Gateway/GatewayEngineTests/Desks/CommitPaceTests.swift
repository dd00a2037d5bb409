import EngineRoom
import Testing

@Suite("How far apart commits begin", .timeLimit(.minutes(15)))
struct CommitPaceTests {
    @Test("While pushes come fast from many, a commit has as many as are to come, on a disk that would take each alone")
    func many() {
        for rate in [6_000, 10_000, 40_000] as [Int64] {
            var scene = Scene(senders: .many(perSecond: rate))
            scene.run(until: 1_000_000)
            let before = scene.commits.count
            scene.run(until: 2_000_000)
            let perCommit = Int(rate) / (scene.commits.count - before)
            let due = min(CommitPace.pushesPerCommit, rate * CommitPace.intervalMax / 1_000_000)
            #expect(abs(perCommit - Int(due)) <= 2, "\(rate) a second")
            #expect(scene.longestWait <= CommitPace.intervalMax + Scene.commitTime)
            #expect(scene.commitCountBefore(30_000) > 150, "as no rest was known to be worth anything yet")
        }
    }

    @Test("Where pushes come slowly, the store never rests")
    func few() {
        var scene = Scene(senders: .many(perSecond: CommitPace.pushesPerSecondMin * 9 / 10))
        scene.run(until: 5_000_000)
        #expect(scene.longestWait <= 2 * Scene.commitTime)
        #expect(scene.pushCount > 15_000)
    }

    @Test("A sender alone that waits for each answer never waits for anything but its commit")
    func alone() {
        var scene = Scene(senders: .waiting(1))
        scene.run(until: 5_000_000)
        #expect(scene.longestWait == Scene.commitTime && scene.commits.count > 15_000)
    }

    @Test("Senders that wait for their answers do not send much less for rests", arguments: [2, 4, 8, 16])
    func waiting(_ count: Int) {
        let time: Int64 = 60_000_000
        var without = Scene(senders: .waiting(count), rests: false)
        without.run(until: time)
        var with = Scene(senders: .waiting(count))
        with.run(until: time)
        #expect(with.pushCount * 100 >= without.pushCount * 97, "\(with.pushCount) of \(without.pushCount)")
    }

    @Test("What comes after a while without pushes waits for nothing")
    func lull() {
        var scene = Scene(senders: .many(perSecond: 20_000))
        scene.run(until: 1_000_000)
        #expect(scene.pace.interval != nil)
        #expect(scene.pace.committed(1, from: 1_100_000, to: 1_100_100) == 1_100_100)
        #expect(scene.pace.interval == nil)
    }
}

/// Senders and a store whose commits all take the same time, in microseconds.
private struct Scene {
    enum Senders {
        /// So many that nobody's waiting is seen.
        case many(perSecond: Int64)
        /// Each sends the next push when it has the answer to the last, and has turned to it.
        case waiting(Int)
    }

    static let commitTime: Int64 = 100
    /// From an answer to the next push.
    static let turnTime: Int64 = 100

    let senders: Senders
    var rests = true
    var pace = CommitPace()
    /// When each commit began.
    private(set) var commits: [Int64] = []
    private(set) var pushCount = 0
    private(set) var longestWait: Int64 = 0
    /// When the pushes come that were not made durable, in order.
    private var coming: [Int64] = []
    private var storeIsIdleAt: Int64 = 0
    private var nextOfMany: Int64 = 0
    private var random: UInt64 = 1

    init(senders: Senders, rests: Bool = true) {
        self.senders = senders
        self.rests = rests
        // One after the other, a little apart.
        if case .waiting(let count) = senders { self.coming = (0..<count).map { Int64($0) * 37 } }
    }

    mutating func run(until end: Int64) {
        while let first = self.first, max(first, self.storeIsIdleAt) < end {
            let start = max(first, self.storeIsIdleAt)
            self.commit(at: start)
        }
    }

    func commitCountBefore(_ moment: Int64) -> Int { self.commits.count { $0 < moment } }

    private var first: Int64? {
        if case .many = self.senders { self.nextOfMany } else { self.coming.first }
    }

    private mutating func commit(at start: Int64) {
        let durable = start + Self.commitTime
        var taken = 0
        switch self.senders {
        case .many(let rate):
            while self.nextOfMany <= start {
                self.longestWait = max(self.longestWait, durable - self.nextOfMany)
                // At any time, as far as one sender knows of another.
                self.random = self.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                self.nextOfMany += Int64(self.random >> 33) % (2 * 1_000_000 / rate)
                taken += 1
            }
        case .waiting:
            while let first = self.coming.first, first <= start {
                self.longestWait = max(self.longestWait, durable - first)
                self.coming.removeFirst()
                self.coming.append(durable + Self.turnTime + Int64(taken))
                taken += 1
            }
        }
        self.commits.append(start)
        self.pushCount += taken
        let next = self.pace.committed(Int64(taken), from: start, to: durable)
        self.storeIsIdleAt = self.rests ? next : durable
    }
}
