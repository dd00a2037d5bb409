import Engine
import Foundation
import Gateway
import Platform
import Policy
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("Records of a gateway other than devices", .timeLimit(.minutes(15)))
struct GatewayRecordsTests {
    private let now = Instant(milliseconds: 1_700_000_000_000)

    private func keys(_ batch: borrowing RecordBatch) -> [RecordKey] { batch.records.map { $0.key } }

    /// Returns the keys of the records stored at this time.
    private func take(_ records: GatewayRecords, at monotonic: Int64) -> [RecordKey] {
        var batch = RecordBatch()
        records.takeChanges(into: &batch, at: monotonic)
        return self.keys(batch)
    }

    @Test("Refused pushes are stored at most once a second, and at the end")
    func rejections() {
        let records = GatewayRecords(countingSince: 1)
        let reason = APNSReason.badTopic.index
        #expect(!records.hasChanges(at: 5_000) && self.take(records, at: 5_000).isEmpty)
        records.countRejected(reason, TopicIndex(rawValue: 3))
        #expect(records.hasChanges(at: 5_000))
        let both = [RecordKey(.rejections, 3), RecordKey(.rejections, RecordKey.everyTopic)]
        #expect(self.take(records, at: 5_000) == both)
        records.countRejected(reason, nil)
        #expect(!records.hasChanges(at: 5_999) && self.take(records, at: 5_999).isEmpty)
        #expect(records.hasChanges(at: 6_000))
        records.flushNow()
        #expect(records.hasChanges(at: 5_999))
        #expect(self.take(records, at: 5_999) == [both[1]])
        #expect(records.rejections.total[reason] == 2)
    }

    @Test("A policy is stored when it changes")
    func policies() {
        let records = GatewayRecords(countingSince: 1)
        records.begin(EngineRig.open(), at: self.now)
        #expect(records.policies.current?.number == 1)
        #expect(self.take(records, at: 0) == [RecordKey(.policies)])
        records.begin(EngineRig.open(), at: self.now + 1)
        #expect(!records.hasChanges(at: 0))
        records.begin(EngineRig.open([(.launchInterval, 5)]), at: self.now + 2)
        #expect(records.policies.current?.number == 2)
        #expect(self.take(records, at: 0) == [RecordKey(.policies)] && !records.hasChanges(at: 0))
    }

    @Test("The requirement of worker tokens is stored once", arguments: [true, false])
    func asked(before: Bool) {
        let records = GatewayRecords(countingSince: 1, wasWorkerAuthenticationRequired: before)
        records.requireWorkerAuthentication()
        #expect(records.hasChanges(at: 0) != before)
        records.requireWorkerAuthentication()
        #expect(self.take(records, at: 0) == (before ? [] : [.workerAuthentication]))
        records.requireWorkerAuthentication()
        #expect(!records.hasChanges(at: 0))
    }

    @Test("A start stores the begin of counting, a new policy, and the token requirement", arguments: [true, false])
    func beginning(isAsking: Bool) {
        let records = GatewayRecords(countingSince: 1, wasWorkerAuthenticationRequired: isAsking)
        records.begin(EngineRig.open(), at: self.now)
        var batch = RecordBatch()
        records.takeBeginning(into: &batch, isAsking: isAsking)
        let asking: [RecordKey] = isAsking ? [.workerAuthentication] : []
        #expect(self.keys(batch) == [RecordKey(.origin)] + asking + [RecordKey(.policies)])
        #expect(!records.hasChanges(at: 0))
    }
}

@Suite("The clocks of an engine", .timeLimit(.minutes(15)))
struct EngineClockTests {
    private let shared = SharedClock(boot: 1000, wall: 1_700_000_000_000)

    private func makeClock(resuming stored: ClockRecord? = nil, _ watch: ClockJumpWatch = ClockJumpWatch())
        -> EngineClock
    {
        let world = EngineWorld(self.shared, seed: 1)
        return EngineClock(resuming: stored, at: EngineClock.Reading(world), world, watch)
    }

    @Test("The first start begins at the wall clock, and advances with the uptime")
    func first() {
        var clock = self.makeClock()
        #expect(clock.now.milliseconds == 1_700_000_000_000 && clock.offset.milliseconds == 0)
        self.shared.change { $0.pass(500) }
        #expect(clock.now.milliseconds == 1_700_000_000_000, "the present is that of the step")
        #expect(clock.milliseconds(until: 1_700_000_000_700) == 200)
        #expect(clock.milliseconds(until: 1_700_000_000_400) == -100)
        clock.step()
        #expect(clock.now.milliseconds == 1_700_000_000_500 && clock.monotonic == 1500)
    }

    @Test("A start resumes at the last commit's time plus the elapsed time, unless the jump is not plausible")
    func resumed() {
        var clock = self.makeClock()
        let record = clock.record(at: clock.now)
        self.shared.change {
            $0.pass(60_000)
            $0.reboot()
        }
        #expect(self.makeClock(resuming: record).now == clock.now + 60_000)
        let jumps = Mutex<[WallClockJump]>([])
        self.shared.change { $0.stepWall(by: 10_000_000) }
        let watch = ClockJumpWatch(millisecondsMax: 1_000_000) { jump in jumps.withLock { $0.append(jump) } }
        #expect(self.makeClock(resuming: record, watch).now == clock.now)
        #expect(jumps.withLock { $0.map(\.isHeldBack) } == [true])
    }
}

@Suite("Storage locations of a gateway")
struct GatewayStoreTests {
    @Test("On a disk the history has the configured limits, and in memory its own")
    func historyLimits() throws {
        var configuration = GatewayConfiguration()
        configuration.limits.historyBytesMax = 100 << 20
        configuration.limits.historySeconds = 60
        configuration.store = .sqlite
        let configured = HistoryLimits(bytesMax: 100 << 20, ageMillisecondsMax: 60_000)
        #expect(GatewayStore(configuration).historyLimits == configured)
        configuration.store = .memory
        #expect(GatewayStore(configuration).historyLimits == .inMemory)
        configuration.store = .postgresql(try PostgresAddress("postgresql:///wakegate"))
        #expect(GatewayStore(configuration).historyLimits == configured)
    }
}

@Suite("The watchdog", .timeLimit(.minutes(15)))
struct WatchdogTests {
    @Test("The watchdog is satisfied while every thread turns, and asks again only then")
    func look() {
        let pulses = [Pulse(), Pulse()]
        let asked = Mutex(0)
        let watched = pulses.map { Watchdog.Watched($0) { asked.withLock { $0 += 1 } } }
        #expect(Watchdog.look(at: watched))
        #expect(asked.withLock { $0 } == 2)
        #expect(!Watchdog.look(at: watched))
        pulses[0].beat()
        #expect(!Watchdog.look(at: watched), "the second thread is stuck")
        #expect(asked.withLock { $0 } == 2)
        pulses[1].beat()
        #expect(Watchdog.look(at: watched))
        #expect(asked.withLock { $0 } == 4)
    }

    @Test("The watchdog notifies immediately, and again after each turn of the watched thread")
    func tells() throws {
        let pulse = Pulse()
        let told = DispatchSemaphore(value: 0)
        let watchdog = try Watchdog(microseconds: 4000, [Watchdog.Watched(pulse) { pulse.beat() }]) { told.signal() }
        for _ in 0..<3 { #expect(told.wait(timeout: .now() + 60) == .success) }
        watchdog.stop()
    }
}
