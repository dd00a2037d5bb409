import Foundation
import Glibc
import Testing

@Suite("A gateway that is ended and started again", .serialized, .timeLimit(.minutes(15)))
struct RestartTests {
    private let topic = "com.example.restart"
    private let tokens = ["a1", "b2", "c3"].map { String(repeating: $0, count: 32) }

    @Test("A pending push is there after the restart, and wakes a worker", arguments: [SIGKILL, SIGTERM])
    func pending(signal: Int32) throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let pushed = try first.push(self.tokens[0], topic: self.topic)
        #expect(pushed.status == 200)
        let id = try #require(pushed.headers["apns-id"])
        let ended = try folder.end(first, signal)
        if signal == SIGTERM { #expect(ended.status == 0) }

        let second = try folder.start()
        #expect(try second.admin("/v1/devices/\(self.tokens[0])").value("pending", "apnsID") as? String == id)
        let worker = try second.curlWorker(topic: self.topic)
        let wake = try #require(try worker.next())
        #expect(wake.data["apnsID"] as? String == id)
        #expect(wake.data["device"] as? String == self.tokens[0])
        let wakeID = try #require(wake.id)
        #expect(try second.edge("/v1/wakes/\(wakeID)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try second.stats().integer("pushes", "completed") == 1)
        worker.process.send(SIGKILL)
        try folder.end(second, signal)

        let third = try folder.start()
        #expect(try third.edge("/v1/wakes/\(wakeID)", "-d", #"{"result":"newData"}"#).status == 204)
        let otherwise = try third.edge("/v1/wakes/\(wakeID)", "-d", #"{"result":"failed"}"#)
        #expect(otherwise.status == 409)
        #expect(otherwise.value("outcome") as? String == "newData")
        #expect(try third.stats().integer("pushes", "completed") == 1)
        #expect(try third.stats().integer("pushes", "pending") == 0)
    }

    @Test("A wake in flight is delivered again, as its push's first", arguments: [SIGKILL, SIGTERM])
    func inFlight(signal: Int32) throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let lost = try first.curlWorker(topic: self.topic)
        let pushed = try first.push(self.tokens[0], topic: self.topic)
        let wake = try #require(try lost.next())
        #expect(wake.data["attempt"] as? Int == 1)
        // A shutdown waits for the result until its limit, and leaves the wake to the next start.
        try folder.end(first, signal)

        let second = try folder.start()
        let stats = try second.stats()
        #expect(stats.integer("wakes", "results", "lost") == 1)
        #expect(stats.integer("pushes", "pending") == 1)
        let worker = try second.curlWorker(topic: self.topic)
        let again = try #require(try worker.next())
        #expect(again.data["attempt"] as? Int == 1)
        #expect(again.data["apnsID"] as? String == pushed.headers["apns-id"])
        let (before, after) = (try #require(wake.id), try #require(again.id))
        #expect(before != after)
        let late = try second.edge("/v1/wakes/\(before)", "-d", #"{"result":"newData"}"#)
        #expect(late.status == 409)
        #expect(late.value("outcome") as? String == "lost")
        #expect(try second.edge("/v1/wakes/\(after)", "-d", #"{"result":"noData"}"#).status == 204)
    }

    @Test("A second gateway on a state folder in use ends with 1 and names it", arguments: ["dev", "serve"])
    func inUse(command: String) throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let arguments = [
            command, "--set", "tls.certificate=\(folder.state.path)/server.pem", "--set",
            "tls.key=\(folder.state.path)/server.key",
        ]
        let ended = try folder.startInVain(arguments)
        #expect(ended.status == 1)
        #expect(ended.errors.contains("another gateway is using the state folder"), "\(ended.errors)")
        #expect(ended.errors.contains(folder.state.path), "\(ended.errors)")
        #expect(ended.output.isEmpty)
        #expect(try first.push(self.tokens[0], topic: self.topic).status == 200)
        // The lock goes with the process, however that ends.
        try folder.end(first, SIGKILL)
        #expect(try folder.start().stats().integer("pushes", "accepted") == 1)
    }
}
