import Foundation
import Platform
import Synchronization
import Testing

@Suite("Threads", .timeLimit(.minutes(15)))
struct NamedThreadTests {
    /// What a thread has seen of itself.
    private final class Sight: Sendable {
        let lines = Mutex<[String]>([])
    }

    /// What the system says of a thread that looks as soon as it runs.
    private func lines(of file: String, name: String, _ signals: NamedThread.Signals) throws -> [String] {
        let sight = Sight()
        let thread = try NamedThread(name, signals: signals) {
            let text = (try? String(contentsOfFile: "/proc/thread-self/\(file)", encoding: .utf8)) ?? ""
            sight.lines.withLock { $0 = text.split(separator: "\n").map(String.init) }
        }
        thread.join()
        return sight.lines.withLock { $0 }
    }

    @Test(
        "The system knows a thread by its name from the beginning, as much of it as it keeps",
        arguments: [("engine", "engine"), ("a name of many letters", "a name of many ")]
    )
    func name(given: String, shown: String) throws {
        #expect(try self.lines(of: "comm", name: given, .inherited) == [shown])
    }

    @Test("A thread takes the signals of who started it, or none but those that cannot be put off")
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

    @Test("A thread runs on when nobody keeps it")
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
