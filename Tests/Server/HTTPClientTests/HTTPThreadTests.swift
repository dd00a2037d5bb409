import Foundation
import HTTPClient
import Testing
import WakeGateTestKit

@Suite("The thread that makes requests for tasks", .serialized, .timeLimit(.minutes(15)))
struct HTTPThreadTests {
    @Test("Many tasks get each their own answer")
    func many() async throws {
        let server = try ScriptedServer()
        let thread = try HTTPThread.shared()
        let urls = (0..<30).map { server.url("/\($0)") }
        let texts = await withTaskGroup(of: (Int, String).self) { group in
            for (number, url) in urls.enumerated() {
                group.addTask { (number, (try? await thread.perform(HTTPRequest("GET", url)).text) ?? "") }
            }
            return await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
        }
        for number in 0..<30 { #expect(texts[number]?.contains("\"path\": \"/\(number)\"") == true) }
    }

    @Test("A task that is cancelled waits no longer, for an answer or for a moment")
    func cancelled() async throws {
        let server = try ScriptedServer()
        let thread = try HTTPThread.shared()
        let url = server.url("/silent")
        let request = Task { () -> HTTPClientError.Code? in
            do throws(HTTPClientError) {
                _ = try await thread.perform(HTTPRequest("GET", url, timeoutMilliseconds: nil))
                return nil
            } catch {
                return error.code
            }
        }
        let moment = Task { await thread.wait(milliseconds: 3_600_000) }
        await thread.wait(milliseconds: 1)
        request.cancel()
        moment.cancel()
        #expect(await request.value == .cancelled)
        await moment.value
        // A request that was cancelled before it began to wait.
        await withTaskGroup(of: Void.self) { group in
            group.cancelAll()
            group.addTask { await thread.wait(milliseconds: 3_600_000) }
        }
    }

    @Test("An invalid request fails immediately, and the thread continues")
    func refused() async throws {
        let thread = try HTTPThread.shared()
        await #expect(throws: HTTPClientError.self) { try await thread.perform(HTTPRequest("GET", "nonsense://x")) }
        let server = try ScriptedServer()
        #expect(try await thread.perform(HTTPRequest("GET", server.url("/teapot"))).status == 418)
    }

    /// Stops watching after its first call.
    private final class Watcher: HTTPAgent, Sendable {
        let called: AsyncStream<Void>.Continuation

        init(_ called: AsyncStream<Void>.Continuation) { self.called = called }

        func received(_ event: HTTPEvent, on loop: HTTPLoop) {}

        func momentReached(on loop: HTTPLoop) {
            loop.watch([], for: self)
            self.called.yield()
        }
    }

    @Test("An agent is called when a descriptor that it watches is readable, and no more once it watches none")
    func descriptors() async throws {
        let thread = try HTTPThread.shared()
        let (calls, called) = AsyncStream<Void>.makeStream()
        let (pipe, silent, watcher) = (Pipe(), Pipe(), Watcher(called))
        let descriptors = [silent, pipe].map(\.fileHandleForReading.fileDescriptor)
        thread.submit { $0.watch(descriptors, for: watcher) }
        // The thread is waiting by now, for up to a minute.
        await thread.wait(milliseconds: 1)
        try pipe.fileHandleForWriting.write(contentsOf: Data("x".utf8))
        var iterator = calls.makeAsyncIterator()
        #expect(await iterator.next() != nil)
        // The descriptor is still readable, but not watched.
        for _ in 0..<3 { await thread.wait(milliseconds: 1) }
        called.finish()
        #expect(await iterator.next() == nil)
    }

    /// When called, writes, reports the number of bytes, and stops watching.
    private final class Writer: HTTPAgent, Sendable {
        static let page = [UInt8](repeating: 0, count: 4096)
        let descriptor: Int32
        let written: AsyncStream<Int>.Continuation

        init(_ descriptor: Int32, _ written: AsyncStream<Int>.Continuation) {
            self.descriptor = descriptor
            self.written = written
        }

        func received(_ event: HTTPEvent, on loop: HTTPLoop) {}

        func momentReached(on loop: HTTPLoop) {
            loop.watch([], for: self)
            self.written.yield(unsafe write(self.descriptor, Self.page, Self.page.count))
        }
    }

    @Test("An agent that wants to write is called when there is room, and not before")
    func writable() async throws {
        let thread = try HTTPThread.shared()
        let (counts, written) = AsyncStream<Int>.makeStream()
        let pipe = Pipe()
        let writer = Writer(pipe.fileHandleForWriting.fileDescriptor, written)
        #expect(fcntl(writer.descriptor, F_SETFL, O_NONBLOCK) == 0)
        while unsafe write(writer.descriptor, Writer.page, Writer.page.count) > 0 {}
        thread.submit { $0.watch([], writable: [writer.descriptor], for: writer) }
        // The thread is waiting by now. Without room, the agent could write nothing if it were called.
        for _ in 0..<3 { await thread.wait(milliseconds: 1) }
        _ = pipe.fileHandleForReading.availableData
        var iterator = counts.makeAsyncIterator()
        #expect(await iterator.next() == Writer.page.count)
    }
}

@Suite("Moments of many things")
struct MomentHeapTests {
    @Test("The earliest time is always first, whatever changes", arguments: 0..<20)
    func order(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var heap = MomentHeap<Int>()
        var model: [Int: Int64] = [:]
        for _ in 0..<2000 {
            let key = generator.number(below: 40)
            let moment = generator.once(in: 4) ? nil : Int64(generator.number(below: 1000))
            heap.set(key, to: moment)
            model[key] = moment
            let first = heap.first
            #expect(first == model.values.min(), "seed \(seed)")
            guard generator.once(in: 5) else { continue }
            let now = Int64(generator.number(below: 1000))
            let due = heap.popDue(now)
            let earliest = model.values.min()
            #expect((due != nil) == (earliest.map { $0 <= now } ?? false), "seed \(seed)")
            if let due { #expect(model.removeValue(forKey: due) == earliest, "seed \(seed)") }
        }
    }
}
