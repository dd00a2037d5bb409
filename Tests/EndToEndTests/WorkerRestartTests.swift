import Foundation
import Glibc
import Testing

@Suite("A gateway that restarts while a wake has more time", .serialized, .timeLimit(.minutes(15)))
struct WorkerRestartTests {
    private static let settings = ["--set", "policy.executionWindow=3", "--set", "policy.maxExtension=60"]

    /// The device that `instruct(1, …)` pushes to.
    private static let token = String(repeating: "0001", count: 16)

    /// Has a worker keep a wake alive for so long, and waits until it was given more time.
    private func extend(_ gateway: RunningGateway, _ worker: SDKWorker, milliseconds: Int) throws -> String {
        try gateway.instruct(1, #""do":"keepAlive","milliseconds":\#(milliseconds)"#)
        let wake = try #require(try worker.wait(for: "wake").text("wake"))
        try gateway.eventually("more time") {
            try gateway.admin("/v1/devices/\(Self.token)").recent.first?.first == "extended"
        }
        return wake
    }

    @Test("After a crash the wake is lost and its push launches again; a result of the lost wake is told so")
    func crash() throws {
        let folder = try RestartFolder()
        let first = try folder.start(Self.settings)
        let worker = try SDKWorker.subscribed(to: first)
        let lost = try self.extend(first, worker, milliseconds: 5000)
        try folder.end(first, SIGKILL)

        let second = try folder.start(Self.settings, edge: first.edge)
        #expect(try worker.wait(for: "lost").text("wake") == lost)
        let again = try #require(try worker.wait(for: "wake").text("wake"))
        #expect(again != lost)
        let late = try second.edge("/v1/wakes/\(lost)", "-d", #"{"result":"newData"}"#)
        #expect(late.status == 409 && late.reason == "WakeEnded")
        #expect(late.value("outcome") as? String == "lost")
        // It takes longer than its window, too: the next gateway gives more time as well.
        let delivered = try worker.wait(for: "delivered")
        #expect(delivered.text("wake") == again && delivered.text("result") == "newData")
        try self.checkBooks(second, lost: 1)
        #expect(try worker.stop() == 0)
    }

    @Test("A handler that outlasts a crash is told that its result came too late, and its push is completed once")
    func outlasted() throws {
        let folder = try RestartFolder()
        let first = try folder.start(Self.settings)
        let worker = try SDKWorker.subscribed(to: first)
        try first.instruct(1, #""do":"stubborn","milliseconds":2500"#)
        let lost = try #require(try worker.wait(for: "wake").text("wake"))
        try folder.end(first, SIGKILL)

        let second = try folder.start(Self.settings, edge: first.edge)
        let dropped = try worker.wait(for: "dropped")
        #expect(dropped.text("wake") == lost && dropped.text("code") == "wakeEnded")
        #expect(try worker.wait(for: "delivered").text("result") == "newData")
        try self.checkBooks(second, lost: 1)
        #expect(try worker.stop() == 0)
    }

    @Test("An orderly shutdown gives more time and waits for the result, which counts; then the worker comes back")
    func shutdown() throws {
        let settings = Self.settings + ["--set", "drainTimeout=60"]
        let folder = try RestartFolder()
        let first = try folder.start(settings)
        let worker = try SDKWorker.subscribed(to: first)
        let wake = try self.extend(first, worker, milliseconds: 8000)
        first.process.send(SIGTERM)
        try first.eventually("a shutdown") { try first.admin("/readyz").status == 503 }
        let delivered = try worker.wait(for: "delivered")
        #expect(delivered.text("wake") == wake && delivered.text("result") == "newData")
        #expect(try first.process.finish().status == 0)

        let second = try folder.start(settings, edge: first.edge)
        try worker.wait(for: "disconnected")
        try worker.wait(for: "subscribed")
        try self.checkBooks(second, lost: 0)
        #expect(try worker.stop() == 0)
    }

    /// One push, completed once.
    private func checkBooks(_ gateway: RunningGateway, lost: Int) throws {
        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "accepted") == 1)
        #expect(stats.integer("pushes", "completed") == 1)
        #expect(stats.integer("wakes", "launched") == 1 + lost)
        let results = #"{"expired":0,"failed":0,"lost":\#(lost),"newData":1,"noData":0}"#
        #expect(stats.part("wakes", "results") == results)
    }
}
