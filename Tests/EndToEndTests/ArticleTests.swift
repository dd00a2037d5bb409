import Foundation
import Testing
import WakeGateTestKit

@Suite("The article on background tasks", .serialized, .timeLimit(.minutes(15)))
struct BackgroundTaskArticleTests {
    @Test("Each command prints the output shown below it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "BackgroundTasks")
        #expect(shown.count > 20)
        let terminal = ArticleTerminal(try RunningGateway())
        for each in shown {
            guard each.command.hasPrefix("wakegate dev ") else {
                try terminal.run(each)
                continue
            }
            // The worker has written these lines after the last one that the article shows.
            #expect(try terminal.backgroundLine()?.hasSuffix(" urlSession of 3 transfers in photos") == true)
            #expect(try terminal.backgroundLine()?.contains(" scheduled, may launch in ") == true)
            #expect(try terminal.backgroundLine()?.hasSuffix(" appRefresh com.example.app.refresh") == true)
            let options = try ArticleTerminal.words(of: each.command).dropFirst(2)
            terminal.move(to: try RunningGateway(Array(options)))
            try terminal.run(try #require(shown.first { $0.command.hasPrefix("wakegate device register ") }))
        }
        #expect(try terminal.gateway.stats().integer("tasks", "refused", "NotPermitted") == 1)
    }
}

@Suite("The article on continued tasks", .serialized, .timeLimit(.minutes(15)))
struct ContinuedTaskArticleTests {
    @Test("Each command prints the output shown below it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "ContinuedTasks")
        #expect(shown.count > 15)
        let terminal = ArticleTerminal(try RunningGateway())
        try terminal.runAll(shown)
        let stats = try terminal.gateway.stats()
        #expect(stats.integer("tasks", "refused", "NotForeground") == 1)
        #expect(stats.integer("tasks", "refused", "ImmediateRunIneligible") == 1)
        #expect(stats.integer("tasks", "results", "success") == 1)
        #expect(stats.integer("tasks", "results", "failure") == 1)
        #expect(stats.integer("tasks", "results", "cancelled") == 1)
    }
}

@Suite("The checklist", .serialized, .timeLimit(.minutes(15)))
struct ChecklistArticleTests {
    @Test("Each command prints the output shown below it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "Checklist")
        let start = try #require(shown.first?.command)
        try #require(start.hasPrefix("wakegate dev ") && shown.count > 35)
        let options = try ArticleTerminal.words(of: start).dropFirst(2)
        let terminal = ArticleTerminal(try RunningGateway(Array(options)))
        try terminal.runAll(shown.dropFirst())
        let stats = try terminal.gateway.stats()
        #expect(stats.integer("tasks", "refused", "NotPermitted") == 1)
        #expect(stats.integer("tasks", "results", "expired") == 1)
        #expect(stats.integer("tasks", "results", "cancelled") == 1)
    }
}

@Suite("The article on transfers", .serialized, .timeLimit(.minutes(15)))
struct TransferArticleTests {
    @Test("Each command prints the output shown below it")
    func commands() throws {
        let server = try TransferServer()
        try server.put("film.mp4", TransferServer.content(3_000_000))
        let shown = try ShownCommand.all(in: "Transfers")
        #expect(shown.count >= 13)
        let terminal = ArticleTerminal(try RunningGateway())
        func here(_ text: String) -> String {
            text.replacing("https://files.example.com/", with: "http://\(server.plain)/files/")
        }
        for each in shown {
            try terminal.run(ShownCommand(command: here(each.command), output: each.output.map(here)))
        }
        let other = terminal.gateway.folder.appendingPathComponent("other.mp4")
        #expect(try Data(contentsOf: other).count == 3_000_000)
    }
}

@Suite("The articles on several gateways", .serialized, .timeLimit(.minutes(15)))
struct ClusterArticleTests {
    @Test("Two gateways on one database, as shown in ManyGateways")
    func manyGateways() throws {
        let shown = try ShownCommand.all(in: "ManyGateways")
        #expect(shown.filter { $0.command.hasPrefix("wakegate dev ") }.count == 2)
        let server = try PostgresServer.shared()
        let store = ["--set", "store=\(try server.database())"]
        let (first, second) = (try RunningGateway(store), try RunningGateway(store))
        let terminal = ArticleTerminal(first)
        var count = 0
        for each in shown where !each.command.hasPrefix("wakegate dev ") {
            let here = each.command.replacing("http://127.0.0.1:9198", with: "http://\(second.admin)")
            try terminal.run(ShownCommand(command: here, output: each.output))
            count += here == each.command ? 0 : 1
        }
        #expect(count == 2, "questions to the second gateway")
    }

    @Test("The queries of WatchingACluster run under an operator's role, and find no fault")
    func questions() throws {
        let scene = try DatabaseScene()
        #expect(try scene.run("roles.sql").status == 0)
        let gateway = try scene.gateway()
        #expect(try scene.run("grants.sql", database: "wakegate").status == 0)
        let questions = try ShownCommand.blocks("sql", in: "WatchingACluster")
        #expect(questions.count == 7)
        let primary = "\(scene.address("wakegate_read"))&target_session_attrs=primary"
        for question in questions {
            let ended = try scene.query(question, as: "wakegate_read", to: primary)
            #expect(ended.status == 0, "\(question): \(ended.errors)")
        }
        let last = try scene.query(try #require(questions.last), as: "wakegate_read", to: primary)
        #expect(last.output == "0|0|0|0\n")
        let readWrite = "\(scene.address("wakegate_read"))&target_session_attrs=read-write"
        #expect(try scene.query("SELECT", as: "wakegate_read", to: readWrite).errors.contains("session is read-only"))
        withExtendedLifetime(gateway) {}
    }
}

@Suite("The article about webhooks", .timeLimit(.minutes(15)))
struct WebhookArticleTests {
    @Test("The article's commands start a receiver, which accepts a wake of the gateway and rejects a forged signature")
    func commands() throws {
        let folder = try RestartFolder()
        let script = try #require(ShownCommand.blocks("python", in: "Webhooks").first)
        #expect(script.split(separator: "\n", omittingEmptySubsequences: false).count <= 16)
        try Data(script.utf8).write(to: folder.folder.appendingPathComponent("receiver.py"))
        let port = "\(try FreePort.take())"
        let shown = try ShownCommand.all(in: "Webhooks").map {
            ShownCommand(command: $0.command.replacing("8080", with: port), output: $0.output)
        }
        try #require(shown.count == 4 && shown[2].command.hasPrefix("wakegate dev "))
        #expect(try ChildProcess.run("bash", ["-c", shown[0].command], folder: folder.folder).status == 0)
        let start = "exec env \(shown[1].command.dropLast(2))"
        let receiver = try ChildProcess("bash", ["-c", start], folder: folder.folder)
        let options = try ArticleTerminal.words(of: String(shown[2].command.dropLast(2))).dropFirst(2)
        let gateway = try RunningGateway(Array(options), in: folder.folder)
        try gateway.eventually("a receiver: \(receiver.errors)") {
            try ChildProcess.run("curl", ["--silent", "--noproxy", "*", "http://127.0.0.1:\(port)/"]).status == 0
        }
        let terminal = ArticleTerminal(gateway)
        try terminal.run(ShownCommand(command: shown[3].command, output: Array(shown[3].output.dropLast())))
        #expect(try receiver.line() == shown[3].output.last)
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
        let now = Int(Date(timeIntervalSinceNow: 0).timeIntervalSince1970)
        let forged = ["-H", "wakegate-timestamp: \(now)", "-H", "wakegate-signature: v1=00", "--data-binary", "{}"]
        let request = ["--silent", "--noproxy", "*"] + forged + ["http://127.0.0.1:\(port)/"]
        #expect(try Answer.curl(request).status == 401)
    }
}

@Suite("The article on reloading", .serialized, .timeLimit(.minutes(15)))
struct ReloadArticleTests {
    /// Returns the output with the parts that differ between gateways replaced: addresses and files by those of the
    /// article, and times and policy versions by placeholders.
    private func general(_ output: String, _ gateway: ServedGateway) -> [String] {
        let text =
            output
            .replacingOccurrences(of: gateway.certificate, with: "/etc/wakegate/tls.pem")
            .replacingOccurrences(of: #""127.0.0.1:0""#, with: #""[::]:2197""#)
            .replacing(#/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/#, with: "MOMENT")
            .replacing(#/(version |"policyVersion":)[0-9]+/#) { "\($0.1)NUMBER" }
            .replacing(#/"needsRestart":\[.*\]/#, with: #""needsRestart":[...]"#)
        return text.split(separator: "\n").map(String.init)
    }

    @Test("Each command prints the output shown below it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "Reloading")
        #expect(
            shown.map { $0.command.split(separator: " ").prefix(2).joined(separator: " ") } == [
                "wakegate serve", "wakegate reload", "curl -s",
            ]
        )
        // The edge of the article is open to other machines, so it requires providers to authenticate.
        let keys = try RestartFolder()
        let gateway = try ServedGateway(members: ["providerKeys": keys.folder.path])
        let changed: [String: Any?] = ["edge": "[::]:443", "policy": ["launchInterval": 300]]
        try gateway.write(changed)
        try gateway.renewCertificate()
        for each in shown {
            if each.command.hasPrefix("curl ") {
                // The change that the previous command applied must be new again.
                #expect(try gateway.postReload(["policy": nil]).keys("changed") == ["policy.launchInterval"])
                try gateway.write(changed)
            }
            // In the article, the gateway has its default addresses.
            let place = gateway.url(.admin)
            let command = each.command
                .replacingOccurrences(of: "/etc/wakegate/wakegate.json5", with: gateway.configurationFile.path)
                .replacingOccurrences(of: "wakegate reload", with: "wakegate reload --gateway \(place)")
                .replacingOccurrences(of: "http://127.0.0.1:9197", with: place)
            let ended = try ChildProcess.run("env", [RunningGateway.path, "bash", "-c", "\(command) 2>&1"])
            #expect(ended.status == 0, "\(each.command): \(ended.output)")
            #expect(
                self.general(ended.output, gateway) == self.general(each.output.joined(separator: "\n"), gateway),
                "\(each.command)"
            )
        }
    }
}

@Suite("The article on credentials", .serialized, .timeLimit(.minutes(15)))
struct CredentialArticleTests {
    private let topic = "com.example.app"
    private let device = String(repeating: "da", count: 32)

    /// Returns the commands below a heading of the article.
    private func commands(below heading: String) throws -> String {
        let text = try Checkout.article("Credentials")
        let section = try #require(text.components(separatedBy: "\n### \(heading)\n").dropFirst().first)
        let block = try #require(section.components(separatedBy: "\n```sh\n").dropFirst().first)
        return try #require(block.components(separatedBy: "\n```").first)
    }

    private func run(_ heading: String, in folder: URL) throws {
        let script = "set -e\n" + (try self.commands(below: heading))
        let ended = try ChildProcess.run("bash", ["-c", script], folder: folder)
        try #require(ended.status == 0, "\(heading): \(ended.errors)")
    }

    @Test("The article's authority, certificates and list of revocations work as described")
    func certificates() throws {
        let folder = try RestartFolder()
        for heading in ["An authority", "A provider's certificate", "A worker's certificate"] {
            try self.run(heading, in: folder.folder)
        }
        // The empty list must exist when the gateway starts.
        let revocation = try self.commands(below: "Revocation")
        let without = revocation.split(separator: "\n").filter { !$0.contains("-revoke") }.joined(separator: "\n")
        #expect(try ChildProcess.run("bash", ["-c", without], folder: folder.folder).status == 0)

        func path(_ name: String) -> String { folder.folder.appendingPathComponent(name).path }
        let settings = ["tls.clientCA=\(path("client-ca.pem"))", "tls.clientCRL=\(path("revoked.pem"))"]
        let gateway = try ServedGateway((settings + ["environment=production"]).flatMap { ["--set", $0] })
        let registration = #"{"token":"\#(self.device)"}"#
        #expect(
            try gateway.ask(.admin, "POST", "/v1/topics/\(self.topic)/devices", body: registration).status == 201
        )
        let edge = gateway.curl(.edge, "")
        func wakegate(_ command: [String], _ role: String) throws -> ChildProcess {
            let certificate = ["--cert", path("\(role).pem"), "--key", path("\(role).key")]
            let place = ["--gateway", try #require(edge.last), "--ca", gateway.certificateAuthority]
            let words = [command[0]] + place + certificate + command.dropFirst()
            return try ChildProcess(wakegate: words, folder: folder.folder)
        }
        let command = ["worker", "--topic", self.topic, "--output", "inherit", "--", "sh", "-c", "cat; echo"]
        let worker = try wakegate(command, "worker")
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        func push() throws -> ChildProcess.Ended {
            try wakegate(["push", self.device, "--topic", self.topic], "provider").finish()
        }
        #expect(try push().output.hasPrefix("200 launched"))
        #expect(try worker.line() == RunningGateway.payload)
        try self.run("Revocation", in: folder.folder)
        try gateway.eventually("a refusal") { try push().status == 1 }
        #expect(try push().errors.contains("a client certificate that is not good"))
        #expect(try gateway.workerCount() == 1)
    }

    @Test("In development a worker and a provider use the generated certificates")
    func development() throws {
        let shown = try ShownCommand.all(in: "Credentials").filter { $0.command.hasPrefix("wakegate ") }
        try #require(shown.count == 3)
        let options = try ArticleTerminal.words(of: String(shown[0].command.dropLast(2))).dropFirst(2)
        let gateway = try RunningGateway(Array(options))
        let terminal = ArticleTerminal(gateway)
        try terminal.run(shown[1])
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        try terminal.run(shown[2])
        // The output follows the identifier of the wake, as in every worker.
        #expect(try terminal.backgroundLine()?.hasSuffix(" \(RunningGateway.payload)") == true)
    }
}

@Suite("The example of the article on fault mode", .serialized, .timeLimit(.minutes(15)))
struct FaultArticleTests {
    @Test("The example does what its comments say")
    func runs() throws {
        let faulty = try FaultyGateway(file: ShownCommand.blocks("json5", in: "FaultMode")[0])
        let gateway = faulty.gateway
        #expect(!gateway.process.errors.contains("warning"))
        func reason(_ device: Int, topic: String) throws -> String {
            let answer = try gateway.push(FaultyGateway.device(device), topic: topic)
            return answer.status == 200 ? "200" : answer.reason ?? ""
        }
        let gone = try gateway.push("00000000000000000000000000000001", topic: "com.example.app")
        #expect(gone.status == 410 && gone.reason == "Unregistered" && gone.integer("timestamp") != nil)

        let throttled = try [11, 12, 11, 12, 11, 12].map { try reason($0, topic: "com.example.throttled") }
        #expect(throttled == Array(repeating: "TooManyRequests", count: 4) + ["200", "200"])

        let flaky = try (0..<40).map { _ in try reason(2, topic: "com.example.flaky") }
        #expect(flaky.filter { $0 == "InternalServerError" }.count == 3)
        #expect(flaky.filter { $0 == "200" }.count == 37)

        #expect(try reason(3, topic: "com.example.narrow") == "BadDeviceToken")
        #expect(try reason(3, topic: "com.example.narrow") == "200")

        #expect(throws: ChildProcess.Failure.self) { try reason(4, topic: "com.example.lost") }
        #expect(try reason(4, topic: "com.example.lost") == "200")

        let expired = try (0..<11).map { _ in try reason(5, topic: "com.example.expired") }
        #expect(expired == Array(repeating: "200", count: 9) + ["ExpiredProviderToken", "200"])

        #expect(try reason(6, topic: "com.example.stalled") == "200")

        let fired = try faulty.counts().mapValues(\.fired)
        let expected = ["gone": 1, "throttled": 4, "flaky": 3, "narrow": 1, "stalled": 1, "lost": 1, "expired": 1]
        #expect(fired.filter { $0.value > 0 } == expected)
        #expect(fired.count == 10)
        #expect(try faulty.accepted() != nil)
    }

    @Test("The first rule behaves as the article says, and the shown commands list and change it")
    func commands() throws {
        let shown = try ShownCommand.all(in: "FaultMode")
        let start = try #require(shown.firstIndex { $0.command.hasPrefix("wakegate dev ") })
        let folder = try RestartFolder()
        for each in shown[..<start] {
            #expect(try ChildProcess.run("bash", ["-c", each.command], folder: folder.folder).status == 0)
        }
        let options = try ArticleTerminal.words(of: shown[start].command).dropFirst(2)
        let gateway = try RunningGateway(Array(options), in: folder.folder)
        let statuses = try (1...7).map { try gateway.push(FaultyGateway.device($0), topic: "com.example.app").status }
        #expect(statuses == [200, 200, 503, 200, 200, 503, 200])
        let terminal = ArticleTerminal(gateway)
        for each in shown[(start + 1)...] { try terminal.run(each) }
        #expect(try gateway.wakegate("faults", "list").output == "no fault rules\n")
    }
}

/// Runs the commands of an article one after another and compares their output with the article.
///
/// In an article, `...` stands for any text. Times, identifiers of wakes, and spaces are examples.
final class ArticleTerminal {
    private(set) var gateway: RunningGateway
    /// The assignments of shell variables, in shell syntax.
    private var assignments = ""
    private var background: [ChildProcess] = []
    /// The wakes that arrived, by the identifiers that the article shows.
    private var wakes: [String: String] = [:]

    init(_ gateway: RunningGateway) {
        self.gateway = gateway
    }

    /// Continues with another gateway and keeps the shell variables.
    func move(to gateway: RunningGateway) {
        self.background = []
        self.gateway = gateway
    }

    /// Runs a command and compares its output. A command that only queries is repeated until its output is the shown
    /// one.
    func run(_ shown: ShownCommand) throws {
        let command = self.wakes.reduce(shown.command) { $0.replacing($1.key, with: $1.value) }
        if command.wholeMatch(of: #/(export )?([A-Z_]+=\S+ ?)+/#) != nil {
            self.assignments += "\(command)\n"
        } else if command.hasSuffix(" &") {
            try self.start(String(command.dropLast(2)), shows: shown.output)
        } else if ["wakegate task list ", "wakegate stats ", "curl -s http", "curl -s \"http"].contains(
            where: { command.hasPrefix($0) }
        ) {
            var last = ""
            try self.gateway.eventually("\(command): \(last)") {
                last = try self.output(of: command)
                return Self.isShown(last, as: shown.output)
            }
        } else {
            let output = try self.output(of: command)
            #expect(Self.isShown(output, as: shown.output), "\(command): \(output)")
        }
    }

    /// Runs commands in sequence. Waits for each worker that one of them starts, so that the next submission launches
    /// at once.
    func runAll(_ shown: some Sequence<ShownCommand>) throws {
        for each in shown {
            let workers = try self.gateway.workerCount()
            try self.run(each)
            guard each.command.hasSuffix(" &") else { continue }
            try self.gateway.eventually("a worker") { try self.gateway.workerCount() == workers + 1 }
        }
    }

    /// Returns the next line of the first background command.
    func backgroundLine() throws -> String? { try self.background.first?.line() }

    /// Compares the next lines of the first background command.
    func goesOn(as lines: [String]) throws {
        for line in lines {
            let written = try self.backgroundLine() ?? "(the end)"
            #expect(Self.isShown(written, as: [line]), "\(written)")
        }
    }

    /// Returns the words of a command, split by a shell.
    static func words(of command: String) throws -> [String] {
        try ChildProcess.run("bash", ["-c", "printf '%s\\n' \(command)"]).output.split(separator: "\n").map(String.init)
    }

    // MARK: Shells

    /// Returns the shell script for a command. The article's gateway is reachable at its default addresses.
    private func script(_ command: String) -> String {
        let here =
            "\(self.assignments)\(command)"
            .replacing("https://127.0.0.1:2197", with: "https://\(self.gateway.edge)")
            .replacing("http://127.0.0.1:9197", with: "http://\(self.gateway.admin)")
        return "export PATH=\(RunningGateway.products.path):$PATH NO_PROXY='*' no_proxy='*'\n\(here)"
    }

    private func output(of command: String) throws -> String {
        let script = "exec 2>&1\n\(self.script(command))"
        return try ChildProcess.run("bash", ["-c", script], folder: self.gateway.folder).output
    }

    private func start(_ command: String, shows lines: [String]) throws {
        let process = try ChildProcess("bash", ["-c", self.script("exec \(command)")], folder: self.gateway.folder)
        self.background.append(process)
        for line in lines {
            let written = try process.line() ?? "(the end; \(process.errors))"
            #expect(Self.isShown(written, as: [line]), "\(command): \(written)")
            for (shown, came) in zip(line.matches(of: Self.wake), written.matches(of: Self.wake)) {
                self.wakes[String(shown.output)] = String(came.output)
            }
        }
    }

    // MARK: Comparison

    private static var wake: Regex<Substring> { #/\b[0-9a-f]{32}\b/#.wordBoundaryKind(.simple) }

    /// Returns the text with the parts that differ between runs replaced.
    private static func general(_ text: String) -> String {
        let text =
            text
            .replacing(#/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/#, with: "MOMENT")
            .replacing(#/\bin( [0-9]+ (d|h|min|s)\b)+/#.wordBoundaryKind(.simple), with: "in SOME TIME")
            .replacing(#/\b1[0-9]{12}\b/#.wordBoundaryKind(.simple), with: "INSTANT")
            .replacing(Self.wake, with: "WAKE")
        return text.filter { !$0.isWhitespace }
    }

    private static func isShown(_ output: String, as lines: [String]) -> Bool {
        // A sentence may end right before omitted text.
        let text = lines.joined(separator: "\n").replacing("...", with: "\u{2026}")
        let parts = self.general(text).components(separatedBy: "\u{2026}")
        var rest = Substring(self.general(output))
        guard parts.count > 1 else { return rest == parts[0] }
        guard rest.hasPrefix(parts[0]) else { return false }
        rest = rest.dropFirst(parts[0].count)
        for part in parts[1..<(parts.count - 1)] {
            guard let range = rest.range(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.hasSuffix(parts[parts.count - 1])
    }
}

/// A command of an article with the output that the article shows.
struct ShownCommand {
    /// The command. It has several lines if the article continues it or shows a whole script.
    let command: String
    let output: [String]

    /// Returns the commands of an article of the gateway, in order: each command of a `console` block, and each `sh`
    /// block as a whole.
    static func all(in article: String) throws -> [ShownCommand] {
        try self.all(at: "Sources/Server/Gateway/Gateway.docc/\(article).md")
    }

    /// Returns the blocks of an article of the gateway in a language, in order.
    static func blocks(_ language: String, in article: String) throws -> [String] {
        try Checkout.article(article).components(separatedBy: "\n```\(language)\n").dropFirst().map {
            $0.components(separatedBy: "\n```")[0]
        }
    }

    /// Returns the commands of a page, given its path in the checkout.
    static func all(at path: String) throws -> [ShownCommand] {
        var commands: [ShownCommand] = []
        for part in try Checkout.text(path).components(separatedBy: "\n```console\n").enumerated() {
            let console = part.offset == 0 ? nil : part.element.components(separatedBy: "\n```")[0]
            if let console { commands += self.commands(ofConsole: console) }
            for script in part.element.components(separatedBy: "\n```sh\n").dropFirst() {
                commands.append(ShownCommand(command: script.components(separatedBy: "\n```")[0], output: []))
            }
        }
        return commands
    }

    private static func commands(ofConsole block: String) -> [ShownCommand] {
        "\n\(block)".components(separatedBy: "\n$ ").dropFirst().map { part in
            let lines = part.components(separatedBy: "\n")
            let end = lines.firstIndex { !$0.hasSuffix("\\") } ?? lines.count - 1
            return ShownCommand(
                command: lines[...end].joined(separator: "\n"),
                output: Array(lines[(end + 1)...])
            )
        }
    }
}
