import Foundation
import Glibc
import Testing

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
            let ended = try ChildProcess.run(RunningGateway.program, line)
            #expect(ended.status == 69, "\(words): \(ended.errors)")
            #expect(ended.errors.contains("listens at /nonexistent/agent.sock"), "\(words): \(ended.errors)")
            #expect(ended.errors.contains("wakegate transfers --state DIR"), "\(words): \(ended.errors)")
        }
        let variables = ["-u", "WAKEGATE_TRANSFERS", "XDG_RUNTIME_DIR=/nonexistent"]
        let ended = try ChildProcess.run("env", variables + [RunningGateway.program, "transfer", "list", "s"])
        #expect(ended.status == 69)
        #expect(ended.errors.contains("/nonexistent/wakegate/transfers.sock, nor at /run/wakegate-transfers/"))
    }

    @Test("A session is made, changed, shown, listed and removed")
    func sessions() throws {
        let agent = try RunningTransferAgent()
        let made = try agent.transfer("session", Self.session, "--discretionary", "yes", "--connections", "2")
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.output.contains("discretionary        yes\n"), "\(made.output)")
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
        let bar = try terminal.finish()
        #expect(bar.status == 0, "\(bar.errors)")
        #expect(bar.output.contains("=] 100 %  600.0 kB of 600.0 kB"), "\(bar.output)")
        #expect(try agent.transfer("list", Self.session).output.contains("finished"))
    }

    @Test("A transfer is cancelled, alone or with all others, and a file is taken once and to a free place")
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
        #expect(try agent.transfer("cancel", Self.session).status == 64)
        #expect(try agent.transfer("take", Self.session, "film", place).status == 64)
        #expect(try agent.transfer("take", Self.session, id).status == 64)
        #expect(try agent.transfer("take", Self.session, id, place, "--noted").status == 64)
    }
}
