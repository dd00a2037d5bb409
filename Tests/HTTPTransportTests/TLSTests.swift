import Foundation
import HTTPTransport
import Testing

@Suite(.serialized, .timeLimit(.minutes(2)))
struct TLSTests {
    /// A folder with the development certificates, removed at the end.
    private final class Certificates {
        let folder: String

        init() throws {
            self.folder = NSTemporaryDirectory() + "wakegate-tls-" + UUID().uuidString
            try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: false)
            try DevelopmentCertificates.make(in: self.folder)
        }

        deinit { try? FileManager.default.removeItem(atPath: self.folder) }

        func context() throws(TransportError) -> TLSContext {
            try TLSContext(
                certificateChainFile: self.folder + "/server.pem",
                privateKeyFile: self.folder + "/server.key",
                clientCAFile: self.folder + "/ca.pem"
            )
        }
    }

    /// Runs a program to its end.
    private func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }

    private func curl(_ server: TestServer, _ folder: String, _ options: [String]) throws -> (Int32, String) {
        let url = server.address.replacingOccurrences(of: "127.0.0.1", with: "https://localhost") + "/echo"
        let always = ["-s", "-S", "--max-time", "10", "--noproxy", "*", "--cacert", folder + "/ca.pem"]
        return try self.run("/usr/bin/curl", always + options + ["-d", "hello", "-w", " %{http_version}", url])
    }

    @Test("HTTP/2 is chosen when it is offered, and spoken when nothing is", arguments: [[], ["--no-alpn"]])
    func protocols(_ options: [String]) throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        let (status, output) = try self.curl(
            server,
            certificates.folder,
            options + [options.isEmpty ? "--http2" : "--http2-prior-knowledge"]
        )
        #expect(status == 0)
        #expect(output == "hello 2")
    }

    @Test("TLS 1.2 is served")
    func olderTLS() throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        let (status, output) = try self.curl(server, certificates.folder, ["--http2", "--tls-max", "1.2"])
        #expect(status == 0)
        #expect(output == "hello 2")
    }

    @Test("A client that offers HTTP/1.1 alone is refused, and others are served")
    func onlyHTTP1() throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        #expect(try self.curl(server, certificates.folder, ["--http1.1"]).0 == 35)
        #expect(try self.curl(server, certificates.folder, ["--http2"]).0 == 0)
    }

    @Test("HTTP/1.1 within TLS, and bytes that are not TLS, end the connection")
    func notHTTP2() throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        let (status, _) = try self.curl(server, certificates.folder, ["--no-alpn", "--http1.1"])
        #expect(status != 0)
        let peer = try ScriptedPeer(server.address)
        peer.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(peer.hasEnded())
        #expect(try self.curl(server, certificates.folder, ["--http2"]).0 == 0)
    }

    @Test("A client certificate of a trusted authority is taken, one of another is not")
    func clientCertificate() throws {
        let certificates = try Certificates()
        let others = try Certificates()
        let server = try TestServer(tls: certificates.context())
        let own = ["--http2", "--cert", others.folder + "/server.pem", "--key", others.folder + "/server.key"]
        #expect(try self.curl(server, certificates.folder, own).0 != 0)
        #expect(try self.curl(server, certificates.folder, ["--http2"]).0 == 0)
    }

    @Test("The handler sees the client certificate that was verified, and none when none was shown")
    func goodClientCertificate() throws {
        let certificates = try Certificates()
        let (folder, server) = (certificates.folder, try TestServer(tls: certificates.context()))
        let (key, csr, pem) = (folder + "/client.key", folder + "/client.csr", folder + "/client.pem")
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=com.example.app"]
        let ca = ["-CA", folder + "/ca.pem", "-CAkey", folder + "/ca.key", "-set_serial", "7", "-days", "2"]
        for arguments in [
            ["req"] + curve + ["-keyout", key, "-out", csr], ["x509", "-req", "-in", csr, "-out", pem] + ca,
            ["x509", "-in", pem, "-outform", "DER", "-out", folder + "/client.der"],
        ] {
            let (status, output) = try self.run("/usr/bin/openssl", arguments)
            try #require(status == 0, "\(output)")
        }
        let url = server.address.replacingOccurrences(of: "127.0.0.1", with: "https://localhost") + "/certificate"
        let always = ["-s", "-S", "--max-time", "10", "--noproxy", "*", "--http2", "--cacert", folder + "/ca.pem"]
        for (options, wanted) in [
            (["--cert", pem, "--key", key], try Data(contentsOf: URL(fileURLWithPath: folder + "/client.der"))),
            ([], Data()),
        ] {
            let seen = folder + "/seen.der"
            #expect(FileManager.default.createFile(atPath: seen, contents: Data("stale".utf8)))
            let (status, output) = try self.run(
                "/usr/bin/curl",
                always + options + ["-w", "%{http_code}", "-o", seen, url]
            )
            #expect(status == 0 && output == "200", "\(output)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: seen)) == wanted)
        }
    }

    @Test("Development certificates are made once, with keys for the owner alone")
    func developmentCertificates() throws {
        let certificates = try Certificates()
        let files = ["ca.pem", "ca.key", "server.pem", "server.key", "provider.p8", "provider.pub.pem"]
        let paths = files.map { certificates.folder + "/" + $0 }
        let before = try paths.map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
        try DevelopmentCertificates.make(in: certificates.folder)
        #expect(try paths.map { try Data(contentsOf: URL(fileURLWithPath: $0)) } == before)
        for path in paths where path.hasSuffix(".key") || path.hasSuffix(".p8") {
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
        #expect(before[4].starts(with: Data(("-----BEGIN " + "PRIVATE KEY-----").utf8)))
        let (status, output) = try self.run(
            "/usr/bin/openssl",
            ["verify", "-CAfile", paths[0], "-verify_hostname", "api.push.apple.com", paths[2]]
        )
        #expect(status == 0, "\(output)")
    }

    @Test("A certificate that is not there is named")
    func missingCertificate() {
        let error = #expect(throws: TransportError.self) {
            try TLSContext(certificateChainFile: "/nowhere/server.pem", privateKeyFile: "/nowhere/server.key")
        }
        #expect(error?.code == .certificate)
        #expect(error?.message.contains("/nowhere/server.pem") == true)
    }
}
