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

    @Test(
        "Registration, removal, conditions and statistics are as they were, and after SIGTERM what happened too",
        arguments: [SIGKILL, SIGTERM]
    )
    func everything(signal: Int32) throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let register = "/v1/topics/\(self.topic)/devices"
        for token in self.tokens {
            #expect(try first.edge(register, "-d", #"{"token":"\#(token)"}"#).status == 201)
        }
        #expect(try first.edge("/v1/devices/\(self.tokens[1])", "-X", "DELETE").status == 204)
        let conditions = try first.edge(
            "/v1/devices/\(self.tokens[0])/conditions",
            "-X",
            "PATCH",
            "-d",
            #"{"batteryLevel":0.1,"lowPowerMode":true}"#
        )
        #expect(conditions.status == 200)
        for _ in 0..<3 { #expect(try first.push(self.tokens[0], topic: self.topic).status == 200) }
        #expect(try first.push(self.tokens[0], topic: "com.example.other").status == 400)
        let gone = try first.push(self.tokens[1], topic: self.topic)
        #expect(gone.status == 410)
        let (stats, device) = (try first.stats(), try first.admin("/v1/devices/\(self.tokens[0])"))
        #expect(device.recent.count == 5)
        try folder.end(first, signal)

        let second = try folder.start()
        let (statsAfter, deviceAfter) = (try second.stats(), try second.admin("/v1/devices/\(self.tokens[0])"))
        for part in ["wakes", "devices", "since"] { #expect(statsAfter.part(part) == stats.part(part), "\(part)") }
        for count in ["accepted", "noWake", "completed", "coalesced", "discarded", "pending", "inFlight"] {
            #expect(statsAfter.part("pushes", count) == stats.part("pushes", count), "\(count)")
        }
        for part in ["token", "topic", "conditions", "held", "penalty"] {
            #expect(deviceAfter.part(part) == device.part(part), "\(part)")
        }
        #expect(deviceAfter.part("pending", "apnsID") == device.part("pending", "apnsID"))
        #expect(deviceAfter.integer("pending", "coalesced") == 2)
        if signal == SIGTERM {
            #expect(statsAfter.body == stats.body)
            #expect(deviceAfter.recent == device.recent)
        }
        let goneAfter = try second.push(self.tokens[1], topic: self.topic)
        #expect(goneAfter.status == 410)
        let timestamps = [gone, goneAfter].compactMap { $0.integer("timestamp") }
        #expect(timestamps.count == 2 && abs(timestamps[0] - timestamps[1]) <= 10, "\(timestamps)")
        #expect(try second.edge(register, "-d", #"{"token":"\#(self.tokens[2])"}"#).status == 201)
        #expect(try second.stats().integer("devices", "registered") == 2)
    }

    @Test("The loss of a wake is in the history, though the gateway that noticed it was asked nothing")
    func lossIsRemembered() throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let worker = try first.curlWorker(topic: self.topic)
        let pushed = try first.push(self.tokens[0], topic: self.topic)
        _ = try #require(try worker.next())
        try folder.end(first, SIGKILL)
        try folder.end(try folder.start(), SIGTERM)
        let third = try folder.start()
        let device = try third.admin("/v1/devices/\(self.tokens[0])")
        #expect(device.recent.first == ["result", try #require(pushed.headers["apns-id"]), "lost"])
        #expect(try third.stats().integer("wakes", "results", "lost") == 1)
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
