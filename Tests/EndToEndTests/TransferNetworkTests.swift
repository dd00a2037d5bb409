import Foundation
import Testing
import WakeGateTestKit

@Suite("Transfers over the networks that there are", .serialized, .timeLimit(.minutes(15)))
final class TransferNetworkTests: TransferScene {
    private static let session = "com.example.networks"

    private func script(_ name: String, _ arguments: [String] = []) throws -> ChildProcess {
        let path = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/\(name)").path
        return try ChildProcess("python3", [path] + arguments, isInputOpen: true)
    }

    @Test("HTTP/2 is spoken where the server does, and a cut download goes on by Range there, too")
    func http2() throws {
        let content = TransferServer.content(1_500_000, seed: 21)
        let sum = try self.server.put("film", content)
        let options = ["--trust", self.server.authority.certificate, "--set", "retry.first=0.05"]
        let agent = try RunningTransferAgent(nil, options)
        try self.server.cut(after: 700_000)
        let url = "https://\(self.server.http2)/files/film"
        let ended = try agent.transfer(
            "add",
            Self.session,
            url,
            "--sha256",
            sum,
            "--to",
            self.path("film")
        )
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: self.path("film")) == content)
        let requests = try self.server.requests()
        #expect(requests.allSatisfy { $0.line == "GET /files/film HTTP/2.0" }, "\(requests)")
        #expect(requests.map(\.status) == [200, 206] && requests.last?.range.hasPrefix("bytes=") == true)
    }

    @Test("The proxies of the environment are used as curl uses them, and so are its exceptions")
    func environmentProxies() throws {
        let content = TransferServer.content(50_000, seed: 22)
        try self.server.put("film", content)
        // nginx takes requests that a proxy is sent. Only a proxy can be asked for a name that there is not.
        let through = try RunningTransferAgent(environment: ["http_proxy=http://\(self.server.plain)", "no_proxy="])
        let url = "http://files.example.invalid/files/film"
        let ended = try through.transfer("add", Self.session, url, "--to", self.path("through"))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: self.path("through")) == content)
        #expect(try self.server.requests().last?.line == "GET \(url) HTTP/1.1")
        // A proxy that nobody is at, and an exception.
        let dead = ["http_proxy=http://127.0.0.1:9", "no_proxy=localhost,127.0.0.1"]
        let past = try RunningTransferAgent(environment: dead)
        let own = "http://\(self.server.plain)/files/film"
        #expect(try past.transfer("add", Self.session, own, "--to", self.path("past")).status == 0)
        #expect(try self.server.requests().last?.line == "GET /files/film HTTP/1.1")
        let id = try past.add(Self.session, url)
        try past.eventually("it is tried at the proxy", Self.session, id) { transfer in
            (transfer["error"] as? [String: Any])?["reason"] as? String == "ConnectionFailed"
        }
    }

    @Test("A proxy that is configured is used instead, with its name and password, and TLS goes through it whole")
    func configuredProxy() throws {
        let content = TransferServer.content(50_000, seed: 23)
        try self.server.put("film", content)
        let proxy = try self.script("connect_proxy.py")
        let port = try #require(try proxy.line())
        let trust = ["--trust", self.server.authority.certificate]
        let agent = try RunningTransferAgent(
            nil,
            trust + ["--set", "proxy=http://alice:s3cret@127.0.0.1:\(port)"],
            environment: ["https_proxy=http://127.0.0.1:9", "no_proxy="]
        )
        let url = "https://\(self.server.tls)/files/film"
        let ended = try agent.transfer("add", Self.session, url, "--to", self.path("film"))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: self.path("film")) == content)
        #expect(try proxy.line() == "CONNECT \(self.server.tls) alice:s3cret")
        let named = try RunningTransferAgent(
            nil,
            trust,
            environment: ["https_proxy=http://127.0.0.1:\(port)", "no_proxy="]
        )
        #expect(try named.transfer("add", Self.session, url, "--to", self.path("named")).status == 0)
        #expect(try proxy.line() == "CONNECT \(self.server.tls) -")
    }

    @Test("A server that wants a certificate is shown the agent's, and without one it refuses for good")
    func clientCertificate() throws {
        let content = TransferServer.content(50_000, seed: 24)
        try self.server.put("film", content)
        let certificate = try self.server.authority.issue("/CN=agent")
        let trust = ["--trust", self.server.authority.certificate]
        let own = ["--set", "certificate=\(certificate)", "--set", "privateKey=\(certificate)"]
        let agent = try RunningTransferAgent(nil, trust + own)
        for address in [self.server.tls, self.server.http2] {
            let url = "https://\(address)/private/film"
            let place = self.path("film-\(address)")
            let ended = try agent.transfer("add", Self.session, url, "--to", place)
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(self.content(at: self.path("film-\(address)")) == content)
        }
        let stranger = try RunningTransferAgent(nil, trust)
        let refused = try stranger.transfer("add", Self.session, "https://\(self.server.tls)/private/film", "--wait")
        #expect(refused.status == 1 && refused.errors.contains("HTTPStatus"), "\(refused.errors)")
        let missing = try RunningTransferAgent(nil, trust + ["--set", "certificate=/nowhere/own.pem"])
        let failed = try missing.transfer("add", Self.session, "https://\(self.server.tls)/private/film", "--wait")
        #expect(failed.status == 1 && failed.errors.contains("/nowhere/own.pem cannot be read"), "\(failed.errors)")
    }

    @Test("An answer that was cut is no file, however it is cut, and one that ends with its connection is one")
    func endings() throws {
        let extensions = "subjectAltName = IP:127.0.0.1\nextendedKeyUsage = serverAuth"
        let certificate = try self.server.authority.issue("/CN=127.0.0.1", extensions: extensions)
        let ending = try self.script("ending_server.py", [certificate])
        let ports = try #require(try ending.line()).split(separator: " ")
        let size = 400_000
        let whole = Data((0..<size).map { UInt8(ascii: "0") + UInt8($0 % 10) })
        let options = ["--trust", self.server.authority.certificate, "--set", "retry.first=0.05"]
        let agent = try RunningTransferAgent(nil, options)
        let ways = [
            ("http", "close", 1), ("http", "chunked", 2), ("http", "length", 2), ("https", "close", 1),
            ("https", "chunked", 2), ("https", "length", 2), ("https", "abrupt", 2),
        ]
        for (scheme, way, attempts) in ways {
            let url = "\(scheme)://127.0.0.1:\(ports[scheme == "http" ? 0 : 1])/\(way)/\(size)"
            let id = try agent.add(Self.session, url)
            let end = try agent.eventually("an end of \(url)", Self.session, id) { $0["endedAt"] is Int }
            #expect(end["state"] as? String == "finished", "\(end)")
            #expect(end["attempts"] as? Int == attempts, "\(url): \(end)")
            let name = "\(scheme)-\(way)"
            #expect(try agent.transfer("take", Self.session, id, self.path(name)).status == 0)
            #expect(self.content(at: self.path(name)) == whole, "\(url)")
        }
    }

    @Test("A network that NetworkManager calls metered holds a transfer, which goes on when it is another")
    func metered() throws {
        let content = TransferServer.content(600_000, seed: 25)
        try self.server.put("film", content)
        let machine = URL(fileURLWithPath: self.path("machine"))
        let bus = try LoginBus(root: machine, ["start", "come", "2"], service: "network")
        let agent = try RunningTransferAgent(nil, ["--set", "machine=\(machine.path)"], metered: "auto")
        #expect(try agent.transfer("session", Self.session, "--metered", "no").status == 0)
        try self.server.hold(after: 200_000)
        let id = try agent.add(Self.session, "http://\(self.server.plain)/files/film")
        try agent.eventually("some of it", Self.session, id) { $0["bytes"] as? Int ?? 0 >= 100_000 }
        try bus.tell("1")
        let held = try agent.eventually("a hold", Self.session, id) { $0["held"] as? String == "metered" }
        #expect(held["why"] as? String == "It waits for a network that is not metered.")
        #expect(held["attempts"] as? Int == 0)
        try self.server.release()
        try bus.tell("4")
        let end = try agent.eventually("the end", Self.session, id) { $0["endedAt"] is Int }
        #expect(end["state"] as? String == "finished", "\(end)")
        #expect(try self.server.requests().last?.status == 206)
    }
}
