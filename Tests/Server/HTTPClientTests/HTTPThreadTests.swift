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

    @Test("A cancelled task stops waiting, for an answer or for a time")
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

    /// Stops watching when it is called, then runs its action.
    private final class Watcher: HTTPAgent, Sendable {
        let action: @Sendable () -> Void

        init(_ action: @escaping @Sendable () -> Void) { self.action = action }

        func received(_ event: HTTPEvent, on loop: HTTPLoop) {}

        func momentReached(on loop: HTTPLoop) {
            loop.watch([], for: self)
            self.action()
        }
    }

    @Test("An agent is called when its watched descriptor is readable, and no longer when it watches none")
    func descriptors() async throws {
        let thread = try HTTPThread.shared()
        let (calls, called) = AsyncStream<Void>.makeStream()
        let (pipe, silent) = (Pipe(), Pipe())
        let watcher = Watcher { called.yield() }
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

    @Test("An agent that wants to write is called when the descriptor is writable, and not before")
    func writable() async throws {
        let thread = try HTTPThread.shared()
        let (counts, written) = AsyncStream<Int>.makeStream()
        let pipe = Pipe()
        let (descriptor, page) = (pipe.fileHandleForWriting.fileDescriptor, [UInt8](repeating: 0, count: 4096))
        let writer = Watcher { written.yield(unsafe write(descriptor, page, page.count)) }
        #expect(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
        while unsafe write(descriptor, page, page.count) > 0 {}
        thread.submit { $0.watch([], writable: [descriptor], for: writer) }
        // The thread is waiting by now. Without room, the agent could write nothing if it were called.
        for _ in 0..<3 { await thread.wait(milliseconds: 1) }
        _ = pipe.fileHandleForReading.availableData
        var iterator = counts.makeAsyncIterator()
        #expect(await iterator.next() == page.count)
    }
}

@Suite("Times of many items")
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
