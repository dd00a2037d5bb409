import Foundation
import Glibc
import Testing

@Suite("The end of a push", .serialized, .timeLimit(.minutes(15)))
struct DeliveryLogTests {
    private let topic = "com.example.log"
    private let token = String(repeating: "10ad", count: 16)

    @Test("push --wait follows a push into the one it is coalesced into")
    func coalesced() throws {
        let gateway = try RunningGateway()
        let first = try ChildProcess(wakegate: self.line([]), folder: gateway.folder)
        let answer = try #require(try first.line())
        #expect(answer.hasPrefix("200 scheduled"))
        let second = try gateway.push(self.token, topic: self.topic)
        let heir = try #require(second.headers["apns-id"])
        #expect(try first.line()?.hasSuffix("Z coalesced into \(heir)") == true)
        let worker = try self.worker(gateway, "exit 3")
        #expect(try first.line()?.hasSuffix("Z launched, attempt 1, coalesced 1") == true)
        #expect(try first.line()?.hasSuffix("Z result noData") == true)
        #expect(try first.finish().status == 0)
        worker.send(SIGTERM)

        let list = try gateway.admin("/v1/devices/\(self.token)/pushes")
        let states = (list.value("pushes") as? [[String: Any]])?.map { $0["state"] as? String }
        #expect(states == ["completed", "coalesced"])
    }

    @Test("push --wait continues after a restart of the gateway")
    func restarted() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let push = try ChildProcess(wakegate: self.line([]), folder: gateway.folder)
        #expect(try push.line()?.hasPrefix("200 scheduled") == true)
        // Shows that the log was read once.
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try push.line()?.contains("Z coalesced into ") == true)
        try gateway.process.end(SIGKILL)
        // Shows that the command asked during the restart, when a proxy would answer so.
        let proxy = """
            import http.server, sys
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_error(503)
                    print("asked", flush=True)
            http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
            """
        let port = try #require(gateway.admin.split(separator: ":").last)
        let restarting = try ChildProcess("python3", ["-c", proxy, String(port)])
        #expect(try restarting.line() == "asked")
        try restarting.end(SIGKILL)
        let next = try folder.start(admin: gateway.admin)
        let worker = try self.worker(next, "exit 0")
        #expect(try push.finish().status == 0)
        #expect(try worker.end().status == 0)
    }

    @Test("push show follows a burst to the push that woke the device, and the past of a device is listed")
    func followed() throws {
        let gateway = try RunningGateway()
        let ids = try (0..<4).map { _ in
            try #require(try gateway.push(self.token, topic: self.topic).headers["apns-id"])
        }
        let pending = try gateway.wakegate("push", "show", ids[3]).output
        #expect(pending.contains(/\nexpires +20/) && pending.contains("\nreplaced  3\n"), "\(pending)")
        let worker = try self.worker(gateway, "exit 0")
        try gateway.eventually("its result") { try gateway.stats().integer("pushes", "completed") == 1 }
        let shown = try gateway.wakegate("push", "show", ids[0]).output
        #expect(shown.contains("coalesced; woken as \(ids[3]) at 20") && shown.contains(" (completed)"), "\(shown)")
        #expect(shown.hasSuffix("see also: wakegate push show \(ids[3])\n"), "\(shown)")
        let pushes = try gateway.wakegate("push", "list", "--device", self.token).output
        #expect(ids.allSatisfy { pushes.contains($0) }, "\(pushes)")
        let events = try gateway.wakegate("device", "events", self.token, "--since", "1h", "--limit", "2")
        #expect(events.output.contains(" result ") && events.output.contains(" launch "), "\(events)")
        let next = try #require(events.errors.split(separator: " ").last?.split(separator: "\n").first)
        let rest = try gateway.wakegate("device", "events", self.token, "--after", String(next)).output
        #expect(rest.contains(ids[0]) && !rest.contains(" launch "), "\(rest)")
        let none = try gateway.wakegate("device", "events", self.token, "--until", "1h")
        #expect(none.status == 0 && none.output.isEmpty && none.errors.contains("no such event"), "\(none)")
        worker.send(SIGTERM)
    }

    @Test("push --wait fails when the push is discarded, cannot wake or is still pending, and says which")
    func failed() throws {
        let gateway = try RunningGateway()
        let never = try self.wait(gateway, "--expiration", "0")
        #expect(never.status == 2)
        #expect(never.output.contains("Z discarded, expired"))
        let line = ["push", self.token, "--topic", self.topic, "--expiration", "1h"]
        let later = try ChildProcess.wakegate(line, folder: gateway.folder)
        #expect(later.output.hasPrefix("200 scheduled"), "\(later.output)")
        let nobody = try self.wait(gateway, "--payload", #"{"aps":{"alert":"x"}}"#)
        #expect(nobody.status == 2)
        #expect(nobody.output.hasPrefix("200 no-wake"))
        let late = try self.wait(gateway, "--timeout", "1")
        #expect(late.status == 1)
        #expect(late.errors.contains("is pending after 1 s"), "\(late.errors)")
    }

    @Test("push --wait against an edge finds the admin listener of this folder's gateway, or asks for --admin")
    func admin() throws {
        let gateway = try RunningGateway()
        let url = "http://\(gateway.plain)"
        let found = try self.wait(gateway, "--gateway", url, "--expiration", "0")
        #expect(found.output.contains("Z discarded, expired"), "\(found.errors)")
        let elsewhere = FileManager.default.temporaryDirectory
        let line = self.line(["--gateway", url, "--expiration", "0"])
        let without = try ChildProcess.wakegate(line, folder: elsewhere)
        #expect(without.status == 1)
        #expect(without.errors.contains("--admin"), "\(without.errors)")
        let with = try self.wait(gateway, "--gateway", url, "--admin", "http://\(gateway.admin)", "--expiration", "0")
        #expect(with.output.contains("Z discarded, expired"), "\(with.errors)")
        // The context has its own admin listener, where nothing listens in this test.
        let contexts = #"{"contexts":{"c":{"gateway":"\#(url)","admin":"http://127.0.0.1:1"}}}"#
        let home = gateway.folder.appendingPathComponent("config")
        let file = home.appendingPathComponent("wakegate/contexts.json")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data(contexts.utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        let words = self.line(["--context", "c", "--expiration", "0"])
        let command = ["XDG_CONFIG_HOME=\(home.path)", RunningGateway.program] + words
        let inContext = try ChildProcess.run("env", command, folder: gateway.folder)
        #expect(inContext.status == 1 && inContext.errors.contains("http://127.0.0.1:1"), "\(inContext.errors)")
    }

    private func line(_ options: [String]) -> [String] {
        ["push", self.token, "--topic", self.topic, "--wait"] + options
    }

    private func wait(_ gateway: RunningGateway, _ options: String...) throws -> ChildProcess.Ended {
        try ChildProcess.wakegate(self.line(options), folder: gateway.folder)
    }

    private func worker(_ gateway: RunningGateway, _ script: String) throws -> ChildProcess {
        let line = ["worker", "--topic", self.topic, "--", "sh", "-c", script]
        let worker = try ChildProcess(wakegate: line, folder: gateway.folder)
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        return worker
    }
}
