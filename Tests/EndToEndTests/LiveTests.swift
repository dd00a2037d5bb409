import Foundation
import Glibc
import Testing

@Suite("Those who watch a gateway", .serialized, .timeLimit(.minutes(15)))
struct LiveTests {
    private let topic = "com.example.live"
    private let token = String(repeating: "11fe", count: 16)

    /// A stream of `GET /v1/live` that is nothing but `curl -N`.
    private func watch(_ gateway: RunningGateway, _ options: String...) throws -> EventStream {
        let command = ["--silent", "--show-error", "--noproxy", "*", "--no-buffer"] + options
        return EventStream(try ChildProcess("curl", command + ["http://\(gateway.admin)/v1/live"]))
    }

    /// The next event in which something holds.
    private func event(_ stream: EventStream, where holds: ([String: Any]) -> Bool) throws -> [String: Any] {
        for _ in 0..<60 {
            let event = try #require(try stream.next())
            #expect(event.name == "sample")
            #expect(event.id == (event.data["at"] as? NSNumber).map { "\($0)" })
            if holds(event.data) { return event.data }
        }
        throw ChildProcess.Failure(description: "not within 60 events")
    }

    private func integer(_ event: [String: Any], _ path: String...) -> Int? {
        var value: Any? = event
        for key in path { value = (value as? [String: Any])?[key] }
        return (value as? NSNumber)?.intValue
    }

    @Test(
        "Over both HTTP versions they hear once a second what is pushed, who waits and who works",
        arguments: ["--http1.1", "--http2-prior-knowledge"]
    )
    func live(version: String) throws {
        let gateway = try RunningGateway()
        let stream = try self.watch(gateway, version)
        let first = try self.event(stream) { _ in true }
        #expect(self.integer(first, "stats", "pushes", "accepted") == 0)
        #expect((first["gateway"] as? [String: Any])?["state"] as? String == "ready")
        #expect((first["gateway"] as? [String: Any])?["edge"] as? String == gateway.edge)
        let worker = try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let busy = try self.event(stream) { self.integer($0, "stats", "pushes", "inFlight") == 1 }
        #expect(self.integer(busy, "topics", "count") == 1)
        let topics = (busy["topics"] as? [String: Any])?["listed"] as? [[String: Any]]
        #expect(topics?.first?["topic"] as? String == self.topic)
        #expect((topics?.first?["launched"] as? NSNumber)?.intValue == 1)
        let workers = (busy["streams"] as? [String: Any])?["listed"] as? [[String: Any]]
        #expect(workers?.first?["name"] as? String == "curl")
        #expect((workers?.first?["slots"] as? NSNumber)?.intValue == 4)
        #expect((workers?.first?["busy"] as? NSNumber)?.intValue == 1)
        #expect((workers?.first?["executionWindow"] as? NSNumber)?.intValue == 30_000)
        let lag = try #require((workers?.first?["lag"] as? NSNumber)?.intValue)
        let later = try self.event(stream) { _ in true }
        let laterWorkers = (later["streams"] as? [String: Any])?["listed"] as? [[String: Any]]
        #expect(try #require((laterWorkers?.first?["lag"] as? NSNumber)?.intValue) > lag)
        withExtendedLifetime(worker) {}
    }

    @Test("Tasks are told by kind and by what holds them, in events as in samples")
    func tasks() throws {
        let gateway = try RunningGateway()
        let stream = try self.watch(gateway)
        let registered = try gateway.wakegate("device", "register", self.token, "--topic", self.topic)
        #expect(registered.status == 0, "\(registered.errors)")
        let request = #"{"identifier":"clean","kind":"processing"}"#
        #expect(try gateway.admin("/v1/devices/\(self.token)/tasks", "-d", request).status == 201)
        let event = try self.event(stream) { self.integer($0, "tasks", "held", "worker") == 1 }
        #expect(self.integer(event, "tasks", "waiting", "processing") == 1)
        #expect(self.integer(event, "tasks", "launched", "processing") == 0)
        let fields = try #require(try gateway.admin("/v1/samples?every=1").value("fields") as? [String])
        for field in fields where field.hasPrefix("tasks.") {
            let path = field.split(separator: ".").map(String.init)
            #expect(path.count == 3 && self.integer(event, path[0], path[1], path[2]) != nil, "\(field)")
        }
        #expect(fields.contains("tasks.inFlight.urlSession"))
        stream.process.send(SIGKILL)
    }

    @Test("Whoever comes late sees the past: the samples grow, the newest last, and are as the statistics are")
    func samples() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.eventually("three samples, the last with the push") {
            let answer = try gateway.admin("/v1/samples?every=1")
            let fields = try #require(answer.value("fields") as? [String])
            let samples = try #require(answer.value("samples") as? [[NSNumber]])
            #expect(samples.allSatisfy { $0.count == fields.count })
            let moments = samples.map { $0[0].int64Value }
            #expect(moments == moments.sorted())
            let accepted = try #require(fields.firstIndex(of: "accepted"))
            let waiting = try #require(fields.firstIndex(of: "held.worker"))
            return samples.count >= 3 && samples.last?[accepted] == 1 && samples.last?[waiting] == 1
        }
        #expect(try gateway.admin("/v1/samples").integer("every") == 1)
        #expect(try gateway.admin("/v1/samples?every=300").integer("every") == 300)
        for query in ["every=2", "every=", "devise=1"] {
            #expect(try gateway.admin("/v1/samples?\(query)").reason == "BadQuery", "\(query)")
        }
        #expect(try gateway.edge("/v1/samples").reason == "BadPath")
        #expect(try gateway.edge("/v1/live").reason == "BadPath")
    }

    @Test("There are as many who watch as the bound allows; one more is told so, and may come when another has gone")
    func bound() throws {
        let gateway = try RunningGateway(["--set", "limits.liveStreamsMax=1"])
        let stream = try self.watch(gateway)
        _ = try self.event(stream) { _ in true }
        let refused = try gateway.admin("/v1/live")
        #expect(refused.status == 503)
        #expect(refused.headers["retry-after"] == "5")
        #expect((refused.value("message") as? String)?.contains("limits.liveStreamsMax") == true)
        #expect(try gateway.stats().integer("limits", "liveStreamsMax") == 1)
        stream.process.send(SIGKILL)
        try gateway.eventually("room for another") {
            let other = try self.watch(gateway, "--fail")
            return try other.next() != nil
        }
    }

    @Test("Who reads too slowly is dropped while events wait, and others go on")
    func slow() throws {
        let gateway = try RunningGateway()
        let quick = try self.watch(gateway)
        let script = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/slow_watcher.py").path
        let slow = try ChildProcess.run(RunningGateway.python, [script, gateway.admin, gateway.plain])
        #expect(slow.status == 0, "\(slow.errors)")
        #expect(slow.output == "CANCEL\n", "\(slow.output)")
        _ = try self.event(quick) { _ in true }
    }
}
