import Foundation
import Platform
import Synchronization
import Testing
import Wire

@Suite("The machine's clocks", .timeLimit(.minutes(15)))
struct SystemClockTests {
    @Test("A monotonic clock advances equally in every unit")
    func monotonic() {
        let milliseconds = SystemClock.monotonic
        let microseconds = SystemClock.monotonicMicroseconds
        let nanoseconds = SystemClock.monotonicNanoseconds
        #expect(microseconds / 1000 >= milliseconds)
        #expect(nanoseconds / 1000 >= microseconds)
        #expect(SystemClock.monotonic >= nanoseconds / 1_000_000)
        #expect(SystemClock.boot >= milliseconds, "the time of suspension comes on top")
    }

    @Test("Processor time only grows")
    func processor() {
        let before = SystemClock.processorNanoseconds
        #expect(before > 0)
        #expect(SystemClock.processorNanoseconds >= before)
    }
}

@Suite("Locks and condition waits", .timeLimit(.minutes(15)))
struct MonitorTests {
    /// A count that is `@unchecked Sendable`: `monitor` guards it.
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

    @Test("Changes under the lock by several threads are all kept, and waiting threads are notified")
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

    @Test("A wait without a signal ends at its time, and the lock is held again")
    func moment() {
        let monitor = Monitor()
        let moment = SystemClock.monotonicNanoseconds + 1_000_000
        monitor.lock()
        // The wait may also end early without a reason.
        while monitor.wait(untilNanoseconds: moment) {}
        monitor.unlock()
        #expect(SystemClock.monotonicNanoseconds >= moment)
        #expect(monitor.withLock { monitor.wait(until: 0) } == false, "a time in the past")
    }

    @Test("A latch blocks waiting threads until it is opened, and none afterwards")
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

@Suite("Threads", .timeLimit(.minutes(15)))
struct NamedThreadTests {
    /// Returns the system's information about a thread, read when the thread starts.
    private func lines(of file: String, name: String, _ signals: NamedThread.Signals) throws -> [String] {
        let lines = Mutex<[String]>([])
        let thread = try NamedThread(name, signals: signals) {
            let text = (try? String(contentsOfFile: "/proc/thread-self/\(file)", encoding: .utf8)) ?? ""
            lines.withLock { $0 = text.split(separator: "\n").map(String.init) }
        }
        thread.join()
        return lines.withLock { $0 }
    }

    @Test(
        "The system has a thread's name from the beginning, up to its maximum length",
        arguments: [("engine", "engine"), ("a name of many letters", "a name of many ")]
    )
    func name(given: String, shown: String) throws {
        #expect(try self.lines(of: "comm", name: given, .inherited) == [shown])
    }

    @Test("A thread inherits its creator's signals, or blocks all that can be blocked")
    func signals() throws {
        func blocked(_ signals: NamedThread.Signals) throws -> UInt64 {
            let lines = try self.lines(of: "status", name: "signals", signals)
            let line = try #require(lines.first { $0.hasPrefix("SigBlk:") })
            return try #require(UInt64(line.dropFirst("SigBlk:".count).drop { $0 == "\t" }, radix: 16))
        }
        let own = try String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)
        #expect(own.contains(String(format: "SigBlk:\t%016lx", try blocked(.inherited))))
        let (terminate, kill) = (UInt64(1) << UInt64(SIGTERM - 1), UInt64(1) << UInt64(SIGKILL - 1))
        #expect(try blocked(.blocked) & (terminate | kill) == terminate)
    }

    @Test("A thread continues without a reference to it")
    func alone() throws {
        let ended = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        try NamedThread("alone") {
            mayEnd.wait()
            ended.signal()
        }
        mayEnd.signal()
        #expect(ended.wait(timeout: .now() + 60) == .success)
    }
}

@Suite("Random bits", .timeLimit(.minutes(15)))
struct RandomBitsTests {
    @Test("Random bits never repeat, within a block, across blocks or between sources")
    func distinct() {
        var first = RandomBits()
        var second = RandomBits()
        var seen: Set<UInt64> = []
        for _ in 0..<2000 {
            #expect(seen.insert(first.next()).inserted)
            let (upper, lower) = second.pair()
            #expect(seen.insert(upper).inserted)
            #expect(seen.insert(lower).inserted)
        }
    }

    @Test("Random bytes have the requested count, and every value occurs")
    func bytes() {
        var random = RandomBits()
        let drawn = random.bytes(20_000)
        #expect(drawn.count == 20_000 && Set(drawn).count == 256)
        #expect(random.bytes(0).isEmpty)
    }
}

@Suite("Comparisons of long bytes", .timeLimit(.minutes(15)))
struct LongComparisonTests {
    @Test("Bytes are equal if their counts and values are equal, at any address")
    func equal() {
        for count in Array(0...40) + [255, 256, 257, 1000] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            #expect(Self.areEqual(bytes, [7] + bytes, from: 1))
            #expect(!Self.areEqual(bytes, bytes + [0], from: 0))
            for place in bytes.indices {
                var other = bytes
                other[place] ^= 0x80
                #expect(!Self.areEqual(bytes, other, from: 0))
            }
        }
        #expect(ByteView().equalsLong(ByteView()))
    }

    /// Returns true if the two are equal after the first `start` bytes.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8], from start: Int) -> Bool {
        left.withByteView { left in right.withByteView { left.equalsLong($0.dropFirst(start)) } }
    }
}
