import Engine
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("The history on a disk that fails", .timeLimit(.minutes(15)))
struct HistoryFaultTests {
    private static let path = "/history.sqlite"
    private static let limits = HistoryLimits(bytesMax: 4 << 20)
    private static let devices = 5
    /// Enough for one merge, and for several checkpoints of the log.
    private static let batches = 10

    /// The state of one run over a failing disk.
    private struct Trial {
        let disk: SimulatedDisk
        var random: SeededGenerator
        var events: [HistoryEvent] = []
        var now = Instant(milliseconds: 1_700_000_000_000)
        /// The number of events up to the end of each record.
        private(set) var ends: [Int] = [0]
        /// The last record that a history reported as durable before any fault of the disk.
        private(set) var durableSequence: UInt64 = 0

        init(seed: UInt64) {
            self.disk = SimulatedDisk(seed: seed)
            self.random = SeededGenerator(seed: seed)
        }

        /// Appends one record of this many events.
        mutating func append(_ count: Int, to history: HistoryFile) {
            for _ in 0..<count {
                self.now = self.now + Int64(self.random.number(below: 100))
                let event = HistoryEvent(
                    device: UInt64(self.random.number(below: HistoryFaultTests.devices)),
                    at: self.now,
                    kind: self.random.pick(HistoryRig.kinds),
                    apnsID: APNsID(random: (self.random.next(), self.random.next()))
                )
                self.events.append(event)
            }
            history.append(self.events.suffix(count), ofRecord: UInt64(self.ends.count))
            self.ends.append(self.events.count)
        }

        /// Returns true if a history holds the events of exactly the records that it reports.
        func isExact(_ history: HistoryFile) -> Bool {
            let found = HistoryFaultTests.answers(history)
            let expected = self.events.prefix(self.ends[Int(history.writtenSequence)])
            return found.enumerated().allSatisfy { device, found in
                found == expected.reversed().filter { $0.device == UInt64(device) }
            }
        }

        /// - Parameter livesOn: true if the process continues after the disk's fault.
        mutating func work(_ history: HistoryFile, livesOn: Bool = false) {
            for _ in 0..<HistoryFaultTests.batches where livesOn || !self.disk.metFault {
                for _ in 0..<self.random.number(in: 1...3) {
                    self.append(self.random.number(in: 1...50), to: history)
                }
                history.flush()
                if self.random.once(in: 3) { history.sync() }
                if !self.disk.metFault { self.durableSequence = history.durableSequence }
                while history.tidy() {}
            }
        }

        /// Returns true if `found` is a subsequence of the device's events, newest first.
        func isPossible(_ found: [HistoryEvent], _ device: UInt64) -> Bool {
            var rest = Array(self.events.lazy.filter { $0.device == device }.reversed())[...]
            for event in found {
                guard let place = rest.firstIndex(of: event) else { return false }
                rest = rest[rest.index(after: place)...]
            }
            return true
        }
    }

    private static func answers(_ history: HistoryFile) -> [[HistoryEvent]] {
        (0..<UInt64(self.devices)).map { history.recent(device: $0, count: .max) }
    }

    @Test(
        "A failed operation stops nothing and causes no wrong answer, and later operations work again",
        arguments: [.noSpace, .ioError, .failedSync, .failedRead] as [SimulatedDisk.Fault],
        [false, true]
    )
    func everyOperation(fault: SimulatedDisk.Fault, isLasting: Bool) {
        var faults = 0
        var told = 0
        for number in 0... {
            var trial = Trial(seed: UInt64(number + 1))
            var troubles: [HistoryFailure] = []
            let disk = trial.disk
            disk.failOperation(number, fault, isLasting: isLasting)
            let history = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) { troubles.append($0) }
            trial.work(history, livesOn: true)
            let metFault = disk.metFault
            disk.count(.changes)
            for device in 0..<UInt64(Self.devices) {
                #expect(trial.isPossible(history.recent(device: device, count: .max), device), "operation \(number)")
            }
            guard metFault else {
                // A merge has happened, unless its operations were among those that failed.
                #expect(history.runCount < Self.batches)
                #expect(troubles == [] && history.droppedEvents == 0)
                break
            }
            faults += 1
            trial.append(1, to: history)
            history.flush()
            // Files on this disk cannot be renamed, so a damaged history does not start anew here.
            let isDamaged = troubles.contains { $0.message.contains("cannot be renamed") }
            let last = trial.events[trial.events.count - 1]
            #expect(history.recent(device: last.device, count: 1) == [last], "operation \(number)")
            #expect(history.collectedEvents == 0 || isDamaged, "operation \(number): \(troubles)")
            told += troubles.isEmpty ? 0 : 1
            guard !isDamaged else { continue }
            while history.tidy() {}
            let answers = Self.answers(history)
            disk.killProcess()
            let reopened = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) { troubles.append($0) }
            #expect(Self.answers(reopened) == answers, "operation \(number): \(troubles)")
        }
        #expect(faults > 3)
        #expect(told > 0)
    }

    @Test("After a power loss the file is intact, has all durable events, knows its last record, and takes the rest")
    func powerLoss() {
        var found = 0
        var lost = 0
        for number in 0..<200 {
            var trial = Trial(seed: UInt64(number + 1))
            let disk = trial.disk
            disk.failOperation(number * 3, .powerLoss, seed: UInt64(number + 7))
            trial.work(HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) { _ in })
            if !disk.metFault { disk.losePower(seed: UInt64(number)) }
            disk.count(.changes)
            let reopened = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) {
                Issue.record("power lost at \(number): \($0)")
            }
            #expect(trial.isExact(reopened), "power lost at \(number)")
            #expect(reopened.writtenSequence >= trial.durableSequence, "power lost at \(number)")
            found += reopened.writtenSequence > 0 ? 1 : 0
            lost += Int(reopened.writtenSequence) < trial.ends.count - 1 ? 1 : 0
            // Records that the loss took are appended again, each once.
            for record in 1..<trial.ends.count {
                let events = trial.events[trial.ends[record - 1]..<trial.ends[record]]
                reopened.append(events[...], ofRecord: UInt64(record))
                if record % 5 == 0 { reopened.flush() }
            }
            reopened.flush()
            #expect(reopened.writtenSequence == UInt64(trial.ends.count - 1))
            #expect(trial.isExact(reopened), "power lost at \(number)")
        }
        #expect(found > 50, "hardly anything was ever durable")
        #expect(lost > 10, "hardly anything was ever lost")
    }

    @Test("A process killed at any time leaves everything that was flushed before")
    func killed() {
        for number in 0... {
            var trial = Trial(seed: UInt64(number + 1))
            let disk = trial.disk
            var flushed = 0
            disk.failOperation(number * 5, .kill)
            let history = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) { _ in }
            for _ in 0..<Self.batches where !disk.metFault {
                trial.append(trial.random.number(in: 1...150), to: history)
                history.flush()
                if !disk.metFault { flushed = trial.events.count }
                if trial.random.once(in: 3) { history.sync() }
                while history.tidy() {}
            }
            let metFault = disk.metFault
            disk.killProcess()
            disk.count(.changes)
            let reopened = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) {
                Issue.record("killed at \(number): \($0)")
            }
            let all = (0..<UInt64(Self.devices)).flatMap { reopened.recent(device: $0, count: .max) }
            #expect(all.count >= flushed && trial.isExact(reopened), "killed at \(number)")
            guard metFault else { break }
        }
    }
}
