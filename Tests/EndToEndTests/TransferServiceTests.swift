import Foundation
import Testing

@Suite("The agent of transfers as a service of systemd", .serialized, .timeLimit(.minutes(15)))
struct TransferServiceTests {
    private let folder: RestartFolder

    init() throws {
        self.folder = try RestartFolder()
    }

    private func path(_ name: String) -> String { self.folder.folder.appendingPathComponent(name).path }

    private var command: [String] {
        [RunningGateway.program, "transfers", "--state", self.path("state"), "--metered", "no"]
    }

    private func ask(_ socket: String, _ path: String) throws -> ChildProcess.Ended {
        let options = ["--silent", "--show-error", "--max-time", "60", "--unix-socket", socket]
        return try ChildProcess.run("curl", options + ["http://localhost\(path)"])
    }

    @Test("It serves on the socket it was given, and says that it is ready, alive and that it stops")
    func service() throws {
        let socket = self.path("passed.sock")
        let options = ["--socket", "transfers=unix:\(socket)", "--watchdog", "200000"]
        // The socket takes the place of what the command line says.
        let service = try ManagedService(options, self.command + ["--listen", "unix:/nowhere/else"])
        let ready = try service.next("told: READY=1 ")
        #expect(ready == "told: READY=1 STATUS=Takes transfers at unix:\(socket)")
        let written = try service.next("wrote: ")
        #expect(written == "wrote: {\"ready\": true, \"listen\": \"unix:\(socket)\"}")
        let status = try self.ask(socket, "/v1/status")
        let shown = try #require(try JSONSerialization.jsonObject(with: Data(status.output.utf8)) as? [String: Any])
        let commit = (shown["commit"] as? String) ?? "unknown"
        let program = try ChildProcess.run(RunningGateway.program, ["--version"]).output
        #expect(program == "wakegate \(shown["version"] as? String ?? "none") (commit \(commit))\n")
        for _ in 0..<2 { _ = try service.next("told: WATCHDOG=1") }
        let ended = try service.end()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains("told: STOPPING=1 EXTEND_TIMEOUT_USEC="), "\(ended.output)")
        #expect(FileManager.default.fileExists(atPath: socket), "it is the service manager's")
    }

    @Test("Its watchdog starves while its thread does not turn")
    func watchdog() throws {
        let listen = ["--listen", "unix:\(self.path("own.sock"))"]
        let service = try ManagedService(["--watchdog", "200000"], self.command + listen)
        try service.expectStarvation(withStopped: "agent")
        #expect(try service.end().status == 0)
        #expect(!FileManager.default.fileExists(atPath: self.path("own.sock")), "what it made itself goes with it")
    }

    @Test("systemd's own activation starts it with the first connection, which is answered")
    func socketActivate() throws {
        let socket = self.path("activated.sock")
        let options = ["ASAN_OPTIONS", "TSAN_OPTIONS"].filter { ProcessInfo.processInfo.environment[$0] != nil }
        let activation = ["--fdname=transfers", "--listen=\(socket)"] + options.map { "--setenv=\($0)" }
        // Not this process's child itself: it closes what Foundation sees the end of a child by.
        let service = try ManagedService([], ["systemd-socket-activate"] + activation + self.command)
        #expect(Polling.isSo { FileManager.default.fileExists(atPath: socket) })
        let answer = try self.ask(socket, "/healthz")
        #expect(answer.status == 0 && answer.output == "{}", "\(answer.errors) \(service.errors)")
        #expect(try service.end().status == 0)
        #expect(FileManager.default.fileExists(atPath: socket), "it is the service manager's")
    }

    @Test("More sockets than one end the start with 78, and it says what to give it")
    func twoSockets() throws {
        let sockets = ["one", "two"].flatMap { ["--socket", "\($0)=unix:\(self.path($0))"] }
        let ended = try ManagedService(sockets, self.command + ["--listen", "unix:\(self.path("own"))"]).finish()
        #expect(ended.status == 78)
        #expect(ended.errors.contains("passed 2 sockets; give the agent one"), "\(ended.errors)")
    }
}
