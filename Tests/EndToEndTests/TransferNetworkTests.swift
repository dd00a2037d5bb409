import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Transfers over the networks that there are", .serialized, .timeLimit(.minutes(15)))
final class TransferNetworkTests: TransferScene {
    private static let session = "com.example.networks"

    @Test("HTTP/2 is used where the server supports it, and a cut download resumes by Range there, too")
    func http2() throws {
        let content = TransferServer.content(1_500_000, seed: 21)
        let sum = try self.server.put("film", content)
        let options = ["--trust", self.server.authority.certificate, "--set", "retry.first=0.05"]
        let agent = try RunningTransferAgent(nil, options)
        try self.server.cut(after: 700_000)
        let url = "https://\(self.server.http2)/files/film"
        let ended = try agent.run(["add", Self.session, url, "--sha256", sum, "--to", self.path("film")])
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: self.path("film")) == content)
        let requests = try self.server.requests()
        #expect(requests.allSatisfy { $0.line == "GET /files/film HTTP/2.0" }, "\(requests)")
        // On a slow machine the agent may resume more than once.
        #expect(requests.first?.status == 200 && requests.count > 1, "\(requests)")
        #expect(requests.dropFirst().allSatisfy { $0.status == 206 && $0.range.hasPrefix("bytes=") }, "\(requests)")
    }

    @Test("The proxies of the environment are used as curl uses them, and so are its exceptions")
    func environmentProxies() throws {
        let content = TransferServer.content(50_000, seed: 22)
        try self.server.put("film", content)
        // nginx accepts proxy requests. Only a proxy can be asked for a name that does not exist.
        let through = try RunningTransferAgent(environment: ["http_proxy=http://\(self.server.plain)", "no_proxy="])
        let url = "http://files.example.invalid/files/film"
        let ended = try through.transfer("add", Self.session, url, "--to", self.path("through"))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: self.path("through")) == content)
        #expect(try self.server.requests().last?.line == "GET \(url) HTTP/1.1")
        // A proxy address where nothing listens, and an exception.
        let dead = ["http_proxy=http://127.0.0.1:9", "no_proxy=localhost,127.0.0.1"]
        let past = try RunningTransferAgent(environment: dead)
        let own = "http://\(self.server.plain)/files/film"
        #expect(try past.transfer("add", Self.session, own, "--to", self.path("past")).status == 0)
        #expect(try self.server.requests().last?.line == "GET /files/film HTTP/1.1")
        let id = try past.add(Self.session, url)
        try past.eventually("it is tried at the proxy", Self.session, id) { transfer in
            (transfer["error"] as? [String: Any])?["reason"] as? String == "ConnectionFailed"
        }
    }

    @Test("A configured proxy is used instead, with its name and password, and passes TLS through")
    func configuredProxy() throws {
        let content = TransferServer.content(50_000, seed: 23)
        try self.server.put("film", content)
        let proxy = try ChildProcess("python3", [RunningGateway.client("connect_proxy.py")], isInputOpen: true)
        let port = try #require(try proxy.line())
        let trust = ["--trust", self.server.authority.certificate]
        let agent = try RunningTransferAgent(
            nil,
            trust + ["--set", "proxy=http://alice:s3cret@127.0.0.1:\(port)"],
            environment: ["https_proxy=http://127.0.0.1:9", "no_proxy="]
        )
        let url = "https://\(self.server.tls)/files/film"
        let ended = try agent.transfer("add", Self.session, url, "--to", self.path("film"))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: self.path("film")) == content)
        #expect(try proxy.line() == "CONNECT \(self.server.tls) alice:s3cret")
        let variables = ["https_proxy=http://127.0.0.1:\(port)", "no_proxy="]
        let named = try RunningTransferAgent(nil, trust, environment: variables)
        // The first request of a tunnel: the status is that of the server, not of the proxy's answer to CONNECT.
        let missing = try named.transfer("add", Self.session, "https://\(self.server.tls)/files/none", "--wait")
        #expect(missing.status == 1 && missing.errors.contains("The server answered 404"), "\(missing.errors)")
        #expect(try proxy.line() == "CONNECT \(self.server.tls) -")
        #expect(try named.transfer("add", Self.session, url, "--to", self.path("named")).status == 0)
    }

    @Test("A server that requires a certificate gets the agent's, and its refusal without one is final")
    func clientCertificate() throws {
        let content = TransferServer.content(50_000, seed: 24)
        try self.server.put("film", content)
        let certificate = try self.server.authority.issue("/CN=agent")
        let trust = ["--trust", self.server.authority.certificate]
        let own = ["--set", "certificate=\(certificate)", "--set", "privateKey=\(certificate)"]
        let agent = try RunningTransferAgent(nil, trust + own)
        for address in [self.server.tls, self.server.http2] {
            let url = "https://\(address)/private/film"
            let place = self.path("film-\(address)")
            let ended = try agent.transfer("add", Self.session, url, "--to", place)
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(self.content(at: self.path("film-\(address)")) == content)
        }
        let unknownPeer = try RunningTransferAgent(nil, trust)
        let refused = try unknownPeer.transfer("add", Self.session, "https://\(self.server.tls)/private/film", "--wait")
        #expect(refused.status == 1 && refused.errors.contains("HTTPStatus"), "\(refused.errors)")
        let missing = try RunningTransferAgent(nil, trust + ["--set", "certificate=/nowhere/own.pem"])
        let failed = try missing.transfer("add", Self.session, "https://\(self.server.tls)/private/film", "--wait")
        #expect(failed.status == 1 && failed.errors.contains("/nowhere/own.pem cannot be read"), "\(failed.errors)")
    }

    @Test("A network that NetworkManager calls metered holds a transfer, which resumes on another network")
    func metered() throws {
        let content = TransferServer.content(600_000, seed: 25)
        try self.server.put("film", content)
        let machine = URL(fileURLWithPath: self.path("machine"))
        let bus = try LoginBus(root: machine, ["start", "come", "2"], service: "network")
        let agent = try RunningTransferAgent(nil, ["--set", "machine=\(machine.path)"], metered: "auto")
        #expect(try agent.transfer("session", Self.session, "--metered", "no").status == 0)
        try self.server.hold(after: 200_000)
        let id = try agent.add(Self.session, "http://\(self.server.plain)/files/film")
        try agent.eventually("some of it", Self.session, id) { $0["bytes"] as? Int ?? 0 >= 100_000 }
        try bus.tell("1")
        let held = try agent.eventually("a hold", Self.session, id) { $0["held"] as? String == "metered" }
        #expect(held["why"] as? String == "It waits for a network that is not metered.")
        #expect(held["attempts"] as? Int == 0)
        try self.server.release()
        try bus.tell("4")
        let end = try agent.eventually("the end", Self.session, id) { $0["endedAt"] is Int }
        #expect(end["state"] as? String == "finished", "\(end)")
        #expect(try self.server.requests().last?.status == 206)
    }
}

@Suite("The commands of transfers", .serialized, .timeLimit(.minutes(15)))
struct TransferCommandTests {
    private static let session = "com.example.commands"

    @Test("Where no agent listens each command names the socket and how to start one, and ends with 69")
    func noAgent() throws {
        let id = String(repeating: "0a", count: 16)
        for words in [
            ["add", "s", "http://127.0.0.1:9/f"], ["list", "s"], ["wait", "s"], ["cancel", "s", id], ["session"],
            ["take", "s", id, "/tmp/f"], ["session", "s"],
        ] {
            let line = ["transfer"] + words + ["--agent", "unix:/nonexistent/agent.sock"]
            let ended = try ChildProcess.wakegate(line)
            #expect(ended.status == EX_UNAVAILABLE, "\(words): \(ended.errors)")
            #expect(ended.errors.contains("listens at /nonexistent/agent.sock"), "\(words): \(ended.errors)")
            #expect(ended.errors.contains("wakegate transfers --listen"), "\(words): \(ended.errors)")
        }
        let variables = ["-u", "WAKEGATE_TRANSFERS", "XDG_RUNTIME_DIR=/nonexistent"]
        let ended = try ChildProcess.run("env", variables + [RunningGateway.program, "transfer", "list", "s"])
        #expect(ended.status == EX_UNAVAILABLE)
        #expect(ended.errors.contains("/nonexistent/wakegate/transfers.sock, nor at /run/wakegate-transfers/"))
    }

    @Test("A session is made, changed, shown, listed and removed")
    func sessions() throws {
        let agent = try RunningTransferAgent()
        let made = try agent.transfer("session", Self.session, "--discretionary", "yes", "--connections", "2")
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.output.contains("discretionary            yes\n"), "\(made.output)")
        let changed = try agent.transfer("session", Self.session, "--request-timeout", "5", "--json")
        #expect(changed.output.contains("\"requestTimeout\":5,"), "\(changed.output)")
        #expect(changed.output.contains("\"discretionary\":true"))
        #expect(try agent.transfer("session").output.contains(Self.session))
        #expect(try agent.transfer("session", Self.session, "--remove").status == 0)
        #expect(try agent.transfer("session").output == "no sessions\n")
    }

    @Test("Without a terminal progress is lines, in one a bar that ends full, and JSON is an object a line")
    func progress() throws {
        let server = try TransferServer()
        let agent = try RunningTransferAgent()
        try server.put("film", TransferServer.content(600_000))
        let url = "http://\(server.plain)/files/film"
        try server.hold(after: 300_000)
        let id = try agent.add(Self.session, url)
        try agent.eventually("some of it", Self.session, id) { $0["bytes"] as? Int ?? 0 >= 200_000 }
        let lines = try agent.begin("wait", Self.session, id)
        let json = try agent.begin("wait", Self.session, id, "--json")
        let script =
            "stty cols 70; exec \(RunningGateway.program) transfer wait \(Self.session) --agent \(agent.address)"
        let terminal = try ChildProcess("script", ["-qec", script, "/dev/null"])
        let first = try #require(try json.line())
        #expect(first.hasPrefix(#"{"event":"progress","transfer":"\#(id)","bytes":"#), "\(first)")
        #expect(Polling.isSo { lines.errors.contains(" kB of 600.0 kB") })
        #expect(try terminal.output(containing: "[=").contains(" kB of 600.0 kB"))
        try server.release()
        let shown = try lines.finish()
        #expect(shown.status == 0)
        #expect(shown.errors.contains("wakegate: \(id) finished, 600.0 kB\n"), "\(shown.errors)")
        let last = try json.finish()
        #expect(last.status == 0 && last.errors.isEmpty, "\(last.errors)")
        #expect(last.output.split(separator: "\n").last?.hasPrefix(#"{"event":"finished","#) == true, "\(last.output)")
        let bytes = last.output.matches(of: /"progress".*"bytes":(\d+)/).compactMap { Int($0.output.1) }
        #expect(bytes == Set(bytes).sorted(), "progress grows")
        let bar = try terminal.finish()
        #expect(bar.status == 0, "\(bar.errors)")
        #expect(bar.output.contains("=] 100 %  600.0 kB of 600.0 kB"), "\(bar.output)")
        #expect(try agent.transfer("list", Self.session).output.contains("finished"))
    }

    @Test("A transfer is cancelled, alone or with all others, and a file is taken once, to a free path")
    func cancelAndTake() throws {
        let server = try TransferServer()
        let agent = try RunningTransferAgent()
        let folder = try RestartFolder()
        try server.put("film", TransferServer.content(600_000))
        let url = "http://\(server.plain)/files/film"
        let place = folder.folder.appendingPathComponent("film").path
        let id = try agent.add(Self.session, url)
        #expect(try agent.transfer("wait", Self.session).status == 0)
        try Data("other".utf8).write(to: URL(fileURLWithPath: place))
        let exists = try agent.transfer("take", Self.session, id, place)
        #expect(exists.status == 1 && exists.errors.contains("FileExists"), "\(exists.errors)")
        #expect(try agent.transfer("take", Self.session, id, place, "--replace").status == 0)
        #expect(try agent.transfer("take", Self.session, id, place).errors.contains("AlreadyTaken"))
        let noted = folder.folder.appendingPathComponent("noted").path
        let two = try [agent.add(Self.session, url, "--note", noted), agent.add(Self.session, url)]
        #expect(try agent.transfer("wait", Self.session).status == 0)
        let taken = try agent.transfer("take", Self.session, "--noted")
        #expect(taken.status == 1 && taken.errors.contains("\(two[1]): its note names no place"), "\(taken.errors)")
        #expect(FileManager.default.fileExists(atPath: noted))
        #expect(try agent.transfer("cancel", Self.session, two[1]).status == 0)
        #expect(try agent.transfer("take", Self.session, "--noted").status == 0)
        try server.hold(after: 100_000)
        let held = try [agent.add(Self.session, url), agent.add(Self.session, url), agent.add(Self.session, url)]
        let waiting = try agent.begin("wait", Self.session, held[0])
        #expect(try agent.transfer("cancel", Self.session, held[0]).status == 0)
        let ended = try waiting.finish()
        #expect(ended.status == 1 && ended.errors.contains("\(held[0]) was cancelled"), "\(ended.errors)")
        let all = try agent.transfer("cancel", Self.session, "--all")
        #expect(all.status == 0 && all.errors.contains("2 transfers are cancelled"), "\(all.errors)")
        let unknown = try agent.transfer("wait", Self.session, String(repeating: "0", count: 32))
        #expect(unknown.status == 1 && unknown.errors.contains("UnknownTransfer"), "\(unknown.errors)")
        #expect(try agent.transfer("cancel", Self.session).status == EX_USAGE)
        #expect(try agent.transfer("take", Self.session, "film", place).status == EX_USAGE)
        #expect(try agent.transfer("take", Self.session, id).status == EX_USAGE)
        #expect(try agent.transfer("take", Self.session, id, place, "--noted").status == EX_USAGE)
    }
}

@Suite("The agent of transfers as a service of systemd", .serialized, .timeLimit(.minutes(15)))
struct TransferServiceTests {
    private let folder: RestartFolder

    init() throws {
        self.folder = try RestartFolder()
    }

    private var command: [String] {
        [RunningGateway.program, "transfers", "--state", self.folder.path("state"), "--metered", "no"]
    }

    private func ask(_ socket: String, _ path: String) throws -> ChildProcess.Ended {
        let options = ["--silent", "--show-error", "--max-time", "60", "--unix-socket", socket]
        return try ChildProcess.run("curl", options + ["http://localhost\(path)"])
    }

    @Test(
        "Without configuration it listens where clients look, keeps its state for this user, and reads a token file"
    )
    func defaults() throws {
        let variables = ["XDG_RUNTIME_DIR=\(self.folder.folder.path)", "XDG_STATE_HOME=\(self.folder.path("home"))"]
        let token = self.folder.path("token")
        try Data("word\n".utf8).write(to: URL(fileURLWithPath: token))
        let command = variables + [RunningGateway.program, "transfers", "--token", token]
        let agent = try ChildProcess("env", command)
        let socket = "unix:\(self.folder.path("wakegate/transfers.sock"))"
        #expect(try agent.line() == "{\"ready\": true, \"listen\": \"\(socket)\"}")
        #expect(agent.errors.contains("--token FILE is now --token-file FILE"))
        #expect(FileManager.default.fileExists(atPath: self.folder.path("home/wakegate/transfers")))
        let list = ["transfer", "list", "com.example.session"]
        let asked = try ChildProcess.run(
            "env",
            variables + ["-u", "WAKEGATE_TRANSFERS", RunningGateway.program] + list
        )
        #expect(asked.status == 0 || !asked.errors.contains("no agent"), "\(asked.errors)")
        #expect(try agent.end().status == 0)
    }

    @Test("The agent serves on the passed socket, and notifies that it is ready, alive and stopping")
    func service() throws {
        let socket = self.folder.path("passed.sock")
        let options = ["--socket", "transfers=unix:\(socket)", "--watchdog", "200000"]
        // The socket overrides the address on the command line.
        let service = try ManagedService(options, self.command + ["--listen", "unix:/nowhere/else"])
        let ready = try service.next("told: READY=1 ")
        #expect(ready == "told: READY=1 STATUS=Takes transfers at unix:\(socket)")
        let written = try service.next("wrote: ")
        #expect(written == "wrote: {\"ready\": true, \"listen\": \"unix:\(socket)\"}")
        let status = try self.ask(socket, "/v1/status")
        let shown = try #require(try JSONSerialization.jsonObject(with: Data(status.output.utf8)) as? [String: Any])
        let commit = (shown["commit"] as? String) ?? "unknown"
        let program = try ChildProcess.wakegate(["--version"]).output
        #expect(program == "wakegate \(shown["version"] as? String ?? "none") (commit \(commit))\n")
        for _ in 0..<2 { _ = try service.next("told: WATCHDOG=1") }
        let ended = try service.end()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains("told: STOPPING=1 EXTEND_TIMEOUT_USEC="), "\(ended.output)")
        #expect(FileManager.default.fileExists(atPath: socket), "it is the service manager's")
    }

    @Test("The agent's watchdog starves while the agent's thread is stopped")
    func watchdog() throws {
        let socket = self.folder.path("own.sock")
        let service = try ManagedService(["--watchdog", "200000"], self.command + ["--listen", "unix:\(socket)"])
        try service.expectStarvation(withStopped: "agent")
        #expect(try service.end().status == 0)
        #expect(!FileManager.default.fileExists(atPath: socket), "its own socket is removed at its end")
    }

    @Test("systemd's own activation starts it with the first connection, which is answered")
    func socketActivate() throws {
        let socket = self.folder.path("activated.sock")
        let options = ["ASAN_OPTIONS", "TSAN_OPTIONS"].filter { ProcessInfo.processInfo.environment[$0] != nil }
        let activation = ["--fdname=transfers", "--listen=\(socket)"] + options.map { "--setenv=\($0)" }
        // Started indirectly, because it closes the descriptor by which Foundation detects the end of a child.
        let service = try ManagedService([], ["systemd-socket-activate"] + activation + self.command)
        #expect(Polling.isSo { FileManager.default.fileExists(atPath: socket) })
        let answer = try self.ask(socket, "/healthz")
        #expect(answer.status == 0 && answer.output == "{}", "\(answer.errors) \(service.errors)")
        #expect(try service.end().status == 0)
        #expect(FileManager.default.fileExists(atPath: socket), "it is the service manager's")
    }

    @Test("More than one socket ends the start with 78, and names the accepted number")
    func twoSockets() throws {
        let sockets = ["one", "two"].flatMap { ["--socket", "\($0)=unix:\(self.folder.path($0))"] }
        let ended = try ManagedService(sockets, self.command + ["--listen", "unix:\(self.folder.path("own"))"]).finish()
        #expect(ended.status == EX_CONFIG)
        #expect(ended.errors.contains("passed 2 sockets; give the agent one"), "\(ended.errors)")
    }
}

@Suite("Examples of transfers in other languages", .serialized, .timeLimit(.minutes(15)))
struct TransferExampleTests {
    private static let session = "com.example.examples"

    private func start(
        _ language: ExampleTests.Language,
        _ agent: RunningTransferAgent,
        _ arguments: [String]
    ) throws -> ChildProcess {
        let variables = ["WAKEGATE_TRANSFERS=\(agent.address)", ExampleTests.pythonLibrary]
        return try ChildProcess("env", variables + language.command("transfers") + arguments)
    }

    @Test("A download survives kill -9 of the example and of the agent", arguments: ExampleTests.Language.allCases)
    func survives(language: ExampleTests.Language) throws {
        let server = try TransferServer()
        let agent = try RunningTransferAgent()
        let folder = try RestartFolder()
        let content = TransferServer.content(800_000)
        try server.put("film", content)
        try server.hold(after: 300_000)
        let place = folder.folder.appendingPathComponent("a \"film\"").path
        let words = [Self.session, "http://\(server.plain)/files/film", place]
        let first = try self.start(language, agent, words)
        let id = try agent.first(of: Self.session)
        try agent.eventually("some of it", Self.session, id) { $0["bytes"] as? Int ?? 0 >= 200_000 }
        first.send(SIGKILL)
        try agent.kill()
        try agent.start()
        let next = try self.start(language, agent, words)
        // Restarts the agent again while a client is waiting.
        try agent.awaitListener()
        try agent.kill()
        try agent.start()
        try server.release()
        let ended = try next.finish()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "\(place) 800000\n")
        #expect(try Data(contentsOf: URL(fileURLWithPath: place)) == content)
        #expect(agent.count(of: Self.session) == 1)
    }

    @Test(
        "A transfer that fails, and one that is refused, end it with the reason",
        arguments: ExampleTests.Language.allCases
    )
    func fails(language: ExampleTests.Language) throws {
        let server = try TransferServer()
        let agent = try RunningTransferAgent()
        let failed = try self.start(
            language,
            agent,
            [Self.session, "http://\(server.plain)/forbidden", "/nonexistent/f"]
        )
        let ended = try failed.finish()
        #expect(ended.status != 0 && ended.errors.contains("403"), "\(ended.errors)")
        let refused = try self.start(language, agent, [Self.session, "ftp://h/f", "/nonexistent/f"]).finish()
        #expect(refused.status != 0 && refused.errors.contains("BadTransfer"), "\(refused.errors)")
    }
}
