import Foundation
import Glibc
import Testing

@Suite("wakegate stats --watch", .serialized, .timeLimit(.minutes(15)))
struct WatchTests {
    private let topic = "com.example.watch"
    private let token = String(repeating: "3a7c", count: 16)

    @Test("On a terminal the view is drawn in place, and the terminal is restored")
    func terminal() throws {
        let gateway = try self.gatewayAtWork()
        let scenes = ["view", "resized", "interrupted", "plain"]
        let script = try PlayedScene.terminal(scenes, of: gateway, ["topic": self.topic])
        for scene in scenes {
            let faults = try PlayedScene.faults(script, scene)
            #expect(faults.isEmpty, "\(scene): \(faults.joined(separator: "\n"))")
        }
        #expect(try script.finish().status == 0)
    }

    @Test("The view says that the gateway is gone, and resumes when it is back")
    func gone() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        try self.work(gateway)
        let script = try PlayedScene.terminal(["gone"], of: gateway, ["topic": self.topic])
        #expect(try PlayedScene.faults(script, "alive").isEmpty)
        try gateway.process.end(SIGKILL)
        try script.write("killed")
        let faults = try PlayedScene.faults(script, "gone")
        #expect(faults.isEmpty, "\(faults)")
        let next = try folder.start(admin: gateway.admin)
        try script.write("back")
        #expect(try PlayedScene.faults(script, "gone").isEmpty)
        withExtendedLifetime(next) {}
    }

    @Test("Without a terminal it writes a line a second, of all, of a topic, or as JSON, and ends with a signal")
    func lines() throws {
        let gateway = try self.gatewayAtWork()
        let all = try self.watch(gateway)
        let topic = try self.watch(gateway, "--topic", self.topic)
        for process in [all, topic] {
            for _ in 0..<2 {
                let line = try #require(try process.line())
                #expect(line.contains("inFlight 1") && line.contains("busy 1/4"), "\(line)")
                #expect(!line.contains("\u{1B}"))
            }
        }
        let device = try self.watch(gateway, "--device", self.token)
        #expect(try device.line()?.contains("in flight") == true)
        let json = try self.watch(gateway, "--json")
        #expect(try json.object()["stats"] is [String: Any])
        for process in [all, topic, device, json] {
            #expect(try process.end().status == 0)
        }
        // `nohup` ignores the end of a terminal.
        let line = [RunningGateway.program, "stats", "--watch", "--json"]
        let lasting = try ChildProcess("nohup", line, folder: gateway.folder)
        _ = try #require(try lasting.line())
        lasting.send(SIGHUP)
        for _ in 0..<2 { _ = try #require(try lasting.line()) }
        #expect(try lasting.end().status == 0)
    }

    @Test("The view ends at a signal when its pipe is full and unread")
    func unread() throws {
        let gateway = try self.gatewayAtWork()
        // Reports once that its pipe, which holds a page, is full.
        let script = """
            import fcntl, os, select, subprocess, sys
            reading, writing = os.pipe()
            fcntl.fcntl(writing, 1031, 4096)
            view = subprocess.Popen(sys.argv[1:], stdout=writing)
            while select.select([], [writing], [], 0)[1]: pass
            print("full", flush=True)
            sys.stdin.readline()
            view.terminate()
            print(view.wait(), flush=True)
            """
        let command = [RunningGateway.program, "stats", "--watch", "--json", "--gateway", "http://\(gateway.admin)"]
        let view = try ChildProcess("python3", ["-c", script] + command, isInputOpen: true)
        #expect(try view.line() == "full")
        // Two more seconds of events: meanwhile the view had something to write.
        let other = try self.watch(gateway)
        for _ in 1...3 { _ = try other.line() }
        try view.write("")
        #expect(try view.line() == "0")
    }

    @Test("A missing or refusing gateway is reported immediately, with what to do")
    func refused() throws {
        let absent = try ChildProcess.wakegate(["stats", "--watch", "--gateway", "http://127.0.0.1:1"])
        #expect(absent.status == 1 && absent.errors.contains("start it, or name another"), "\(absent.errors)")
        let gateway = try ServedGateway()
        let refused = try ChildProcess.wakegate(["stats", "--watch", "--gateway", gateway.url(.adminAfar)])
        #expect(refused.status == 1 && refused.errors.contains("401 MissingToken"), "\(refused.errors)")
    }

    @Test("A stream that ends before its first event is an error")
    func eventless() throws {
        let server = try ChildProcess(client: "ended_streams.py", [])
        let url = "http://127.0.0.1:\(try #require(try server.line()))"
        let view = try ChildProcess.wakegate(["stats", "--watch", "--gateway", url])
        #expect(view.status == 1 && view.errors.contains("the gateway ended the stream"), "\(view.errors)")
    }

    private func gatewayAtWork() throws -> RunningGateway {
        let gateway = try RunningGateway()
        try self.work(gateway)
        return gateway
    }

    /// Starts a worker with a wake that it does not answer.
    private func work(_ gateway: RunningGateway) throws {
        try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
    }

    private func watch(_ gateway: RunningGateway, _ options: String...) throws -> ChildProcess {
        try ChildProcess(wakegate: ["stats", "--watch"] + options, folder: gateway.folder)
    }
}
