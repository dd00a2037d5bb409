import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit

@Suite(.serialized, .timeLimit(.minutes(15)))
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
                asksForCertificate: true
            )
        }
    }

    /// Runs a program to its end.
    private func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        let pipe = Pipe.toChild()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = pipe
        try process.start()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }

    private func curl(_ server: TestServer, _ folder: String, _ options: [String]) throws -> (Int32, String) {
        let url = server.address.replacingOccurrences(of: "127.0.0.1", with: "https://localhost") + "/echo"
        let always = ["-s", "-S", "--max-time", "10", "--noproxy", "*", "--cacert", folder + "/ca.pem"]
        return try self.run("/usr/bin/curl", always + options + ["-d", "hello", "-w", " %{http_version}", url])
    }

    @Test(
        "A request in cleartext is told in cleartext that this is TLS, and the connection ends",
        arguments: [
            "GET / HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n", "POST /3/device/ab HTTP/1.1\r\nHost: h\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ]
    )
    func cleartext(request: String) throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        let peer = try ScriptedPeer(server.address)
        peer.send(request)
        let head = try #require(peer.text(through: "\r\n\r\n"))
        #expect(head.hasPrefix("HTTP/1.1 400 "))
        let count = try #require(
            head.split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }?.dropFirst(16)
        )
        let body = try #require(peer.text(through: "}"))
        #expect(body.hasPrefix(#"{"reason":"TLSRequired""#) && "\(body.utf8.count)" == count)
        #expect(peer.hasEnded())
    }

    @Test("What is neither TLS nor HTTP gets no words")
    func noise() throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        let peer = try ScriptedPeer(server.address)
        peer.send("HELLO THERE, AND MORE OF IT\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n") == nil)
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

    @Test(
        "TLS 1.2 is served with the ciphers that HTTP/2 allows, and with no other",
        arguments: [
            ("ECDHE-ECDSA-AES128-GCM-SHA256", true), ("ECDHE-ECDSA-CHACHA20-POLY1305", true),
            ("ECDHE-ECDSA-AES128-SHA256", false), ("ECDHE-ECDSA-AES256-SHA", false), ("AES128-GCM-SHA256", false),
            ("ECDHE-ECDSA-AES128-CCM", false),
        ]
    )
    func olderCiphers(cipher: String, isServed: Bool) throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        let options = ["--http2", "--tls-max", "1.2", "--ciphers", cipher]
        let (status, output) = try self.curl(server, certificates.folder, options)
        #expect((status == 0) == isServed && (output == "hello 2") == isServed, "\(status) \(output)")
    }

    /// What becomes of a connection on which a client of OpenSSL's own does one thing again and again.
    private func raw(_ server: TestServer, _ act: String, isOlder: Bool = false) throws -> String {
        let script = #"""
            import socket, sys
            sys.path.insert(0, sys.argv[1])
            from clients.raw_tls import RawTLS, outcome
            host, port = sys.argv[2].rsplit(":", 1)
            client = RawTLS(lambda: socket.create_connection((host, int(port))), is_older=sys.argv[3] == "older")
            client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            exec(sys.argv[4])
            print(outcome(client))
            """#
        let library = Checkout.root.appendingPathComponent("deploy/lib").path
        let arguments = ["python3", "-B", "-c", script, library, server.address, isOlder ? "older" : "newest", act]
        let (status, output) = try self.run("/usr/bin/env", arguments)
        #expect(status == 0, "\(output)")
        return output
    }

    @Test("New keys of TLS 1.3 come out of the budget of frames that carry no request", arguments: [0, 1])
    func keyUpdates(kind: Int) throws {
        let certificates = try Certificates()
        var limits = TransportLimits()
        limits.controlFramesBurst = 100
        limits.controlFramesPerSecond = 1
        let server = try TestServer(limits, tls: certificates.context())
        let few = "for _ in range(50): assert client.update_key(\(kind))\nclient.socket.shutdown(socket.SHUT_WR)"
        #expect(try self.raw(server, few) == "closed\n")
        #expect(server.times(.controlFramesPerSecond) == 0)
        let many = "for _ in range(5000):\n    if not client.update_key(\(kind)): break"
        let found = try self.raw(server, many)
        #expect(["GOAWAY 11\n", "closed\n"].contains(found))
        #expect(server.times(.controlFramesPerSecond) == 1)
        try self.expectServed(server, certificates.folder)
    }

    @Test("TLS 1.2 is not negotiated again")
    func renegotiation() throws {
        let certificates = try Certificates()
        let server = try TestServer(tls: certificates.context())
        #expect(try self.raw(server, "assert not client.renegotiate()", isOlder: true) == "closed\n")
        try self.expectServed(server, certificates.folder)
    }

    private func expectServed(_ server: TestServer, _ folder: String) throws {
        #expect(try self.curl(server, folder, ["--http2"]).1 == "hello 2")
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

    /// Asks for a path with a client certificate, or without one.
    private func get(_ path: String, _ server: TestServer, _ folder: String, _ certificate: String?) throws -> (
        status: Int32, output: String
    ) {
        let url = server.address.replacingOccurrences(of: "127.0.0.1", with: "https://localhost") + path
        let always = ["-s", "-S", "--max-time", "10", "--noproxy", "*", "--http2", "--cacert", folder + "/ca.pem"]
        return try self.run("/usr/bin/curl", always + (certificate.map { ["--cert", $0] } ?? []) + [url])
    }

    @Test("The handler hears of the certificate that a client shows, whoever signed it, and of none when none is shown")
    func clientCertificate() async throws {
        let certificates = try Certificates()
        let (folder, server) = (certificates.folder, try TestServer(tls: certificates.context()))
        let stranger = try TestAuthority()
        for (certificate, subject) in [
            (folder + "/provider.pem", "CN=Apple Push Services: com.example.app,UID=com.example.app"),
            (try stranger.issue("/UID=com.example.app"), "UID=com.example.app"), (nil, "none"),
            // A name that would write lines of its own into a log.
            (try stranger.issue("/CN=a\nb"), #"CN=a\0Ab"#),
        ] {
            let (status, output) = try self.get("/certificate", server, folder, certificate)
            #expect(status == 0)
            #expect(output == subject)
            if certificate != nil { await server.log.wait(for: "certificate \(subject)") }
            await server.log.wait(for: "connection closed")
        }
    }

    @Test("A certificate as large as may be is taken, a larger one is refused in the handshake, and others are served")
    func largeCertificate() throws {
        let certificates = try Certificates()
        let (folder, server) = (certificates.folder, try TestServer(tls: certificates.context()))
        let stranger = try TestAuthority()
        func certificate(_ bytes: Int) throws -> String {
            try stranger.issue("/CN=large", extensions: "nsComment = " + String(repeating: "x", count: bytes))
        }
        // What else is in a certificate takes some hundred bytes.
        let few = try self.get("/certificate", server, folder, certificate(TLSContext.clientChainBytesMax - 2_000))
        #expect(few.status == 0 && few.output == "CN=large", "\(few.output)")
        let many = try self.get("/certificate", server, folder, certificate(TLSContext.clientChainBytesMax))
        #expect(many.status != 0 && many.output != "CN=large", "\(many.output)")
        #expect(try self.get("/certificate", server, folder, nil).output == "none")
    }

    @Test("A connection whose certificate is not wanted is told so before any request of it, and the next is served")
    func unwantedCertificate() async throws {
        let certificates = try Certificates()
        let (folder, server) = (certificates.folder, try TestServer(tls: certificates.context()))
        let authority = try TestAuthority()
        let unwanted = try authority.issue("/" + ScriptedHandler.unwanted)
        let (status, _) = try self.get("/certificate", server, folder, unwanted)
        #expect(status != 0)
        await server.log.wait(for: "certificate \(ScriptedHandler.unwanted)")
        // It had carried no request; the handler hears of its end all the same.
        await server.log.wait(for: "connection closed")
        #expect(try self.get("/certificate", server, folder, nil).output == "none")
    }

    @Test("A session without a certificate is resumed, and one with a certificate never", arguments: ["1.2", "1.3"])
    func resumption(version: String) throws {
        let certificates = try Certificates()
        let (folder, server) = (certificates.folder, try TestServer(tls: certificates.context()))
        func isResumed(_ certificate: String?) throws -> Bool {
            let script = """
                import socket, ssl, sys
                host, port, ca, version, certificate = sys.argv[1:]
                context = ssl.create_default_context(cafile=ca)
                context.maximum_version = ssl.TLSVersion["TLSv" + version.replace(".", "_")]
                if certificate: context.load_cert_chain(certificate)
                def connect(session):
                    plain = socket.create_connection((host, int(port)), timeout=10)
                    secure = context.wrap_socket(plain, server_hostname="localhost", session=session)
                    with secure:
                        # What the server says first comes behind its ticket.
                        assert secure.recv(9)
                        return secure.session, secure.session_reused
                session, _ = connect(None)
                assert session.has_ticket
                print(connect(session)[1])
                """
            let address = server.address.split(separator: ":").map(String.init)
            let arguments = [address[0], address[1], folder + "/ca.pem", version, certificate ?? ""]
            let (status, output) = try self.run("/usr/bin/env", ["python3", "-c", script] + arguments)
            try #require(status == 0, "\(output)")
            return output == "True\n"
        }
        #expect(try isResumed(nil))
        #expect(try !isResumed(folder + "/provider.pem"))
    }

    @Test("Development certificates are made once, with keys for the owner alone")
    func developmentCertificates() throws {
        let certificates = try Certificates()
        let files = [
            "ca.pem", "ca.key", "server.pem", "server.key", "provider.p8", "provider.pub.pem", "provider.pem",
            "worker.pem",
        ]
        let paths = files.map { certificates.folder + "/" + $0 }
        let before = try paths.map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
        try DevelopmentCertificates.make(in: certificates.folder)
        #expect(try paths.map { try Data(contentsOf: URL(fileURLWithPath: $0)) } == before)
        let clients = paths[6...]
        for path in paths where path.hasSuffix(".key") || path.hasSuffix(".p8") || clients.contains(path) {
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
        #expect(before[4].starts(with: Data(("-----BEGIN " + "PRIVATE KEY-----").utf8)))
        let (status, output) = try self.run(
            "/usr/bin/openssl",
            ["verify", "-CAfile", paths[0], "-verify_hostname", "api.push.apple.com", paths[2]]
        )
        #expect(status == 0, "\(output)")
        for path in clients {
            let purpose = ["verify", "-CAfile", paths[0], "-purpose", "sslclient", path]
            let (status, output) = try self.run("/usr/bin/openssl", purpose)
            #expect(status == 0, "\(output)")
        }
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
