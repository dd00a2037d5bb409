import Foundation
import Glibc
import Testing

@Suite("Followers of events", .serialized, .timeLimit(.minutes(15)))
struct EventsTests {
    private let topic = "com.example.events"
    private let token = String(repeating: "0ddba11e", count: 8)

    /// Opens a stream of `GET /v1/events` with plain `curl -N`.
    private func follow(_ gateway: RunningGateway, _ query: String = "", _ options: String...) throws -> EventStream {
        let command = ["--silent", "--show-error", "--noproxy", "*", "--no-buffer"] + options
        let process = try ChildProcess("curl", command + ["http://\(gateway.admin)/v1/events\(query)"])
        let greeting = try process.line()
        #expect(greeting == ": events follow")
        return EventStream(process)
    }

    @Test("wakegate events ends when the reader of its output has ended")
    func closedOutput() throws {
        let gateway = try RunningGateway()
        let script = "\"$0\" events --json | head -n 1; echo ended"
        let follower = try ChildProcess("bash", ["-c", script, RunningGateway.program], folder: gateway.folder)
        try gateway.eventually("the end of the command") {
            _ = try gateway.push(self.token, topic: self.topic)
            return !follower.isRunning
        }
        #expect(try follower.finish().output.hasSuffix("ended\n"))
    }

    @Test("A client that reads too slowly receives the number of missed events, and then new events again")
    func slow() throws {
        let gateway = try RunningGateway(["--set", "limits.streamingBytesSoftMax=16384"])
        let follower = try ChildProcess(client: "slow_follower.py", [gateway.admin], isInputOpen: true)
        #expect(try follower.line() == "following")
        let count = 300
        let quick = try self.follow(gateway, "?outcome=push")
        let push = ["push", self.token, "--topic", self.topic, "--count", "\(count)"]
        let sent = try ChildProcess.wakegate(push + gateway.edgeOptions, folder: gateway.folder)
        #expect(sent.status == 0, "\(sent.errors)")
        // The reader receives all events, so they have also reached the client that does not read.
        var heard = 0
        while heard < count {
            let event = try #require(try quick.next())
            heard += event.name == "missed" ? try #require(event.data["count"] as? Int) : 1
        }
        try follower.write("read")
        var told = 0
        while true {
            let line = try #require(try follower.line())
            guard line.hasPrefix("missed ") else {
                told += 1
                continue
            }
            let missed = try #require(Int(line.dropFirst("missed ".count)))
            #expect(told > 0 && missed > 0 && told + missed == count + 1, "one more is the registration")
            break
        }
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try follower.line() == "push")
        follower.send(SIGKILL)
    }

    @Test("A gateway that shuts down ends the streams, and does not wait for followers and viewers")
    func shutdown() throws {
        let gateway = try RunningGateway(["--set", "drainTimeout=300"])
        let streams = try ["events", "live"].flatMap { name in
            try ["--http1.1", "--http2-prior-knowledge"].map { version in
                let options = ["--silent", "--show-error", "--noproxy", "*", "--no-buffer", version]
                return try ChildProcess("curl", options + ["http://\(gateway.admin)/v1/\(name)"])
            }
        }
        for stream in streams { #expect(try stream.line() != nil) }
        #expect(try gateway.process.end().status == 0)
        for stream in streams { while try stream.line() != nil {} }
    }

    @Test("Afar an operator's token opens a stream, and it ends when the token is revoked")
    func revoked() throws {
        let gateway = try ServedGateway()
        let (token, id) = try gateway.issue("--role", "operator")
        let bound = try gateway.issue("--role", "operator", "--topic", self.topic).token
        let streams = try ["/v1/events", "/v1/live"].map { path in
            #expect(try gateway.ask(.adminAfar, "GET", path).status == 401)
            #expect(try gateway.ask(.adminAfar, "GET", path, token: bound).status == 403)
            let options = gateway.curl(.adminAfar, path) + ["--no-buffer"]
            return try ChildProcess("curl", options + ["-H", "authorization: Bearer \(token)"])
        }
        for stream in streams { #expect(try stream.line() != nil) }
        try gateway.revoke(id)
        for stream in streams { while try stream.line() != nil {} }
    }

    /// Returns the next line of a client command that is not about its connection.
    private func line(_ process: ChildProcess) throws -> String { try #require(try process.line()) }

    @Test("wakegate events prints a line per event, as JSON if asked for, and resumes when the gateway is back")
    func command() throws {
        let folder = try RestartFolder()
        var gateway = try folder.start()
        let url = "http://\(gateway.admin)"
        let events = ["events", "--gateway", url, "--topic", self.topic]
        let text = try ChildProcess(wakegate: events)
        let json = try ChildProcess(wakegate: events + ["--json", "--outcome", "push"])
        for client in [text, json] {
            try gateway.eventually("it follows") { client.errors.contains("wakegate: following at \(url)") }
        }
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try self.line(text).hasSuffix("registered  \(self.topic)  \(self.token)"))
        let push = try self.line(text)
        #expect(push.contains("Z push        scheduled  \(self.topic)  \(self.token)  apns-id "), "\(push)")
        let object = try json.object()
        #expect(object["event"] as? String == "push" && object["disposition"] as? String == "scheduled")
        let admin = gateway.admin
        #expect(try gateway.process.end().status == 0)
        gateway = try folder.start(admin: admin)
        try gateway.eventually("it follows again") {
            text.errors.components(separatedBy: "wakegate: following at").count == 3
        }
        #expect(try gateway.push(self.token, topic: self.topic, payload: "{").status == 400)
        #expect(try self.line(text).contains("Z refused     PayloadEmpty  \(self.topic)"))
        for client in [text, json] {
            #expect(try client.end().status == 0)
        }
        let wrong = try gateway.wakegate("events", "--gateway", url, "--outcome", "refusd")
        #expect(wrong.status == 1 && wrong.errors.contains("(refused?)"), "\(wrong.errors)")
    }

    @Test("wakegate events ends with an error that a retry cannot help, even after it has followed")
    func permanentFailure() throws {
        let server = try ChildProcess(client: "ended_streams.py", [])
        let url = "http://127.0.0.1:\(try #require(try server.line()))"
        let client = try ChildProcess.wakegate(["events", "--gateway", url])
        #expect(client.status == 1 && client.errors.contains("wakegate: following at \(url)"), "\(client.errors)")
        #expect(client.errors.contains("the gateway ended the stream; following again in "), "\(client.errors)")
        #expect(client.errors.hasSuffix("the header fields of the answer are too large\n"), "\(client.errors)")
    }

    @Test("wakegate dev prints events to standard error unless it is quiet, and the URL of the dashboard")
    func dev() throws {
        let gateway = try RunningGateway(showsEvents: true)
        // With this interval, nothing needs to be shortened for a trial.
        let quiet = try RunningGateway(["--set", "policy.launchInterval=5"])
        for one in [gateway, quiet] {
            try one.eventually("the paragraph") { one.process.errors.contains("wakegate stats") }
            #expect(one.process.errors.contains("in a browser: http://\(one.admin)/\n"))
            let advice = "--set policy.launchInterval=10, or push with --priority 10"
            #expect(one.process.errors.contains(advice) == (one === gateway))
            #expect(try one.push(self.token, topic: self.topic).status == 200)
            #expect(try one.push(self.token, topic: self.topic, payload: "{").status == 400)
        }
        try gateway.eventually("the lines of both pushes") {
            let errors = gateway.process.errors
            return errors.contains("Z push        scheduled  \(self.topic)  \(self.token)")
                && errors.contains("Z refused     PayloadEmpty  \(self.topic)  \(self.token)")
        }
        #expect(try quiet.process.end().status == 0)
        #expect(!quiet.process.errors.contains(self.token + "  apns-id"))
    }
}

@Suite("Viewers of a gateway", .serialized, .timeLimit(.minutes(15)))
struct LiveTests {
    private let topic = "com.example.live"
    private let token = String(repeating: "11fe", count: 16)

    /// Opens a stream of `GET /v1/live` with plain `curl -N`.
    private func watch(_ gateway: RunningGateway, _ options: String...) throws -> EventStream {
        let command = ["--silent", "--show-error", "--noproxy", "*", "--no-buffer"] + options
        return EventStream(try ChildProcess("curl", command + ["http://\(gateway.admin)/v1/live"]))
    }

    /// Returns the next event for which a condition holds.
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
        (Answer.value(at: path, in: event) as? NSNumber)?.intValue
    }

    @Test(
        "Live statistics arrive once a second over both HTTP versions",
        arguments: ["--http1.1", "--http2-prior-knowledge"]
    )
    func live(version: String) throws {
        let gateway = try RunningGateway()
        let stream = try self.watch(gateway, version)
        let first = try self.event(stream) { _ in true }
        #expect(self.integer(first, "stats", "pushes", "accepted") == 0)
        #expect((first["gateway"] as? [String: Any])?["state"] as? String == "ready")
        #expect((first["gateway"] as? [String: Any])?["edge"] as? String == gateway.edge)
        try gateway.curlWorker(topic: self.topic)
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
    }

    @Test("Tasks are counted by kind and hold, in events and in samples")
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

    @Test("A client that reads too slowly is disconnected while events wait, and others continue")
    func slow() throws {
        let gateway = try RunningGateway()
        let quick = try self.watch(gateway)
        let slow = try ChildProcess(client: "slow_watcher.py", [gateway.admin, gateway.plain]).finish()
        #expect(slow.status == 0, "\(slow.errors)")
        #expect(slow.output == "CANCEL\n", "\(slow.output)")
        _ = try self.event(quick) { _ in true }
    }
}
