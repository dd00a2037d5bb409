import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("The page on proxies shows configurations that work", .serialized, .timeLimit(.minutes(15)))
struct ProxyTests {
    private static let topic = "com.example.proxied"
    private static let token = String(repeating: "b0", count: 32)

    /// A configuration in the article, in order.
    enum Shown: Int, CaseIterable, CustomTestStringConvertible {
        case haproxyTCP, nginx, haproxyHTTP

        var testDescription: String { "\(self)" }
    }

    /// A proxy with a configuration from the article, in front of a gateway. It listens on sockets in the gateway's
    /// directory.
    private final class Proxy {
        let gateway: RunningGateway
        private let process: ChildProcess

        init(_ shown: Shown) throws {
            let gateway = try RunningGateway()
            self.gateway = gateway
            let folder = gateway.folder.path
            let state = "\(folder)/.wakegate"
            let certificate = try ["server.pem", "server.key"].map { try Data(contentsOf: Self.file("\(state)/\($0)")) }
            try (certificate[0] + certificate[1]).write(to: Self.file("\(folder)/proxy.pem"))
            let path = "\(folder)/proxy.conf"
            let text = try Self.configuration(shown)
            let places = [
                "127.0.0.1:2197": gateway.edge, "127.0.0.1:8197": gateway.plain, "127.0.0.1:9197": gateway.admin,
                "/etc/nginx/wakegate.pem": "\(folder)/proxy.pem", "/etc/nginx/wakegate.key": "\(state)/server.key",
                "/etc/nginx/operators.pem": "\(state)/ca.pem", "/etc/haproxy/wakegate.pem": "\(folder)/proxy.pem",
                "/etc/haproxy/operators.pem": "\(state)/ca.pem", "/etc/haproxy/wakegate-ca.pem": "\(state)/ca.pem",
                "bind :443": "bind unix@\(folder)/edge.sock", "bind :8443": "bind unix@\(folder)/admin.sock",
                "listen 443": "listen unix:\(folder)/edge.sock", "listen 8443": "listen unix:\(folder)/admin.sock",
            ]
            let here = places.reduce(text) { $0.replacing($1.key, with: $1.value) }
            if shown == .nginx {
                try Self.nginx(here, in: folder).write(toFile: path, atomically: true, encoding: .utf8)
                self.process = try ChildProcess("/usr/sbin/nginx", ["-e", "stderr", "-p", folder, "-c", path])
            } else {
                try here.write(toFile: path, atomically: true, encoding: .utf8)
                self.process = try ChildProcess("/usr/sbin/haproxy", ["-db", "-f", path])
            }
            let sockets = ["edge.sock"] + (shown == .haproxyTCP ? [] : ["admin.sock"])
            let process = self.process
            func listens() -> Bool { sockets.allSatisfy { Self.accepts("\(folder)/\($0)") } }
            guard Polling.isSo({ !process.isRunning || listens() }), process.isRunning else {
                throw ChildProcess.Failure(description: "\(shown) did not start: \(process.errors)")
            }
        }

        deinit { self.process.send(SIGKILL) }

        private static func file(_ path: String) -> URL { URL(fileURLWithPath: path) }

        /// Returns true if connections to a socket are accepted. curl ends with status 7 if they are not.
        private static func accepts(_ path: String) -> Bool {
            let options = ["--silent", "--insecure", "--max-time", "10", "--unix-socket", path]
            return (try? ChildProcess.run("curl", options + ["https://localhost/"]))?.status ?? 7 != 7
        }

        /// Returns a configuration from the article.
        private static func configuration(_ shown: Shown) throws -> String {
            let text = try Checkout.article("Proxies")
            let blocks = text.matches(of: /```(?:nginx|haproxy)\n([^`]*)```/).map { String($0.output.1) }
            try #require(blocks.count == Shown.allCases.count)
            return blocks[shown.rawValue]
        }

        /// Returns a configuration like Debian's nginx.conf that contains `servers`, the file that the page shows.
        private static func nginx(_ servers: String, in folder: String) -> String {
            """
            daemon off;
            master_process off;
            pid \(folder)/nginx.pid;
            events { worker_connections 512; }
            http {
                access_log off;
                client_body_temp_path \(folder); proxy_temp_path \(folder);
                fastcgi_temp_path \(folder); uwsgi_temp_path \(folder); scgi_temp_path \(folder);
                \(servers)
            }
            """
        }

        /// The arguments of curl for a request through the proxy.
        func curl(_ socket: String, _ path: String, _ options: String...) -> [String] {
            let files = ["--unix-socket", "\(self.gateway.folder.path)/\(socket).sock"]
            return self.gateway.curlOptions + files + ["--include"] + options + ["https://localhost\(path)"]
        }

        func ask(_ socket: String, _ path: String, _ options: String...) throws -> Answer {
            try Answer.curl(self.curl(socket, path) + options)
        }

        /// Starts curl, which reads the response until the connection ends.
        func follow(_ socket: String, _ path: String, _ options: String...) throws -> ChildProcess {
            try ChildProcess("curl", self.curl(socket, path, "--no-buffer") + options)
        }
    }

    @Test(
        "A worker's stream begins immediately, a push through the proxy wakes it, and operators need a certificate",
        arguments: Shown.allCases
    )
    func worker(shown: Shown) throws {
        let proxy = try Proxy(shown)
        let worker = try proxy.follow("edge", "/v1/topics/\(Self.topic)/wakes?slots=1")
        let head = try worker.output(containing: ": wakes follow\n\n", within: 15)
        #expect(head.contains("text/event-stream") && head.contains("cache-control: no-cache, no-transform"))
        let fields = ["apns-topic: \(Self.topic)", "apns-push-type: background", "apns-priority: 10"]
        let options = fields.flatMap { ["-H", $0] } + ["-d", RunningGateway.payload]
        let path = "/3/device/\(Self.token)"
        let answer = try Answer.curl(proxy.curl("edge", path) + options)
        #expect(answer.status == 200 && answer.headers["wakegate-disposition"] == "launched", "\(answer)")
        let event = try #require(try EventStream(worker).next())
        #expect(event.name == "wake")
        let id = try #require(event.id)
        #expect(try proxy.ask("edge", "/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try proxy.gateway.results("newData") == 1)
        if shown != .haproxyTCP { try self.checkOperators(proxy) }
    }

    /// Expects that operators use a certificate, follow events, and change nothing from a foreign page.
    private func checkOperators(_ proxy: Proxy) throws {
        let certificate = ["--cert", "\(proxy.gateway.folder.path)/.wakegate/worker.pem"]
        let unknownPeer = try ChildProcess.run("curl", proxy.curl("admin", "/readyz"))
        let isRefused = try unknownPeer.status != 0 || Answer(curlOutput: unknownPeer.output).status == 400
        #expect(isRefused, "\(unknownPeer.output)")
        #expect(try proxy.ask("admin", "/", certificate[0], certificate[1]).status == 200)
        let events = try proxy.follow("admin", "/v1/events", certificate[0], certificate[1])
        #expect(try events.output(containing: ": events follow\n\n", within: 15).contains("text/event-stream"))
        #expect(try proxy.gateway.push(Self.token, topic: Self.topic).status == 200)
        func pause(_ origin: String) throws -> Int {
            let options = ["--request", "POST", "--header", "origin: \(origin)"] + certificate
            return try Answer.curl(proxy.curl("admin", "/v1/topics/\(Self.topic)/pause") + options).status
        }
        #expect(try pause("https://wakegate.example.com:8443") == 200)
        #expect(try pause("https://example.com") == 403)
        #expect(try pause("http://\(proxy.gateway.admin)") == 403)
    }
}
