import Foundation
import Testing

@Suite("wakegate dev for other machines", .serialized, .timeLimit(.minutes(15)))
struct NetworkTests {
    private let token = String(repeating: "c0ffee00", count: 8)

    /// Sends a request from one of the addresses of this machine.
    private func ask(_ url: String, from address: String, _ options: [String] = []) throws -> Answer {
        let common = ["--silent", "--show-error", "--noproxy", "*", "--max-time", "60", "--interface", address]
        return try Answer.curl(common + options + [url])
    }

    private func port(_ address: String) -> String { String(address.split(separator: ":").last ?? "") }

    @Test("Clients of a named network may do everything, by a suitable host name, and others are refused")
    func named() throws {
        let gateway = try RunningGateway(["--network", "127.0.0.2"], edge: "0.0.0.0:0", admin: "0.0.0.0:0")
        let admin = "http://127.0.0.1:\(self.port(gateway.admin))"
        let edge = "https://127.0.0.1:\(self.port(gateway.edge))/3/device/\(self.token)"
        let common = ["--cacert", gateway.certificateAuthority, "-H", "apns-topic: com.example.app"]
        for address in ["127.0.0.1", "127.0.0.2"] {
            #expect(try self.ask("\(admin)/v1/faults", from: address).status == 200)
            #expect(try self.ask("\(admin)/v1/stats", from: address, ["-H", "Host: wakegate:9197"]).status == 200)
            #expect(try self.ask("\(admin)/v1/stats", from: address, ["-H", "Host: gw.example.com"]).status == 403)
            let options = ["--http2"] + common + ["-H", "apns-push-type: background", "-d", RunningGateway.payload]
            let push = try self.ask(edge, from: address, options)
            #expect(push.status == 200, "\(push.body)")
        }
        for url in ["\(admin)/v1/stats", "\(admin)/readyz", edge] {
            let refused = try self.ask(url, from: "127.0.0.3", common)
            #expect(refused.status == 403 && refused.body.contains(#""reason":"Forbidden""#), "\(refused)")
            #expect(
                refused.body.contains("127.0.0.3 may not reach this gateway: it is for this machine and 127.0.0.2.")
            )
            #expect(refused.body.contains("--network 127.0.0.3"))
        }
        let stats = try gateway.wakegate("stats")
        #expect(stats.status == 0, "\(stats.errors)")
    }

    @Test("Without --network it listens only on loopback, and an invalid network is refused by name")
    func unnamed() throws {
        let folder = try RestartFolder()
        let open = try folder.startInVain(["dev", "--plain", "0.0.0.0:0"])
        #expect(open.status == EX_CONFIG && open.errors.contains("--network"), "\(open.errors)")
        let wrong = try folder.startInVain(["dev", "--network", "docker0"])
        #expect(wrong.status == EX_USAGE && wrong.errors.contains("--network is \"docker0\"; write an address"))
    }
}
