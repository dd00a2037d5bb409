import Foundation
import Gateway
import Platform
import Testing

@Suite("The watchdog", .timeLimit(.minutes(15)))
struct WatchdogTests {
    @Test("It is content while every thread turns, and asks again only then")
    func look() {
        let pulses = [Pulse(), Pulse()]
        let asked = Tally()
        let watched = pulses.map { Watchdog.Watched($0) { asked.count() } }
        #expect(Watchdog.look(at: watched))
        #expect(asked.total == 2)
        #expect(!Watchdog.look(at: watched))
        pulses[0].beat()
        #expect(!Watchdog.look(at: watched), "the second thread is stuck")
        #expect(asked.total == 2)
        pulses[1].beat()
        #expect(Watchdog.look(at: watched))
        #expect(asked.total == 4)
    }

    @Test("It tells at once, and again after each turn of the thread it watches")
    func tells() throws {
        let pulse = Pulse()
        let told = DispatchSemaphore(value: 0)
        let watchdog = try Watchdog(microseconds: 4000, [Watchdog.Watched(pulse) { pulse.beat() }]) { told.signal() }
        for _ in 0..<3 { #expect(told.wait(timeout: .now() + 30) == .success) }
        watchdog.stop()
    }
}

/// Counts from any thread.
private final class Tally: @unchecked Sendable {
    private let lock = NSLock()
    private var value = 0

    func count() { self.lock.withLock { self.value += 1 } }

    var total: Int { self.lock.withLock { self.value } }
}
