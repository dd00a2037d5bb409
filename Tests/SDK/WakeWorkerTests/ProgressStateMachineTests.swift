import Testing
import WakeWorker

@Suite("When progress is told")
struct ProgressStateMachineTests {
    private var generator = SystemRandomNumberGenerator()

    @Test("What is new is told at once, then four times a second at most, and the newest alone")
    mutating func paced() {
        var machine = ProgressStateMachine()
        #expect(machine.nextMoment == nil && machine.momentReached(now: 0) == .nothing)
        var told: [Int64] = []
        // Something is new every ten milliseconds of ten seconds, and each report is answered five later.
        for now in stride(from: Int64(1000), to: 11_000, by: 10) {
            machine.changed()
            if machine.momentReached(now: now) == .tell {
                told.append(now)
                #expect(machine.nextMoment == nil, "one report is on its way at most")
                machine.answered(.accepted, now: now + 5, using: &self.generator)
            }
        }
        #expect(told.first == 1000 && told.count == 40)
        #expect(zip(told, told.dropFirst()).allSatisfy { $1 - $0 >= ProgressStateMachine.interval })
    }

    @Test("What was said last is told before the result, at once, and only then may that go")
    mutating func last() {
        var machine = ProgressStateMachine()
        machine.changed()
        #expect(machine.momentReached(now: 0) == .tell)
        machine.changed()
        // While the first report is on its way the second one waits for its answer.
        machine.handlerEnded(now: 10)
        #expect(machine.holdsResult && machine.momentReached(now: 11) == .nothing)
        machine.answered(.accepted, now: 20, using: &self.generator)
        #expect(machine.holdsResult && machine.nextMoment == 10 && machine.momentReached(now: 20) == .tell)
        #expect(machine.holdsResult)
        machine.answered(.accepted, now: 30, using: &self.generator)
        #expect(!machine.holdsResult && machine.nextMoment == nil)
    }

    @Test("A handler that has said nothing new keeps no result waiting")
    mutating func nothingNew() {
        var silent = ProgressStateMachine()
        silent.handlerEnded(now: 0)
        #expect(!silent.holdsResult)
        var told = ProgressStateMachine()
        told.changed()
        #expect(told.momentReached(now: 0) == .tell)
        told.answered(.accepted, now: 1, using: &self.generator)
        told.handlerEnded(now: 2)
        #expect(!told.holdsResult)
    }

    @Test("What did not arrive is told again, after a wait that grows, and as long as the gateway asks for")
    mutating func failed() throws {
        var machine = ProgressStateMachine()
        machine.changed()
        var (now, waits): (Int64, [Int64]) = (0, [])
        for _ in 0..<6 {
            #expect(machine.momentReached(now: now) == .tell)
            machine.answered(.failed(retryAfter: 0), now: now, using: &self.generator)
            let next = try #require(machine.nextMoment)
            waits.append(next - now)
            now = next
        }
        #expect(waits.allSatisfy { (250...5000).contains($0) } && waits[5] >= 2500, "\(waits)")
        #expect(machine.momentReached(now: now) == .tell)
        machine.answered(.failed(retryAfter: 60_000), now: now, using: &self.generator)
        #expect(machine.nextMoment == now + 60_000)
    }

    @Test("A last report that does not arrive keeps the result waiting for so long and no longer")
    mutating func patience() {
        var machine = ProgressStateMachine()
        machine.changed()
        #expect(machine.momentReached(now: 0) == .tell)
        machine.answered(.failed(retryAfter: 60_000), now: 0, using: &self.generator)
        machine.handlerEnded(now: 100)
        #expect(machine.holdsResult && machine.nextMoment == 100 + ProgressStateMachine.lastReportPatience)
        #expect(machine.momentReached(now: 100 + ProgressStateMachine.lastReportPatience) == .giveUp)
        #expect(!machine.holdsResult && machine.nextMoment == nil)
        machine.changed()
        #expect(machine.momentReached(now: 1_000_000) == .nothing)
    }

    @Test("A report without an answer keeps the result waiting no longer either")
    mutating func unanswered() {
        var machine = ProgressStateMachine()
        machine.changed()
        #expect(machine.momentReached(now: 0) == .tell)
        machine.handlerEnded(now: 0)
        #expect(machine.momentReached(now: ProgressStateMachine.lastReportPatience) == .giveUp && !machine.holdsResult)
        machine.answered(.failed(retryAfter: 0), now: 6000, using: &self.generator)
        #expect(!machine.holdsResult && machine.nextMoment == nil)
    }

    @Test("When the gateway takes no more, nothing is told and nothing waits", arguments: [true, false])
    mutating func over(isRefused: Bool) {
        var machine = ProgressStateMachine()
        machine.changed()
        #expect(machine.momentReached(now: 0) == .tell)
        machine.handlerEnded(now: 0)
        if isRefused { machine.answered(.refused, now: 1, using: &self.generator) } else { machine.abandoned() }
        #expect(!machine.holdsResult && machine.nextMoment == nil)
        machine.changed()
        #expect(machine.momentReached(now: 10_000) == .nothing && !machine.holdsResult)
    }
}
