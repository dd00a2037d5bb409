import Foundation
import Glibc
import Testing

@Suite("Raw HTTP/2 clients in numbers and across a restart", .serialized, .timeLimit(.minutes(15)))
struct RawClientTests {
    /// What the certificates are for that `wakegate dev` makes.
    private let topic = "com.example.app"

    /// What a gateway is told that asks for client certificates of its own authority.
    private static let forCertificate = ["--set", "tls.clientCA=.wakegate/ca.pem"]

    private func certificate(_ gateway: RunningGateway) -> String {
        gateway.folder.appendingPathComponent(".wakegate/provider.pem").path
    }

    @Test(
        "curl pushes a thousand times, two hundred at a time, on few connections, and learns that a token is inactive",
        arguments: [[], Self.forCertificate]
    )
    func curlThousand(settings: [String]) throws {
        let gateway = try RunningGateway(settings)
        let proof = settings.isEmpty ? [] : ["--cert", self.certificate(gateway)]
        let options = ["--parallel", "--parallel-max", "200"] + proof
        let ended = try self.curl(gateway, options, devices: "[1000-1999]").finish(within: 60)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == String(repeating: "200 2\n", count: 1000))
        #expect(try gateway.stats().integer("pushes", "accepted") == 1000)
        let removed = String(repeating: "0", count: 60) + "1500"
        #expect(try gateway.admin("/v1/devices/\(removed)", "-X", "DELETE").status == 204)
        let answers = try self.curl(gateway, proof, devices: "[1499-1500]").finish().output
        #expect(answers == "200 2\n410 2\n")
    }

    @Test(
        "curl repeats what a restart left without an answer, until all is answered",
        arguments: [[], Self.forCertificate]
    )
    func curlRestart(settings: [String]) throws {
        let folder = try RestartFolder()
        let gateway = try folder.start(settings)
        let options =
            ["--rate", "20/s", "--retry", "20", "--retry-delay", "1", "--retry-all-errors"]
            + (settings.isEmpty ? [] : ["--cert", self.certificate(gateway)])
        let client = try self.curl(gateway, options, devices: "[1000-1039]")
        for _ in 0..<10 { #expect(try client.line() == "200 2") }
        #expect(try folder.end(gateway, SIGTERM).status == 0)
        let next = try folder.start(settings, edge: gateway.edge)
        let ended = try client.finish(within: 60)
        #expect(ended.status == 0, "\(ended.errors)")
        // A push that is repeated writes a line for each attempt.
        let last = ended.output.split(separator: "\n")
        #expect(last.filter { $0 == "200 2" }.count == 30, "\(ended.output)")
        #expect(try next.stats().integer("pushes", "accepted") == 40)
    }

    @Test("nghttp pushes to a thousand devices on one connection", arguments: [[], Self.forCertificate])
    func nghttpThousand(settings: [String]) throws {
        let gateway = try RunningGateway(settings)
        let file = self.certificate(gateway)
        let body = gateway.folder.appendingPathComponent("body")
        try Data(RunningGateway.payload.utf8).write(to: body)
        let devices = (1000..<2000).map { number in
            "https://\(gateway.edge)/3/device/" + String(repeating: "0", count: 60) + "\(number)"
        }
        let options =
            ["--null-out", "--stat", "--data=\(body.path)", "-H", "apns-topic: \(self.topic)"]
            + (settings.isEmpty ? [] : ["--cert=\(file)", "--key=\(file)"])
        let ended = try ChildProcess("nghttp", options + devices).finish(within: 60)
        #expect(ended.status == 0)
        #expect(ended.output.split(separator: "\n").filter { $0.contains("  200 ") }.count == 1000)
        #expect(try gateway.stats().integer("pushes", "accepted") == 1000)
    }

    @Test("A connection that carries a wake to the end of a shutdown is told by GOAWAY, too")
    func goAwayAtTimeout() throws {
        let gateway = try RunningGateway(["--set", "drainTimeout=1"])
        let url = "https://\(gateway.edge)/v1/topics/\(self.topic)/wakes"
        let client = try ChildProcess("nghttp", ["--verbose", url])
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
        #expect(try gateway.push(String(repeating: "a", count: 64), topic: self.topic).status == 200)
        try gateway.eventually("a wake") { try gateway.stats().integer("pushes", "inFlight") == 1 }
        gateway.process.send(SIGTERM)
        #expect(try gateway.process.finish().status == 0)
        let frames = try client.finish().output
        #expect(frames.contains(#"error_code=NO_ERROR(0x00), opaque_data(21)=[{"reason":"Shutdown"}]"#), "\(frames)")
    }

    /// One push for each device that curl's pattern makes; each writes status and HTTP version when it is answered.
    private func curl(_ gateway: RunningGateway, _ options: [String], devices: String) throws -> ChildProcess {
        let url = "https://\(gateway.edge)/3/device/" + String(repeating: "0", count: 60) + devices
        return try ChildProcess(
            "curl",
            gateway.curlOptions + options + [
                "--output", "/dev/null", "--write-out", #"%{http_code} %{http_version}\n"#, "-H",
                "apns-topic: \(self.topic)", "--data-binary", RunningGateway.payload, url,
            ]
        )
    }
}
