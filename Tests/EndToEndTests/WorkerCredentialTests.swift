import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Credentials of workers", .serialized, .timeLimit(.minutes(15)))
struct WorkerCredentialTests {
    private let device = String(repeating: "c4ed", count: 16)

    private func push(_ gateway: ServedGateway, certificate: String? = nil) throws -> Answer {
        try gateway.push(self.device, topic: SDKWorker.topic, certificate: certificate)
    }

    private func register(_ gateway: ServedGateway) throws {
        let path = "/v1/topics/\(SDKWorker.topic)/devices"
        #expect(try gateway.ask(.admin, "POST", path, body: #"{"token":"\#(self.device)"}"#).status == 201)
    }

    private func worker(_ gateway: ServedGateway, _ options: [String], commands: [String] = []) throws -> SDKWorker {
        let url = gateway.url(.edge)
        return try SDKWorker(url, authority: gateway.certificateAuthority, options, commands: commands)
    }

    private func token(_ gateway: ServedGateway, _ expires: String = "1d") throws -> (token: String, id: String) {
        try gateway.issue("--role", "worker", "--topic", SDKWorker.topic, "--expires", expires)
    }

    @Test("A token file that is empty or truncated while it is rewritten loses no result and ends no worker")
    func tokenFileRewritten() throws {
        let gateway = try ServedGateway()
        try self.register(gateway)
        let file = gateway.folder.appendingPathComponent("worker.token")
        func write(_ text: String) throws { try Data(text.utf8).write(to: file) }
        let (next, _) = try self.token(gateway)
        try write("\(try self.token(gateway, "12s").token)\n")
        let worker = try self.worker(gateway, ["--token-file", file.path])
        try worker.wait(for: "subscribed")
        // Send a result while the file is empty.
        try write("")
        let reads = try FileReads(file.path)
        #expect(try self.push(gateway).status == 200)
        try reads.wait()
        try write("\(next)\n")
        #expect(try worker.wait(for: "delivered").text("result") == "newData")
        // The stream's token expires. The next subscriptions find an empty file, and then half of a token.
        try write("")
        try worker.wait(for: "disconnected")
        #expect(try worker.wait(for: "disconnected").text("code") == "badCredentials")
        try write("\(next.prefix(40))\n")
        #expect(try worker.wait(for: "disconnected").text("code") == "refused")
        try write("\(next)\n")
        try worker.wait(for: "subscribed")
        #expect(try worker.stop() == 0)
    }

    @Test("A token file that is a pipe is refused immediately, and blocks no other worker of the process")
    func tokenPipe() throws {
        let gateway = try ServedGateway()
        let pipe = gateway.folder.appendingPathComponent("worker.token").path
        #expect(unsafe mkfifo(pipe, 0o600) == 0)
        let worker = try self.worker(gateway, ["--token-file", pipe])
        let failed = try worker.wait(for: "failed")
        #expect(failed.text("code") == "badCredentials")
        #expect(failed.text("message")?.contains("cannot be read, or is not a file") == true)
        #expect(try worker.process.finish().status == 1)
    }

    @Test("A client certificate with the worker's role opens the stream and answers wakes; a provider's does not")
    func certificate() throws {
        let authority = try TestAuthority()
        let gateway = try ServedGateway(["--set", "tls.clientCA=\(authority.certificate)"])
        try self.register(gateway)
        let files = try ["/OU=worker/UID=\(SDKWorker.topic)", "/UID=\(SDKWorker.topic)"].map { try authority.issue($0) }
        func worker(_ file: String) throws -> SDKWorker {
            let options = ["--cert", file, "--key", file]
            return try self.worker(gateway, options, commands: ["register"])
        }
        let accepted = try worker(files[0])
        try accepted.wait(for: "subscribed")
        #expect(try accepted.wait(for: "answer").text("token") != nil)
        #expect(try self.push(gateway, certificate: files[1]).status == 200)
        #expect(try accepted.wait(for: "delivered").text("result") == "newData")
        let refused = try worker(files[1]).wait(for: "failed")
        #expect(refused.text("code") == "refused")
        #expect(refused.text("message")?.contains("403 Forbidden") == true, "\(refused.values)")
        #expect(try accepted.stop() == 0)
    }

    @Test("wakegate worker uses the current token of its file, and a client certificate of a worker")
    func commandLine() throws {
        let authority = try TestAuthority()
        let gateway = try ServedGateway(["--set", "tls.clientCA=\(authority.certificate)"])
        try self.register(gateway)
        let provider = try authority.issue("/UID=\(SDKWorker.topic)")
        let (next, first) = (try self.token(gateway).token, try self.token(gateway, "6s").token)
        let file = gateway.folder.appendingPathComponent("worker.token")
        try Data("\(first)\n".utf8).write(to: file)
        func worker(_ options: [String]) throws -> ChildProcess {
            let location = ["--gateway", gateway.url(.edge), "--ca", gateway.certificateAuthority]
            let line = ["worker", "--topic", SDKWorker.topic] + location + options + ["--", "echo", "woken"]
            return try ChildProcess(wakegate: line)
        }
        let reading = try worker(["--token-file", file.path])
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        try Data("\(next)\n".utf8).write(to: file, options: .atomic)
        try gateway.eventually("the end of the first stream") { reading.errors.contains("subscribing again") }
        let wakes = "/v1/topics/\(SDKWorker.topic)/wakes?slots=0"
        #expect(try gateway.ask(.edge, "GET", wakes, token: first).reason == "ExpiredToken")
        try gateway.eventually("a worker again") { try gateway.workerCount() == 1 }
        #expect(try self.push(gateway, certificate: provider).status == 200)
        #expect(try reading.line()?.hasSuffix(" woken") == true)
        #expect(try reading.end().status == 0)

        let certified = try worker(["--cert", try authority.issue("/OU=worker/UID=\(SDKWorker.topic)")])
        try gateway.eventually("a worker with a certificate") { try gateway.workerCount() == 1 }
        #expect(try certified.end().status == 0)
        #expect(try worker(["--cert", provider]).finish().status == 77)
    }
}
