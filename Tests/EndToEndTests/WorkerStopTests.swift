import Foundation
import Glibc
import Testing
import WakeGateTestKit

/// Each worker ends while its peer remains silent, so only the worker's own limit can have ended it.
@Suite("Workers that stop while their gateway is silent", .serialized, .timeLimit(.minutes(15)))
struct WorkerStopTests {
    private let topic = "com.example.silent"
    private let token = String(repeating: "5c", count: 32)

    @Test("A stopped worker of a frozen gateway ends on its own, with and without a command", arguments: [false, true])
    func frozen(hasCommand: Bool) throws {
        let gateway = try RunningGateway()
        let script = WorkerProcess.stubborn
        let worker = try WorkerProcess(gateway, topic: self.topic, ["--stop-within", "5"], script: script)
        var group: Int32?
        if hasCommand {
            #expect(try gateway.push(self.token, topic: self.topic).status == 200)
            let number = try #require(try worker.line().flatMap { Int32($0) })
            group = number
        }
        gateway.process.send(SIGSTOP)
        defer { gateway.process.send(SIGCONT) }
        let ended = try worker.process.end()
        #expect(ended.status == 0, "\(ended.errors)")
        if let group { #expect(Polling.isSo { !WorkerProcess.isGroupThere(group) }) }
    }

    @Test("Workers that stop together with their gateway end without a crash")
    func together() throws {
        let gateway = try RunningGateway()
        let arguments = ["worker", "--topic", self.topic, "--", "true"]
        let workers = try (0..<24).map { _ in
            try ChildProcess(wakegate: arguments, folder: gateway.folder)
        }
        for worker in workers { try worker.says("subscribed") }
        // The workers' connections then change while their processes end.
        for process in workers + [gateway.process] { process.send(SIGTERM) }
        for worker in workers { #expect(try worker.finish().status == 0) }
    }

    @Test("The result of a command that ends while the gateway is frozen is attempted, and then abandoned")
    func frozenResult() throws {
        let gateway = try RunningGateway()
        let script = "echo running; until [ -e go ]; do read -t 0.05 <> <(:); done; echo done"
        let worker = try WorkerProcess(gateway, topic: self.topic, ["--stop-within", "8"], script: script)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try worker.line() == "running")
        gateway.process.send(SIGSTOP)
        worker.process.send(SIGTERM)
        try worker.says("stopping")
        try Data().write(to: gateway.folder.appendingPathComponent("go"))
        let ended = try worker.process.finish()
        #expect(ended.status == 0)
        #expect(ended.errors.contains("the worker ended before the gateway had answered to it"))
        gateway.process.send(SIGCONT)
        // The request may have arrived nevertheless; otherwise the wake was lost.
        try gateway.eventually("the end of the wake") { try gateway.workerCount() == 0 }
    }

    @Test("An SDK worker ends on its own when the network drops everything, whatever its handler does")
    func swallowed() throws {
        let gateway = try RunningGateway()
        let script = RunningGateway.client("transfer_proxy.py")
        let proxy = try ChildProcess("python3", [script, gateway.edge], isInputOpen: true)
        let url = "https://127.0.0.1:\(try #require(try proxy.line()))"
        let options = ["--silence", "300", "--stop-within", "5"]
        let worker = try SDKWorker(url, authority: gateway.certificateAuthority, options)
        try worker.wait(for: "subscribed")
        try gateway.instruct(1, #""do":"stubborn","milliseconds":600000"#)
        try worker.wait(for: "wake")
        try proxy.write(#"{"do":"swallow"}"#)
        #expect(try proxy.line() == "done")
        worker.process.send(SIGTERM)
        try worker.wait(for: "stopping")
        try worker.wait(for: "ended")
        let ended = try worker.process.finish()
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test("A worker that cannot report its stop while its token is rewritten reports it once it can")
    func drainWithoutToken() throws {
        let peer = try ScriptedGateway()
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("token")
        try Data("token\n".utf8).write(to: file)
        let worker = try SDKWorker(peer.url, authority: peer.certificateAuthority, ["--token-file", file.path])
        try worker.wait(for: "subscribed")
        try peer.wake("w1", #""timeLeft":600000"#, payload: #"{"do":"hang"}"#)
        try worker.wait(for: "wake")
        try Data().write(to: file)
        let reads = try FileReads(file.path)
        worker.process.send(SIGTERM)
        try reads.wait()
        try Data("token\n".utf8).write(to: file)
        try peer.request("/v1/streams/a-stream/drain")
        let ended = try worker.process.end()
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test("A worker that resolves its gateway's name ends immediately, even with silent name servers")
    func names() throws {
        let folder = try TemporaryFolder()
        let asked = "\(folder.path)/asked"
        let script = RunningGateway.client("silent_names.py")
        let launcher = ["--map-root-user", "--mount", "--net", "python3", script, asked, RunningGateway.program]
        let options = ["worker", "--gateway", "https://gateway.example:2197", "--topic", self.topic, "--", "true"]
        let worker = try ChildProcess("unshare", launcher + options)
        func isAsked() -> Bool { FileManager.default.fileExists(atPath: asked) }
        guard Polling.isSo({ isAsked() || !worker.isRunning }), isAsked() else {
            throw ChildProcess.Failure(description: "no name was asked for; \(worker.errors)")
        }
        worker.send(SIGTERM)
        // The resolver gives up after seven minutes.
        #expect(try worker.finish().status == 0)
    }

    @Test("Every command to a frozen gateway ends with an error that says what to check, and a view by Control-C")
    func commands() throws {
        let gateway = try RunningGateway()
        gateway.process.send(SIGSTOP)
        defer { gateway.process.send(SIGCONT) }
        let all = [
            ["stats"], ["stats", "--watch"], ["stats", "--device", self.token], ["reload"], ["backup", "copy"],
            ["push", self.token, "--topic", self.topic, "--wait"], ["device", "register", "--topic", self.topic],
        ]
        let view = try ChildProcess(wakegate: ["stats", "--watch"], folder: gateway.folder)
        view.send(SIGINT)
        // Silence for five seconds would be an error.
        #expect(try view.finish().status == 0)
        let commands = try all.map { try ChildProcess(wakegate: $0, folder: gateway.folder) }
        for (words, command) in zip(all, commands) {
            let ended = try command.finish()
            #expect(ended.status == 1, "\(words)")
            let remedies = ["see whether the gateway is overloaded", "it has been silent for 5 seconds"]
            #expect(remedies.contains { ended.errors.contains($0) }, "\(words): \(ended.errors)")
        }
    }
}

@Suite("A gateway that restarts while a wake has more time", .serialized, .timeLimit(.minutes(15)))
struct WorkerRestartTests {
    private static let settings = ["--set", "policy.executionWindow=3", "--set", "policy.maxExtension=60"]

    /// The device to which `instruct(1, …)` pushes.
    private static let token = String(repeating: "0001", count: 16)

    /// Makes a worker keep a wake alive for a time, and waits until it was granted more time.
    private func extend(_ gateway: RunningGateway, _ worker: SDKWorker, milliseconds: Int) throws -> String {
        try gateway.instruct(1, #""do":"keepAlive","milliseconds":\#(milliseconds)"#)
        let wake = try #require(try worker.wait(for: "wake").text("wake"))
        try gateway.eventually("more time") {
            try gateway.admin("/v1/devices/\(Self.token)").recent.first?.first == "extended"
        }
        return wake
    }

    @Test("After a crash the wake is lost and its push launches again; a late result is answered with the outcome lost")
    func crash() throws {
        let folder = try RestartFolder()
        let first = try folder.start(Self.settings)
        let worker = try SDKWorker.subscribed(to: first)
        let lost = try self.extend(first, worker, milliseconds: 5000)
        try first.process.end(SIGKILL)

        let second = try folder.start(Self.settings, edge: first.edge)
        #expect(try worker.wait(for: "lost").text("wake") == lost)
        let again = try #require(try worker.wait(for: "wake").text("wake"))
        #expect(again != lost)
        let late = try second.edge("/v1/wakes/\(lost)", "-d", #"{"result":"newData"}"#)
        #expect(late.status == 409 && late.reason == "WakeEnded")
        #expect(late.value("outcome") as? String == "lost")
        // The handler takes longer than its window: the next gateway also grants more time.
        let delivered = try worker.wait(for: "delivered")
        #expect(delivered.text("wake") == again && delivered.text("result") == "newData")
        try self.checkCounters(second, lost: 1)
        #expect(try worker.stop() == 0)
    }

    @Test("The result of a handler that outlasts a crash is dropped as too late, and its push is completed once")
    func outlasted() throws {
        let settings = ["--set", "policy.executionWindow=30"]
        let folder = try RestartFolder()
        let first = try folder.start(settings)
        let worker = try SDKWorker.subscribed(to: first)
        try first.instruct(1, #""do":"stubborn","milliseconds":2500"#)
        let lost = try #require(try worker.wait(for: "wake").text("wake"))
        try first.process.end(SIGKILL)

        let second = try folder.start(settings, edge: first.edge)
        let dropped = try worker.wait(for: "dropped")
        #expect(dropped.text("wake") == lost && dropped.text("code") == "wakeEnded")
        #expect(try worker.wait(for: "delivered").text("result") == "newData")
        try self.checkCounters(second, lost: 1)
        #expect(try worker.stop() == 0)
    }

    @Test("An orderly shutdown extends the wake and waits for its result; then the worker reconnects")
    func shutdown() throws {
        let settings = Self.settings + ["--set", "drainTimeout=60"]
        let folder = try RestartFolder()
        let first = try folder.start(settings)
        let worker = try SDKWorker.subscribed(to: first)
        let wake = try self.extend(first, worker, milliseconds: 8000)
        first.process.send(SIGTERM)
        try first.eventually("a shutdown") { try first.admin("/readyz").status == 503 }
        let delivered = try worker.wait(for: "delivered")
        #expect(delivered.text("wake") == wake && delivered.text("result") == "newData")
        #expect(try first.process.finish().status == 0)

        let second = try folder.start(settings, edge: first.edge)
        try worker.wait(for: "disconnected")
        try worker.wait(for: "subscribed")
        try self.checkCounters(second, lost: 0)
        #expect(try worker.stop() == 0)
    }

    /// Expects one push, completed once.
    private func checkCounters(_ gateway: RunningGateway, lost: Int) throws {
        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "accepted") == 1)
        #expect(stats.integer("pushes", "completed") == 1)
        #expect(stats.integer("wakes", "launched") == 1 + lost)
        let results = #"{"expired":0,"failed":0,"lost":\#(lost),"newData":1,"noData":0}"#
        #expect(stats.part("wakes", "results") == results)
    }
}
