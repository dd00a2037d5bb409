import Foundation
import Glibc
import Testing

@Suite("A gateway as its configuration says", .serialized, .timeLimit(.minutes(15)))
struct ServeTests {
    private static let tokens = ["5c", "6d"].map { String(repeating: $0, count: 32) }

    @Test("serve runs with a file that sets something in every section, and ends with 0 when it is told to")
    func serve() throws {
        // A development gateway leaves the certificate that serve needs.
        let development = try RunningGateway()
        let folder = development.folder
        let state = folder.appendingPathComponent(".wakegate").path
        let file = folder.appendingPathComponent("wakegate.json5")
        let configuration = """
            {
              edge: "127.0.0.1:0", admin: ["127.0.0.1:0", "unix:\(folder.path)/admin"], plain: "127.0.0.1:0",
              state: "\(folder.path)/state", store: "memory", registration: "open", drainTimeout: 1,
              tls: { certificate: "\(state)/server.pem", key: "\(state)/server.key", clientCA: "\(state)/ca.pem" },
              policy: { launchInterval: 600 }, topics: { "com.example.app": { policy: { launchInterval: 300 } } },
              limits: { devicesMax: 1000, idleSeconds: 60 }, log: { level: "debug", format: "json" },
            }
            """
        try Data(configuration.utf8).write(to: file)
        let gateway = try ChildProcess(RunningGateway.program, ["serve", "--config", file.path], folder: folder)
        let line = try #require(try gateway.line(), "\(gateway.errors)")
        let ready = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        let edge = try #require(ready["edge"] as? String)
        #expect((ready["admin"] as? [String])?.count == 2)
        // The certificate was made by a gateway for another folder, and is of the authority that this one asks for.
        let gate = ["--gateway", "https://\(edge)", "--ca", "\(state)/ca.pem", "--cert", "\(state)/provider.pem"]
        let push = ["push", Self.tokens[0], "--topic", "com.example.app"] + gate
        let pushed = try ChildProcess.run(RunningGateway.program, push)
        #expect(pushed.status == 0, "\(pushed.errors)")
        gateway.send(SIGTERM)
        let ended = try gateway.finish()
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test("A bound of the engine holds: past devicesMax a new device is refused, a known one is not")
    func devicesMax() throws {
        let gateway = try RunningGateway(["--set", "limits.devicesMax=1"])
        #expect(try gateway.push(Self.tokens[0], topic: "t").status == 200)
        let refused = try gateway.push(Self.tokens[1], topic: "t")
        #expect(refused.status == 429)
        #expect(refused.body.contains("TooManyRequests"))
        #expect(try gateway.push(Self.tokens[0], topic: "t").status == 200)
    }
}
