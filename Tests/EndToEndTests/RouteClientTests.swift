import Foundation
import Testing

@Suite("Clients of other languages on every route", .serialized, .timeLimit(.minutes(15)))
struct RouteClientTests {
    /// A program that takes lines `METHOD URL` and prints `METHOD URL STATUS LENGTH`.
    struct Client: CustomTestStringConvertible {
        let testDescription: String
        let command: [String]

        static let all: [Client] = {
            let folder = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients").path
            return [
                Client(testDescription: "httpx", command: [RunningGateway.python, "\(folder)/routes_httpx.py"]),
                Client(testDescription: "node", command: ["node", "\(folder)/routes_node.mjs"]),
                Client(testDescription: "go", command: ["go", "run", "\(folder)/routes.go"]),
                Client(testDescription: "java", command: ["java", "\(folder)/RoutesJava.java"]),
            ]
        }()
    }

    /// What stands for the parameters of a path.
    private static let values = [
        "{topic}": "com.example.routes", "{token}": String(repeating: "ab", count: 32),
        "{wake}": String(repeating: "0", count: 32), "{stream}": "1-2-3-4-5", "{id}": "none", "{file}": "main.js",
        "{identifier}": "com.example.task", "{session}": "uploads",
        "{apnsID}": "123e4567-e89b-12d3-a456-426614174000",
    ]

    @Test("HTTP/1.1 is understood on every route, and GET, HEAD and POST are answered alike", arguments: Client.all)
    func version1(client: Client) throws {
        let gateway = try RunningGateway()
        try self.play(client, version: "1", gateway, ["http://\(gateway.admin)", "http://\(gateway.plain)"])
    }

    @Test("Over HTTP/2 every route of the edge answers GET, HEAD and POST alike", arguments: Client.all)
    func version2(client: Client) throws {
        let gateway = try RunningGateway()
        try self.play(client, version: "2", gateway, ["https://\(gateway.edge)"])
    }

    @Test("In cleartext with prior knowledge, too", arguments: Client.all.prefix(2))
    func priorKnowledge(client: Client) throws {
        let gateway = try RunningGateway()
        try self.play(client, version: "2", gateway, ["http://\(gateway.admin)", "http://\(gateway.plain)"])
    }

    @Test(
        "curl -I has the head of every route, and no content",
        arguments: ["--http1.1", "--http2", "--http2-prior-knowledge"]
    )
    func curl(version: String) throws {
        let gateway = try RunningGateway()
        let isEdge = version == "--http2"
        let origins = isEdge ? ["https://\(gateway.edge)"] : ["http://\(gateway.admin)", "http://\(gateway.plain)"]
        for origin in origins {
            for path in try self.paths() {
                let ended = try ChildProcess.run("curl", gateway.curlOptions + ["-I", version, origin + path])
                #expect(ended.status == 0, "\(origin)\(path): \(ended.errors)")
                #expect(ended.output.hasPrefix(version == "--http1.1" ? "HTTP/1.1 " : "HTTP/2 "), "\(path)")
                #expect(ended.output.hasSuffix("\r\n\r\n"), "\(path): there is content behind the head")
            }
        }
    }

    @Test("Where HEAD is taken, allow says so, and on streams it is refused like any other method")
    func allow() throws {
        let gateway = try RunningGateway()
        let device = "/v1/devices/" + String(repeating: "4ead4ead", count: 8)
        #expect(try gateway.admin("/v1/stats", "-X", "POST").headers["allow"] == "GET, HEAD")
        #expect(try gateway.admin(device, "-X", "POST").headers["allow"] == "GET, HEAD, DELETE")
        #expect(try gateway.admin("/v1/live", "-X", "POST").headers["allow"] == "GET")
        #expect(try gateway.admin("/v1/live", "-I").headers["allow"] == "GET")
        #expect(try gateway.edge("/v1/topics/com.example.head/wakes", "-I").headers["allow"] == "GET")
    }

    /// Has a client ask for everything, and looks whether its answers are those of the first client, and those of HEAD
    /// those of GET, but for streams, of which there is no HEAD.
    private func play(_ client: Client, version: String, _ gateway: RunningGateway, _ origins: [String]) throws {
        // The topic is known whoever asks first; its device is none that is asked for.
        #expect(try gateway.edge("/v1/topics/com.example.routes/devices", "-d", "{}").status == 201)
        let paths = try self.paths()
        var questions: [String] = []
        for origin in origins {
            for path in paths { questions += ["GET", "HEAD", "POST"].map { "\($0) \(origin)\(path)" } }
        }
        let answers = try self.ask(client, version: version, gateway, questions)
        #expect(answers.count == questions.count)
        let known = try self.ask(Client.all[0], version: version, gateway, questions)
        for (answer, known) in zip(answers, known) {
            let (words, expected) = (answer.split(separator: " "), known.split(separator: " "))
            try #require(words.count == 4 && expected.count == 4, "\(answer)")
            #expect(words[0...2] == expected[0...2], "\(answer), but \(known)")
            #expect((words[3] == "stream") == (expected[3] == "stream"), "\(answer), but \(known)")
        }
        for (get, head) in zip(answers, answers.dropFirst()) where head.hasPrefix("HEAD ") {
            let (get, head) = (get.split(separator: " "), head.split(separator: " "))
            #expect(head[3] == "0", "\(head)")
            #expect(head[2] == (get[3] == "stream" ? "405" : get[2]), "\(head), but \(get)")
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
        #expect(ended.status == 0, "\(client.testDescription): \(ended.errors)\n\(ended.output.suffix(300))")
        return ended.output.split(separator: "\n").map(String.init)
    }

    /// Every path of the document, and that of a push.
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
