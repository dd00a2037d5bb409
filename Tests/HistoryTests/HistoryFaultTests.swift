import Bytes
import DeviceEngine
import History
import LaunchPolicy
import Testing
import WakeGateTestKit

@Suite("The history on a disk that fails", .timeLimit(.minutes(15)))
struct HistoryFaultTests {
    private static let path = "/history.sqlite"
    private static let limits = HistoryLimits(bytesMax: 4 << 20, syncMillisecondsMin: 0)
    private static let devices = 5
    /// Enough for one merge, and for several copies of the log into the file.
    private static let lots = 10

    /// What one run over a failing disk appended, and what it heard.
    private struct Trial {
        let disk: SimulatedDisk
        var random: SeededGenerator
        var events: [HistoryEvent] = []
        var now = Instant(milliseconds: 1_700_000_000_000)
        var lots: [Int] = []

        init(seed: UInt64) {
            self.disk = SimulatedDisk(seed: seed)
            self.random = SeededGenerator(seed: seed)
        }

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
                history.append(event)
            }
        }

        mutating func work(_ history: HistoryFile) {
            for _ in 0..<HistoryFaultTests.lots {
                self.append(self.random.number(in: 1...150), to: history)
                history.flush()
                self.lots.append(self.events.count)
                while history.tidy() {}
            }
        }

        /// Whether `found` are some of the device's events, newest first, none twice.
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
        "Whatever operation fails, nothing stops, no answer is wrong, and afterwards it works again",
        arguments: [.noSpace, .ioError, .failedSync, .failedRead] as [SimulatedDisk.Fault],
        [false, true]
    )
    func everyOperation(fault: SimulatedDisk.Fault, isLasting: Bool) {
        var faults = 0
        var told = 0
        for number in 0... {
            var trial = Trial(seed: UInt64(number + 1))
            var troubles: [HistoryTrouble] = []
            let disk = trial.disk
            disk.failOperation(number, fault, isLasting: isLasting)
            let history = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) { troubles.append($0) }
            trial.work(history)
            let metFault = disk.metFault
            disk.count(.changes)
            for device in 0..<UInt64(Self.devices) {
                #expect(trial.isPossible(history.recent(device: device, count: .max), device), "operation \(number)")
            }
            guard metFault else {
                // One merge has happened, or its operations were not among those that failed.
                #expect(history.runCount < Self.lots)
                #expect(troubles == [] && history.droppedEvents == 0)
                break
            }
            faults += 1
            // Files on this disk cannot be renamed: a history that was found damaged does not begin anew here.
            let isDamaged = troubles.contains { $0.message.contains("cannot be renamed") }
            trial.append(1, to: history)
            history.flush()
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

    @Test("After a loss of power the file is whole, and holds all lots up to some moment")
    func powerLoss() {
        var found = 0
        for number in 0..<150 {
            var trial = Trial(seed: UInt64(number + 1))
            let disk = trial.disk
            disk.failOperation(number * 4, .powerLoss, seed: UInt64(number + 7))
            trial.work(HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) { _ in })
            if !disk.metFault { disk.losePower(seed: UInt64(number)) }
            disk.count(.changes)
            let reopened = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) {
                Issue.record("power lost at \(number): \($0)")
            }
            let all = (0..<UInt64(Self.devices)).flatMap { reopened.recent(device: $0, count: .max) }
            #expect(all.isEmpty || trial.lots.contains(all.count), "power lost at \(number)")
            let expected = Set(trial.events.prefix(all.count))
            #expect(Set(all) == expected && expected.count == all.count, "power lost at \(number)")
            found += all.isEmpty ? 0 : 1
        }
        #expect(found > 10, "nothing was ever durable")
    }

    @Test("After a loss of power under a load that is not synced, damage is noticed and nothing wrong is answered")
    func powerLossUnderLoad() {
        let limits = HistoryLimits(bytesMax: 4 << 20, syncMillisecondsMin: .max)
        var damaged = 0
        for number in 0..<150 {
            var trial = Trial(seed: UInt64(number + 1))
            let disk = trial.disk
            disk.failOperation(number * 4, .powerLoss, seed: UInt64(number + 7))
            trial.work(HistoryFile(path: Self.path, limits: limits, vfs: disk.vfsName) { _ in })
            if !disk.metFault { disk.losePower(seed: UInt64(number)) }
            disk.count(.changes)
            var isDamaged = false
            let reopened = HistoryFile(path: Self.path, limits: limits, vfs: disk.vfsName) { _ in isDamaged = true }
            for device in 0..<UInt64(Self.devices) {
                #expect(trial.isPossible(reopened.recent(device: device, count: .max), device), "lost at \(number)")
            }
            reopened.flush()
            damaged += isDamaged ? 1 : 0
        }
        #expect(damaged > 0, "it was synced after all")
    }

    @Test("A process that is killed at any moment leaves all that was flushed before")
    func killed() {
        for number in 0... {
            var trial = Trial(seed: UInt64(number + 1))
            let disk = trial.disk
            var flushed = 0
            disk.failOperation(number * 5, .kill)
            let history = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) { _ in }
            for _ in 0..<Self.lots where !disk.metFault {
                trial.append(trial.random.number(in: 1...150), to: history)
                history.flush()
                if !disk.metFault { flushed = trial.events.count }
                while history.tidy() {}
            }
            let metFault = disk.metFault
            disk.killProcess()
            disk.count(.changes)
            let reopened = HistoryFile(path: Self.path, limits: Self.limits, vfs: disk.vfsName) {
                Issue.record("killed at \(number): \($0)")
            }
            let all = (0..<UInt64(Self.devices)).flatMap { reopened.recent(device: $0, count: .max) }
            #expect(all.count >= flushed && Set(all) == Set(trial.events.prefix(all.count)), "killed at \(number)")
            guard metFault else { break }
        }
    }
}
