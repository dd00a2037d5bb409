import Platform
import Testing

@Suite("The machine's clocks", .timeLimit(.minutes(15)))
struct SystemClockTests {
    @Test("A clock that never steps goes on, in every unit alike")
    func monotonic() {
        let milliseconds = SystemClock.monotonic
        let microseconds = SystemClock.monotonicMicroseconds
        let nanoseconds = SystemClock.monotonicNanoseconds
        #expect(microseconds / 1000 >= milliseconds)
        #expect(nanoseconds / 1000 >= microseconds)
        #expect(SystemClock.monotonic >= nanoseconds / 1_000_000)
        #expect(SystemClock.boot >= milliseconds, "the time of suspension comes on top")
    }

    @Test("Processor time only grows, and a thread has no more of it than its process")
    func processor() {
        let thread = SystemClock.threadNanoseconds
        #expect(thread > 0)
        #expect(SystemClock.processorNanoseconds >= thread)
        #expect(SystemClock.threadNanoseconds >= thread)
    }
}
