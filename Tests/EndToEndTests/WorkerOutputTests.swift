import Foundation
import Glibc
import Testing

@Suite("What a worker's commands read and write", .serialized, .timeLimit(.minutes(15)))
struct WorkerOutputTests {
    private let topic = "com.example.output"
    private let token = String(repeating: "07", count: 32)

    @Test("Each line of a command, on either output, begins with the id of its wake")
    func lines() throws {
        let gateway = try RunningGateway()
        let script = #"printf 'one\ntwo\n'; printf 'wrong\nleft' >&2; printf 'three'; echo "$WAKEGATE_WAKE" >id"#
        let worker = try WorkerProcess(gateway, topic: self.topic, script: script)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.eventually("a result") { try gateway.stats().integer("wakes", "results", "newData") == 1 }
        let id = try String(contentsOf: gateway.folder.appendingPathComponent("id"), encoding: .utf8).dropLast()
        for text in ["one", "two", "three"] { #expect(try worker.process.line() == "\(id) \(text)") }
        try worker.says("\(id) wrong\n\(id) left\n")
    }

    @Test("With --output inherit the commands write where the worker writes, as it is")
    func inherit() throws {
        let gateway = try RunningGateway()
        let options = ["--output", "inherit"]
        let worker = try WorkerProcess(gateway, topic: self.topic, options, script: "echo plain; echo wrong >&2")
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try worker.process.line() == "plain")
        try worker.says("\nwrong\n")
        let bad = try gateway.wakegate("worker", "--topic", self.topic, "--output", "x", "--", "true")
        #expect(bad.status == 64)
        #expect(bad.errors.contains("it is log or inherit"))
    }

    @Test("A command that writes without end is not held up, nobody's memory grows, and what is dropped is counted")
    func loud() throws {
        let gateway = try RunningGateway()
        // Nobody reads the worker's output while the command writes 4 MB, then one long line.
        let script = "yes 0123456789012345678901234567890123456789 | head -c 4000000; head -c 100000 /dev/zero; echo"
        let worker = try WorkerProcess(gateway, topic: self.topic, script: script)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.eventually("a result", within: 25) {
            try gateway.stats().integer("wakes", "results", "newData") == 1
        }
        let status = try String(contentsOfFile: "/proc/\(worker.process.identifier)/status", encoding: .utf8)
        let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let kilobytes = try #require(peak?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
        #expect(kilobytes < 100_000)
        worker.process.send(SIGTERM)
        let ended = try worker.process.finish()
        #expect(ended.status == 0)
        #expect(ended.output.contains("lines of the commands' output were dropped"))
        let longest = ended.output.split(separator: "\n").map(\.utf8.count).max() ?? 0
        #expect((40...4096 + 33).contains(longest))
    }

    @Test("A command that does not read its standard input, or closes it, gets its wake answered")
    func unread() throws {
        let gateway = try RunningGateway()
        let worker = try WorkerProcess(gateway, topic: self.topic, script: "exec 0<&-; echo closed")
        let filler = String(repeating: "x", count: 3900)
        let payload = #"{"aps":{"content-available":1},"filler":"\#(filler)"}"#
        #expect(try gateway.push(self.token, topic: self.topic, payload: payload).status == 200)
        #expect(try worker.line() == "closed")
        try gateway.eventually("a result") { try gateway.stats().integer("wakes", "results", "newData") == 1 }
    }

    @Test("A command that is not a program gives its wake back, and the worker says why")
    func notStarted() throws {
        let gateway = try RunningGateway(["--set", "policy.maxAttempts=1"])
        let file = gateway.folder.appendingPathComponent("handler")
        try Data("no program".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
        let line = ["worker", "--topic", self.topic, "--", "./handler"]
        let worker = try ChildProcess(RunningGateway.program, line, folder: gateway.folder)
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.eventually("a wake given back") {
            try #require(try gateway.stats().integer("wakes", "results", "lost")) >= 1
        }
        #expect(try gateway.stats().integer("wakes", "results", "failed") == 0)
        try gateway.eventually("a reason: \(worker.errors)") { worker.errors.contains("./handler cannot be started") }
        worker.send(SIGTERM)
        #expect(try worker.finish().status == 0)
    }
}
