import Glibc
import Testing

@Suite("Background tasks of a gateway that is ended and started again", .serialized, .timeLimit(.minutes(15)))
struct TaskRestartTests {
    private let topic = "com.example.tasks"
    private let device = "/v1/devices/" + String(repeating: "7a", count: 32)
    private let query = "&task=com.example.*&session=photos&push=0"

    private func report(_ conditions: String, to gateway: RunningGateway) throws {
        #expect(try gateway.edge("\(self.device)/conditions", "-X", "PATCH", "-d", conditions).status == 200)
    }

    /// The next wake, which succeeds.
    private func handle(_ worker: EventStream, of gateway: RunningGateway) throws -> EventStream.Event {
        let wake = try #require(try worker.next())
        #expect(try gateway.edge("/v1/wakes/\(wake.id ?? "")", "-d", #"{"success":true}"#).status == 204)
        return wake
    }

    @Test("What waits is there afterwards, and what runs is lost and launches again", arguments: [SIGKILL, SIGTERM])
    func restart(signal: Int32) throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let token = #"{"token":"\#(self.device.dropFirst("/v1/devices/".count))"}"#
        #expect(try first.edge("/v1/topics/\(self.topic)/devices", "-d", token).status == 201)
        let lost = try first.curlWorker(topic: self.topic, query: self.query)
        let refresh = #"{"identifier":"com.example.refresh","kind":"appRefresh"}"#
        #expect(try first.edge("\(self.device)/tasks", "-d", refresh).status == 201)
        let begun = try #require(try lost.next())
        let clean = #"{"identifier":"com.example.clean","kind":"processing","requiresExternalPower":true}"#
        #expect(try first.edge("\(self.device)/tasks", "-d", clean).value("held") as? String == "power")
        #expect(try first.edge("\(self.device)/sessions/photos", "-d", #"{"finished":2}"#).status == 202)
        try folder.end(first, signal)

        let second = try folder.start()
        let stats = try second.stats()
        #expect(stats.integer("tasks", "results", "lost") == 1 && stats.integer("tasks", "inFlight") == 0)
        #expect(stats.integer("tasks", "waiting") == 2 && stats.integer("sessions", "waiting") == 2)
        let worker = try second.curlWorker(topic: self.topic, query: self.query)
        let again = try self.handle(worker, of: second)
        #expect(again.data["task"] as? String == "com.example.refresh" && again.data["attempt"] as? Int == 1)
        #expect(again.id != begun.id && begun.data["attempt"] as? Int == 1)
        // The session has the refresh's interval to wait, unless the device is in use.
        try self.report(#"{"appState":"active"}"#, to: second)
        let session = try self.handle(worker, of: second)
        #expect(session.data["session"] as? String == "photos" && session.data["count"] as? Int == 2)
        try self.report(#"{"appState":"background","charging":true}"#, to: second)
        #expect(try self.handle(worker, of: second).data["task"] as? String == "com.example.clean")
        worker.process.send(SIGKILL)
        try folder.end(second, signal)

        let books = try folder.start().stats()
        #expect(books.integer("tasks", "submitted") == 2 && books.integer("tasks", "results", "success") == 2)
        #expect(books.integer("tasks", "waiting") == 0 && books.integer("tasks", "inFlight") == 0)
        #expect(books.integer("sessions", "completed") == 2 && books.integer("sessions", "waiting") == 0)
    }
}
