import Platform
import Testing

@Suite("Locks, and waits at them", .timeLimit(.minutes(15)))
struct MonitorTests {
    /// A count that is `Sendable` without the compiler's proof: `monitor` guards it.
    private final class Counter: @unchecked Sendable {
        let monitor = Monitor()
        var count = 0

        func add() {
            self.monitor.withLock {
                self.count += 1
                self.monitor.broadcast()
            }
        }
    }

    @Test("What threads change under the lock is changed by each of them, and whoever waits hears of it")
    func counting() throws {
        let counter = Counter()
        let threads = try (0..<4).map { _ in
            try NamedThread("counting") { for _ in 0..<1000 { counter.add() } }
        }
        counter.monitor.withLock {
            while counter.count < 4000 { counter.monitor.wait() }
        }
        for thread in threads { thread.join() }
        #expect(counter.monitor.withLock { counter.count } == 4000)
    }

    @Test("A wait ends at its moment when nobody signals, and the lock is held again")
    func moment() {
        let monitor = Monitor()
        let moment = SystemClock.monotonicNanoseconds + 1_000_000
        monitor.lock()
        // It may end before its moment, too, without a reason.
        while monitor.wait(untilNanoseconds: moment) {}
        monitor.unlock()
        #expect(SystemClock.monotonicNanoseconds >= moment)
        #expect(monitor.withLock { monitor.wait(until: 0) } == false, "a moment that has passed")
    }

    @Test("A latch holds back whoever comes before it is opened, and nobody afterwards")
    func latch() throws {
        let latch = Latch()
        let passed = Latch()
        #expect(!latch.wait(untilNanoseconds: SystemClock.monotonicNanoseconds))
        let thread = try NamedThread("waiting") {
            latch.wait()
            passed.open()
        }
        #expect(!passed.wait(untilNanoseconds: SystemClock.monotonicNanoseconds))
        latch.open()
        passed.wait()
        thread.join()
        #expect(latch.wait(untilNanoseconds: 0))
    }
}
