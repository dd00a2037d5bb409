import Foundation
import Glibc
import Testing

@Suite("Ordinary clients push", .serialized, .timeLimit(.minutes(15)))
struct OrdinaryClientTests {
    private let topic = "com.example.clients"
    private let token = String(repeating: "0badcafe", count: 8)

    @Test("Clients that expect 100 Continue before they send the payload push without a pause")
    func expectation() throws {
        let gateway = try RunningGateway()
        let url = "https://\(gateway.edge)/3/device/\(self.token)"
        let body = gateway.folder.appendingPathComponent("body")
        try Data(RunningGateway.payload.utf8).write(to: body)
        let nghttp = try ChildProcess.run(
            "nghttp",
            ["--verbose", "--expect-continue", "--data=\(body.path)", "-H", "apns-topic: \(self.topic)", url]
        )
        let statuses = nghttp.output.matches(of: /:status: ([0-9]+)/).map { String($0.output.1) }
        #expect(statuses == ["100", "200"], "\(nghttp.output)")
        let script = RunningGateway.client("ExpectJava.java")
        let arguments = [script, url, gateway.certificateAuthority, self.topic, RunningGateway.payload]
        let java = try ChildProcess.run("java", arguments)
        #expect(java.output == "HTTP_2 200\n", "\(java.errors)")
    }

    @Test("A Python client that offers no ALPN and sends no :authority pushes")
    func withoutALPN() throws {
        let gateway = try RunningGateway()
        let path = "/3/device/\(self.token)"
        try #require(FileManager.default.fileExists(atPath: RunningGateway.python), "run deploy/setup first")
        let words = [gateway.edge, gateway.certificateAuthority, path, self.topic, RunningGateway.payload]
        let ended = try ChildProcess(client: "push_without_alpn.py", words).finish()
        #expect(ended.output == "HTTP/2 200 scheduled\n", "\(ended.errors)")
    }
}

@Suite("Raw HTTP/2 clients in numbers and across a restart", .serialized, .timeLimit(.minutes(15)))
struct RawClientTests {
    private let topic = "com.example.clients"

    @Test("curl pushes a thousand times, two hundred at a time, and learns that a token is inactive")
    func curlThousand() throws {
        let gateway = try RunningGateway()
        let options = ["--parallel", "--parallel-max", "200"]
        let ended = try self.curl(gateway, options, devices: "[1000-1999]").finish(within: 60)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == String(repeating: "200 2\n", count: 1000))
        #expect(try gateway.stats().integer("pushes", "accepted") == 1000)
        let removed = String(repeating: "0", count: 60) + "1500"
        #expect(try gateway.admin("/v1/devices/\(removed)", "-X", "DELETE").status == 204)
        let answers = try self.curl(gateway, devices: "[1499-1500]").finish().output
        #expect(answers == "200 2\n410 2\n")
    }

    @Test("curl repeats requests that a restart left unanswered, until all are answered")
    func curlRestart() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let options = ["--rate", "20/s", "--retry", "20", "--retry-delay", "1", "--retry-all-errors"]
        let client = try self.curl(gateway, options, devices: "[1000-1039]")
        for _ in 0..<10 { #expect(try client.line() == "200 2") }
        #expect(try gateway.process.end(SIGTERM).status == 0)
        let next = try folder.start(edge: gateway.edge)
        let ended = try client.finish(within: 60)
        #expect(ended.status == 0, "\(ended.errors)")
        // A repeated push writes one line for each attempt.
        let last = ended.output.split(separator: "\n")
        #expect(last.filter { $0 == "200 2" }.count == 30, "\(ended.output)")
        #expect(try next.stats().integer("pushes", "accepted") == 40)
    }

    @Test("A connection with a wake in flight at the drain timeout receives a GOAWAY, too")
    func goAwayAtTimeout() throws {
        let gateway = try RunningGateway(["--set", "drainTimeout=1"])
        let url = "https://\(gateway.edge)/v1/topics/\(self.topic)/wakes"
        let client = try ChildProcess("nghttp", ["--verbose", url])
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        #expect(try gateway.push(String(repeating: "a", count: 64), topic: self.topic).status == 200)
        try gateway.eventually("a wake") { try gateway.stats().integer("pushes", "inFlight") == 1 }
        #expect(try gateway.process.end().status == 0)
        let frames = try client.finish().output
        #expect(frames.contains(#"error_code=NO_ERROR(0x00), opaque_data(21)=[{"reason":"Shutdown"}]"#), "\(frames)")
    }

    /// Starts one push for each device of curl's URL pattern. Each push writes its status and its HTTP version when it
    /// is answered.
    private func curl(_ gateway: RunningGateway, _ options: [String] = [], devices: String) throws -> ChildProcess {
        let url = "https://\(gateway.edge)/3/device/" + String(repeating: "0", count: 60) + devices
        return try ChildProcess(
            "curl",
            gateway.curlOptions + options + [
                "--output", "/dev/null", "--write-out", #"%{http_code} %{http_version}\n"#, "-H",
                "apns-topic: \(self.topic)", "--data-binary", RunningGateway.payload, url,
            ]
        )
    }
}

@Suite("Clients in other languages on every route", .serialized, .timeLimit(.minutes(15)))
struct RouteClientTests {
    /// A program that reads lines `METHOD URL` and prints `METHOD URL STATUS LENGTH`.
    struct Client {
        let name: String
        let command: [String]

        static let all: [Client] = {
            let folder = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients").path
            return [
                Client(name: "httpx", command: [RunningGateway.python, "\(folder)/ask_httpx.py", "routes"]),
                Client(name: "node", command: ["node", "\(folder)/routes_node.mjs"]),
                Client(name: "go", command: ["go", "run", "\(folder)/routes.go"]),
                Client(name: "java", command: ["java", "\(folder)/RoutesJava.java"]),
            ]
        }()
    }

    /// The values for the parameters of a path.
    private static let values = [
        "{topic}": "com.example.routes", "{token}": String(repeating: "ab", count: 32),
        "{wake}": String(repeating: "0", count: 32), "{stream}": "1-2-3-4-5", "{id}": "none", "{file}": "main.js",
        "{identifier}": "com.example.task", "{session}": "uploads",
        "{apnsID}": "123e4567-e89b-12d3-a456-426614174000",
    ]

    @Test("GET, HEAD and POST are answered alike on every route, to every client, over HTTP/1.1 and HTTP/2")
    func routes() throws {
        let gateway = try RunningGateway()
        // The topic must be known for all requests; its device is not used by any request.
        #expect(try gateway.edge("/v1/topics/com.example.routes/devices", "-d", "{}").status == 201)
        let cleartext = ["http://\(gateway.admin)", "http://\(gateway.plain)"]
        try self.play(Client.all, version: "1", gateway, cleartext)
        try self.play(Client.all, version: "2", gateway, ["https://\(gateway.edge)"])
        // In cleartext with prior knowledge.
        try self.play(Array(Client.all.prefix(2)), version: "2", gateway, cleartext)
    }

    /// Sends all requests with each client. Expects the same answers as those of the first client, and the same headers
    /// for HEAD as for GET, except for streams, which do not support HEAD.
    private func play(_ clients: [Client], version: String, _ gateway: RunningGateway, _ origins: [String]) throws {
        let paths = try self.paths()
        var questions: [String] = []
        for origin in origins {
            for path in paths { questions += ["GET", "HEAD", "POST"].map { "\($0) \(origin)\(path)" } }
        }
        var known: [String] = []
        for client in clients {
            let answers = try self.ask(client, version: version, gateway, questions)
            if known.isEmpty { known = answers }
            #expect(answers.count == questions.count, "\(client.name)")
            for (answer, known) in zip(answers, known) {
                let (words, expected) = (answer.split(separator: " "), known.split(separator: " "))
                try #require(words.count == 4 && expected.count == 4, "\(client.name): \(answer)")
                #expect(words[0...2] == expected[0...2], "\(client.name): \(answer), but \(known)")
                #expect((words[3] == "stream") == (expected[3] == "stream"), "\(client.name): \(answer), but \(known)")
            }
            for (get, head) in zip(answers, answers.dropFirst()) where head.hasPrefix("HEAD ") {
                let (get, head) = (get.split(separator: " "), head.split(separator: " "))
                #expect(head[3] == "0", "\(client.name): \(head)")
                #expect(head[2] == (get[3] == "stream" ? "405" : get[2]), "\(client.name): \(head), but \(get)")
            }
        }
    }

    private func ask(
        _ client: Client,
        version: String,
        _ gateway: RunningGateway,
        _ questions: [String]
    ) throws -> [String] {
        let arguments = Array(client.command.dropFirst()) + [version, gateway.certificateAuthority]
        let input = questions.joined(separator: "\n") + "\n"
        let ended = try ChildProcess.run(client.command[0], arguments, input: input)
        #expect(ended.status == 0, "\(client.name): \(ended.errors)\n\(ended.output.suffix(300))")
        return ended.output.split(separator: "\n").map(String.init)
    }

    /// Returns all paths of the OpenAPI document and the path of a push.
    private func paths() throws -> [String] {
        let file = RunningGateway.root.appendingPathComponent("Sources/Server/Gateway/Edge/OpenAPI/openapi.json")
        let document = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
        let paths = try #require(document?["paths"] as? [String: Any]).keys.sorted()
        #expect(paths.count > 25)
        return (paths + ["/3/device/{token}"]).map { path in
            let filled = Self.values.reduce(path) { $0.replacingOccurrences(of: $1.key, with: $1.value) }
            #expect(!filled.contains("{"), "\(filled)")
            return filled
        }
    }
}

@Suite("Streams of a connection, as APNs allows them", .serialized, .timeLimit(.minutes(15)))
struct AppleStreamLimitTests {
    private static let topic = "com.example.app"
    private static let demand = ["--set", "appleStreamLimit=true"]

    /// Returns the gateway's answers to rounds of pushes, in the format of `stream_limit.py`.
    private func said(
        _ gateway: RunningGateway,
        plain: Bool = false,
        certificate: String = "-",
        _ rounds: String...
    ) throws -> [String] {
        let place = plain ? [gateway.plain, "-"] : [gateway.edge, gateway.certificateAuthority]
        let ended = try ChildProcess(client: "stream_limit.py", place + [certificate, Self.topic] + rounds).finish()
        #expect(ended.status == 0, "\(ended.errors)")
        return ended.output.split(separator: "\n").map(String.init)
    }

    @Test("With appleStreamLimit it may open one stream until its first push with a valid token, and then a thousand")
    func limited() throws {
        let asking = try AskingGateway(Self.demand)
        try asking.useKey("KEY0000001", topic: Self.topic)
        let good = try asking.authorization("KEY0000001").dropFirst("Bearer ".count)
        let bad = try asking.authorization("KEY0000002").dropFirst("Bearer ".count)
        #expect(
            try self.said(asking.gateway, "3", "2:\(bad)", "3:\(good)", "100:\(good)", "100", "1001:\(good)") == [
                "limit 1", "answered 1 403", "refused 2", "answered 1 403", "refused 1", "limit 1000",
                "answered 1 200", "refused 2", "answered 100 200", "answered 100 403", "answered 1000 200", "refused 1",
            ]
        )
        // The limit starts again for each connection.
        #expect(
            try self.said(asking.gateway, "1", "2") == [
                "limit 1", "answered 1 403", "answered 1 403", "refused 1",
            ]
        )
    }

    @Test("With a client certificate the limit is a thousand streams from the start")
    func certificate() throws {
        let gateway = try RunningGateway(Self.demand + ["--set", "tls.clientCA=.wakegate/ca.pem"])
        let certificate = gateway.folder.appendingPathComponent(".wakegate/provider.pem").path
        #expect(try self.said(gateway, certificate: certificate, "9") == ["limit 1000", "answered 9 200"])
        #expect(try self.said(gateway, "2") == ["limit 1", "answered 1 403", "refused 1"])
    }

    @Test("Without required tokens the limit is raised when a worker subscribes, or after the first push in cleartext")
    func withoutTokens() throws {
        let gateway = try RunningGateway(Self.demand)
        let raised = ["limit 1", "limit 1000", "answered 1 200"]
        #expect(try self.said(gateway, "subscribe", "5") == raised + ["answered 5 200"])
        #expect(try self.said(gateway, plain: true, "2", "9") == raised + ["refused 1", "answered 9 200"])
    }
}
