import Foundation
import Testing

@Suite("What browsers say of a request on cleartext listeners", .serialized, .timeLimit(.minutes(15)))
struct ForeignPageTests {
    private static let versions = ["--http1.1", "--http2-prior-knowledge"]
    /// What a browser sends along when a person follows a link.
    private static let navigation = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]

    @Test("Whatever another site's page asks for is refused, though it does not say which", arguments: versions)
    func metadata(version: String) throws {
        let gateway = try RunningGateway()
        for (listener, path) in [(gateway.admin, "/v1/stats"), (gateway.plain, "/v1/nothing"), (gateway.admin, "/")] {
            let good = path == "/v1/nothing" ? 404 : 200
            for (site, status) in [
                ("same-origin", good), ("none", good), ("cross-site", 403), ("same-site", 403), ("", 403),
                ("None", 403),
            ] {
                let field = site.isEmpty ? "Sec-Fetch-Site;" : "Sec-Fetch-Site: \(site)"
                let answer = try self.ask("http://\(listener)\(path)", version, [field])
                #expect(answer.status == status, "\(path) \(site)")
                if status == 403 { #expect(answer.reason == "Forbidden", "\(path) \(site)") }
            }
            // The last of two does not hide the first.
            let two = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: none"]
            #expect(try self.ask("http://\(listener)\(path)", version, two).status == 403)
        }
        let push = "http://\(gateway.plain)/3/device/\(String(repeating: "ab", count: 32))"
        let refused = try self.ask(push, version, ["Sec-Fetch-Site: cross-site", "apns-topic: a"], ["-d", "{}"])
        #expect(refused.status == 403)
        #expect(try gateway.stats().integer("pushes", "rejected", "Forbidden") == 1)
        #expect(try gateway.stats().integer("pushes", "noWake") == 0)
    }

    @Test("A link from another site leads to the dashboard's page, and to nothing else", arguments: versions)
    func link(version: String) throws {
        let gateway = try RunningGateway()
        let foreign = "Sec-Fetch-Site: cross-site"
        let cases: [(String, [String], [String], Int)] = [
            ("/", Self.navigation, [], 200), ("/?from=mail", Self.navigation, [], 200),
            ("/v1/stats", Self.navigation, [], 403), ("/dashboard/main.js", Self.navigation, [], 403),
            ("/", [Self.navigation[0]], [], 403), ("/", [Self.navigation[1]], [], 403),
            ("/", [Self.navigation[0], "Sec-Fetch-Dest: iframe"], [], 403),
            ("/", ["Sec-Fetch-Mode: no-cors", Self.navigation[1]], [], 403),
            ("/", Self.navigation, ["-X", "POST"], 403),
        ]
        for (path, fields, options, status) in cases {
            let answer = try self.ask("http://\(gateway.admin)\(path)", version, [foreign] + fields, options)
            #expect(answer.status == status, "\(path) \(fields) \(options)")
        }
        // The plain listener has no page.
        #expect(try self.ask("http://\(gateway.plain)/", version, [foreign] + Self.navigation).status == 403)
    }

    @Test("A request that names two hosts, or none, is refused; the edge takes it as it is")
    func hosts() throws {
        let gateway = try RunningGateway()
        let script = RunningGateway.client("two_hosts.py")
        let arguments = [script, gateway.admin, gateway.plain, gateway.edge, gateway.certificateAuthority]
        let ended = try ChildProcess.run(RunningGateway.python, arguments)
        #expect(ended.status == 0, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 3 * 7)
        for line in lines {
            let words = line.split(separator: " ")
            let isGood = ["same", "port", "case", "host-only"].contains(words[1])
            #expect(words[2] == (words[0] == "edge" || isGood ? "404" : "403"), "\(line)")
        }
    }

    @Test("Clients of a socket file name this machine, as curl does")
    func socketFile() throws {
        let folder = try RestartFolder()
        let path = folder.folder.appendingPathComponent("a.sock").path
        let gateway = try RunningGateway(admin: "unix:\(path)")
        for (host, status) in [("localhost", 200), ("unix", 403), ("unix:9197", 403), ("attacker.example", 403)] {
            let options = ["--unix-socket", path, "-H", "Host: \(host)"]
            #expect(try self.ask("http://localhost/v1/stats", "--http1.1", [], options).status == status, "\(host)")
        }
        withExtendedLifetime(gateway) {}
    }

    private func ask(
        _ url: String,
        _ version: String,
        _ fields: [String],
        _ options: [String] = []
    ) throws -> Answer {
        let always = ["--silent", "--noproxy", "*", "--max-time", "20", "--include", version]
        let ended = try ChildProcess.run("curl", always + options + fields.flatMap { ["-H", $0] } + [url])
        return try Answer(curlOutput: ended.output)
    }
}
