import Foundation
import Testing

@Suite("Ordinary clients push", .serialized, .timeLimit(.minutes(15)))
struct OrdinaryClientTests {
    private let topic = "com.example.clients"
    private let token = String(repeating: "0badcafe", count: 8)

    @Test("curl over TLS is answered 200 with an apns-id and no body")
    func curl() throws {
        let gateway = try RunningGateway()
        let answer = try gateway.push(self.token, topic: self.topic)
        #expect(answer.status == 200)
        #expect(answer.body.isEmpty)
        #expect(answer.headers["apns-id"]?.count == 36)
        #expect(answer.headers["wakegate-disposition"] == "scheduled")
        #expect(answer.headers["wakegate-held"] == "worker")
    }

    @Test("nghttp pushes over TLS, and in cleartext with prior knowledge", arguments: [true, false])
    func nghttp(tls: Bool) throws {
        let gateway = try RunningGateway()
        let base = tls ? "https://\(gateway.edge)" : "http://\(gateway.plain)"
        let body = gateway.folder.appendingPathComponent("body")
        try Data(RunningGateway.payload.utf8).write(to: body)
        let ended = try ChildProcess.run(
            "nghttp",
            ["--verbose", "--data=\(body.path)", "-H", "apns-topic: \(self.topic)", "\(base)/3/device/\(self.token)"]
        )
        #expect(ended.status == 0)
        #expect(ended.output.contains(":status: 200"))
        #expect(ended.output.contains("wakegate-disposition: scheduled"))
    }

    @Test("Clients that expect 100 Continue before they send the payload push without a pause")
    func expectation() throws {
        let gateway = try RunningGateway()
        let url = "https://\(gateway.edge)/3/device/\(self.token)"
        let body = gateway.folder.appendingPathComponent("body")
        try Data(RunningGateway.payload.utf8).write(to: body)
        let nghttp = try ChildProcess.run(
            "nghttp",
            ["--verbose", "--expect-continue", "--data=\(body.path)", "-H", "apns-topic: \(self.topic)", url]
        )
        let statuses = nghttp.output.matches(of: /:status: ([0-9]+)/).map { String($0.output.1) }
        #expect(statuses == ["100", "200"], "\(nghttp.output)")
        let script = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/ExpectJava.java").path
        let arguments = [script, url, gateway.certificateAuthority, self.topic, RunningGateway.payload]
        let java = try ChildProcess.run("java", arguments)
        #expect(java.output == "HTTP_2 200\n", "\(java.errors)")
    }

    @Test("A Python client that needs ALPN pushes")
    func withALPN() throws {
        let gateway = try RunningGateway()
        let url = "https://\(gateway.edge)/3/device/\(self.token)"
        let ended = try self.python("push_with_alpn.py", url, gateway.certificateAuthority)
        #expect(ended.output == "HTTP/2 200 scheduled\n", "\(ended.errors)")
    }

    @Test("A Python client that offers no ALPN and sends no :authority pushes")
    func withoutALPN() throws {
        let gateway = try RunningGateway()
        let path = "/3/device/\(self.token)"
        let ended = try self.python("push_without_alpn.py", gateway.edge, gateway.certificateAuthority, path)
        #expect(ended.output == "HTTP/2 200 scheduled\n", "\(ended.errors)")
    }

    private func python(_ script: String, _ arguments: String...) throws -> ChildProcess.Ended {
        let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/\(script)").path
        try #require(FileManager.default.fileExists(atPath: RunningGateway.python), "run deploy/setup first")
        return try ChildProcess.run(RunningGateway.python, [file] + arguments + [self.topic, RunningGateway.payload])
    }
}
