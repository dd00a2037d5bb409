import COpenSSL
import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit

@Suite(.serialized, .timeLimit(.minutes(15)))
struct TLSTests {
    /// The development certificates.
    private let files: TemporaryFolder
    private let tls: TLSContext
    private let server: TestServer

    private var folder: String { self.files.path }

    init() throws {
        let files = try TemporaryFolder()
        try DevelopmentCertificates.make(in: files.path)
        let tls = try TLSContext(
            certificateChainFile: files.path + "/server.pem",
            privateKeyFile: files.path + "/server.key",
            asksForCertificate: true
        )
        self.files = files
        self.tls = tls
        self.server = try TestServer(tls: tls)
    }

    private func curl(_ options: [String], _ server: TestServer? = nil) throws -> (status: Int32, output: String) {
        try self.request("/echo", options + ["-d", "hello", "-w", " %{http_version}"], server ?? self.server)
    }

    private func request(_ path: String, _ options: [String], _ server: TestServer) throws -> (
        status: Int32, output: String
    ) {
        let url = server.address.replacingOccurrences(of: "127.0.0.1", with: "https://localhost") + path
        let always = ["-s", "-S", "--max-time", "60", "--noproxy", "*", "--cacert", self.folder + "/ca.pem"]
        let ended = try Children.run("curl", always + options + [url])
        return (ended.status, ended.output)
    }

    @Test(
        "A request in cleartext gets an answer in cleartext that TLS is required, and the connection ends",
        arguments: [
            "GET / HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n", "POST /3/device/ab HTTP/1.1\r\nHost: h\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ]
    )
    func cleartext(request: String) throws {
        let peer = try ScriptedPeer(self.server.address)
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

    @Test("Bytes that are neither TLS nor HTTP get no answer")
    func noise() throws {
        let peer = try ScriptedPeer(self.server.address)
        peer.send("HELLO THERE, AND MORE OF IT\r\n\r\n")
        #expect(peer.text(through: "\r\n\r\n") == nil)
    }

    @Test("HTTP/2 is chosen when it is offered, and used when nothing is offered", arguments: [[], ["--no-alpn"]])
    func protocols(_ options: [String]) throws {
        let (status, output) = try self.curl(options + [options.isEmpty ? "--http2" : "--http2-prior-knowledge"])
        #expect(status == 0)
        #expect(output == "hello 2")
    }

    @Test(
        "TLS 1.2 is served only with the ciphers that HTTP/2 allows",
        arguments: [
            ("ECDHE-ECDSA-AES128-GCM-SHA256", true), ("ECDHE-ECDSA-CHACHA20-POLY1305", true),
            ("ECDHE-ECDSA-AES128-SHA256", false), ("ECDHE-ECDSA-AES256-SHA", false), ("AES128-GCM-SHA256", false),
            ("ECDHE-ECDSA-AES128-CCM", false),
        ]
    )
    func olderCiphers(cipher: String, isServed: Bool) throws {
        let options = ["--http2", "--tls-max", "1.2", "--ciphers", cipher]
        let (status, output) = try self.curl(options)
        #expect((status == 0) == isServed && (output == "hello 2") == isServed, "\(status) \(output)")
    }

    /// Returns the end of a connection on which an OpenSSL client repeats one action.
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
        let arguments = ["-B", "-c", script, library, server.address, isOlder ? "older" : "newest", act]
        let ended = try Children.run("python3", arguments)
        #expect(ended.status == 0, "\(ended.errors)")
        return ended.output
    }

    @Test("Key updates of TLS 1.3 use the budget of frames without a request", arguments: [0, 1])
    func keyUpdates(kind: Int) throws {
        let limits = TransportLimits {
            $0.controlFramesBurst = 100
            $0.controlFramesPerSecond = 1
        }
        let server = try TestServer(limits, tls: self.tls)
        let few = "for _ in range(50): assert client.update_key(\(kind))\nclient.socket.shutdown(socket.SHUT_WR)"
        #expect(try self.raw(server, few) == "closed\n")
        #expect(server.times(.controlFramesPerSecond) == 0)
        let many = "for _ in range(5000):\n    if not client.update_key(\(kind)): break"
        let found = try self.raw(server, many)
        #expect(["GOAWAY 11\n", "closed\n"].contains(found))
        #expect(server.times(.controlFramesPerSecond) == 1)
        try self.expectServed(server)
    }

    @Test("TLS 1.2 is not renegotiated")
    func renegotiation() throws {
        #expect(try self.raw(self.server, "assert not client.renegotiate()", isOlder: true) == "closed\n")
        try self.expectServed(self.server)
    }

    private func expectServed(_ server: TestServer) throws {
        #expect(try self.curl(["--http2"], server).1 == "hello 2")
    }

    @Test("A client that offers only HTTP/1.1, or speaks it without an offer, is refused, and others are served")
    func onlyHTTP1() throws {
        #expect(try self.curl(["--http1.1"]).status == 35)
        #expect(try self.curl(["--no-alpn", "--http1.1"]).status != 0)
        #expect(try self.curl(["--http2"]).status == 0)
    }

    /// Requests the subject of the connection's certificate, with a certificate or without one.
    private func get(_ certificate: String?) throws -> (status: Int32, output: String) {
        try self.request("/certificate", ["--http2"] + (certificate.map { ["--cert", $0] } ?? []), self.server)
    }

    @Test("The handler receives the client's certificate, even from an unknown authority, or none")
    func clientCertificate() async throws {
        let unknownPeer = try TestAuthority()
        for (certificate, subject) in [
            (self.folder + "/provider.pem", "CN=Apple Push Services: com.example.app,UID=com.example.app"),
            (try unknownPeer.issue("/UID=com.example.app"), "UID=com.example.app"), (nil, "none"),
            // A name with a line break, which could forge lines of a log.
            (try unknownPeer.issue("/CN=a\nb"), #"CN=a\0Ab"#),
        ] {
            let (status, output) = try self.get(certificate)
            #expect(status == 0)
            #expect(output == subject)
            if certificate != nil { await self.server.log.wait(for: "certificate \(subject)") }
            await self.server.log.wait(for: "connection closed")
        }
    }

    @Test("A client certificate is accepted up to the maximum size, and a larger one is refused in the handshake")
    func largeCertificate() throws {
        let unknownPeer = try TestAuthority()
        func certificate(_ bytes: Int) throws -> String {
            try unknownPeer.issue("/CN=large", extensions: "nsComment = " + String(repeating: "x", count: bytes))
        }
        // The rest of a certificate takes some hundred bytes.
        let few = try self.get(certificate(TLSContext.clientChainBytesMax - 2_000))
        #expect(few.status == 0 && few.output == "CN=large", "\(few.output)")
        let many = try self.get(certificate(TLSContext.clientChainBytesMax))
        #expect(many.status != 0 && many.output != "CN=large", "\(many.output)")
        #expect(try self.get(nil).output == "none")
    }

    @Test("A connection with an unwanted certificate is refused before its first request, and the next one is served")
    func unwantedCertificate() async throws {
        let authority = try TestAuthority()
        let unwanted = try authority.issue("/" + ScriptedHandler.unwanted)
        let (status, _) = try self.get(unwanted)
        #expect(status != 0)
        await self.server.log.wait(for: "certificate \(ScriptedHandler.unwanted)")
        // It had carried no request; the handler is notified of its end nevertheless.
        await self.server.log.wait(for: "connection closed")
        #expect(try self.get(nil).output == "none")
    }

    @Test("A session without a certificate is resumed, and one with a certificate never", arguments: ["1.2", "1.3"])
    func resumption(version: String) throws {
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
            let address = self.server.address.split(separator: ":").map(String.init)
            let arguments = [address[0], address[1], self.folder + "/ca.pem", version, certificate ?? ""]
            let ended = try Children.run("python3", ["-c", script] + arguments)
            try #require(ended.status == 0, "\(ended.errors)")
            return ended.output == "True\n"
        }
        #expect(try isResumed(nil))
        #expect(try !isResumed(self.folder + "/provider.pem"))
    }

    @Test("Development certificates are created once, with keys for the owner only")
    func developmentCertificates() throws {
        let files = [
            "ca.pem", "ca.key", "server.pem", "server.key", "provider.p8", "provider.pub.pem", "provider.pem",
            "worker.pem",
        ]
        let paths = files.map { self.folder + "/" + $0 }
        let before = try paths.map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
        try DevelopmentCertificates.make(in: self.folder)
        #expect(try paths.map { try Data(contentsOf: URL(fileURLWithPath: $0)) } == before)
        let clients = paths[6...]
        for path in paths where path.hasSuffix(".key") || path.hasSuffix(".p8") || clients.contains(path) {
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
        #expect(before[4].starts(with: Data(("-----BEGIN " + "PRIVATE KEY-----").utf8)))
        let verified = ["-verify_hostname", "api.push.apple.com", paths[2]]
        for uses in [verified] + clients.map({ ["-purpose", "sslclient", $0] }) {
            let ended = try Children.run("openssl", ["verify", "-CAfile", paths[0]] + uses)
            #expect(ended.status == 0, "\(ended.errors)")
        }
    }

    @Test("A missing certificate is named")
    func missingCertificate() {
        let error = #expect(throws: TransportError.self) {
            try TLSContext(certificateChainFile: "/nowhere/server.pem", privateKeyFile: "/nowhere/server.key")
        }
        #expect(error?.code == .certificate)
        #expect(error?.message.contains("/nowhere/server.pem") == true)
    }
}

@Suite("Trust in client certificates", .timeLimit(.minutes(15)))
struct ClientTrustTests {
    private func bytes(_ file: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: file))) }

    private func certificate(_ file: String) throws -> ClientCertificate {
        try #require(ClientCertificate(pem: try self.bytes(file)))
    }

    private func trust(_ authorities: [TestAuthority], revocations: Data? = nil) throws -> ClientTrust {
        let pem = try authorities.flatMap { try self.bytes($0.certificate) }
        return try ClientTrust(authorities: (pem, "ca.pem"), revocations: revocations.map { (Array($0), "crl.pem") })
    }

    @Test("A certificate signed by an authority for clients is valid from its first to its last second")
    func signed() throws {
        let (own, other) = (try TestAuthority(), try TestAuthority())
        let unknownPeer = try TestAuthority("Another Authority")
        let trust = try self.trust([own])
        func fault(_ file: String) throws -> String? { trust.fault(of: try self.certificate(file)) }
        let subject = "/UID=com.example.app"
        #expect(try fault(own.issue(subject)) == nil)
        #expect(try fault(own.issue(subject, extensions: "keyUsage = digitalSignature")) == nil)
        #expect(try fault(own.issue(subject, .yesterday)) == "certificate has expired")
        #expect(try fault(own.issue(subject, .tomorrow)) == "certificate is not yet valid")
        // The other authority has the same name and another key.
        #expect(try fault(other.issue(subject))?.isEmpty == false)
        #expect(try fault(unknownPeer.issue(subject))?.isEmpty == false)
        #expect(
            try fault(own.issue(subject, extensions: "extendedKeyUsage = serverAuth"))
                == "unsuitable certificate purpose"
        )
        #expect(try fault(own.issue(subject, keySpecification: ["rsa:1024"])) == "EE certificate key too weak")
        #expect(try fault(own.issue(subject, keySpecification: ["rsa:2048"])) == nil)
        let both = try self.trust([own, other])
        #expect(both.fault(of: try self.certificate(other.issue(subject))) == nil)
    }

    @Test("An intermediate authority is trusted if it is listed, or if the client sends its certificate along")
    func intermediate() throws {
        let root = try TestAuthority("Root")
        let intermediate = try TestAuthority("Intermediate", by: root)
        let certificate = try self.certificate(intermediate.issue("/UID=com.example.app"))
        #expect(try self.trust([intermediate]).fault(of: certificate) == nil)
        #expect(try self.trust([root, intermediate]).fault(of: certificate) == nil)
        #expect(try self.trust([root]).fault(of: certificate) == "unable to get local issuer certificate")
        // A certificate alone does not make its holder an authority.
        let client = try root.issue("/CN=Intermediate", extensions: "basicConstraints = CA:FALSE")
        let pem = try self.bytes(root.certificate) + self.bytes(client)
        let trust = try ClientTrust(authorities: (pem, "ca.pem"), revocations: nil)
        #expect(trust.fault(of: certificate) != nil)
    }

    @Test("A revoked certificate is refused, also by an overdue list; other authorities are not affected")
    func revoked() throws {
        let (own, other) = (try TestAuthority("One"), try TestAuthority("Two"))
        let files = try [own.issue("/UID=a"), own.issue("/UID=b"), other.issue("/UID=c")]
        try own.revoke(files[0])
        for isOverdue in [false, true] {
            let trust = try self.trust([own, other], revocations: own.revocations(isOverdue: isOverdue))
            #expect(trust.isOverdue == isOverdue)
            let faults = try files.map { trust.fault(of: try self.certificate($0)) }
            #expect(faults == ["certificate revoked", nil, nil])
        }
        try other.revoke(files[2])
        let lists = try own.revocations() + other.revocations()
        let trust = try self.trust([own, other], revocations: lists)
        #expect(try files.map { trust.fault(of: try self.certificate($0)) != nil } == [true, false, true])
    }

    @Test("A revoked authority invalidates its clients")
    func revokedAuthority() throws {
        let root = try TestAuthority("Root")
        let intermediate = try TestAuthority("Intermediate", by: root)
        let certificate = try self.certificate(intermediate.issue("/UID=com.example.app"))
        let before = try self.trust([root, intermediate], revocations: root.revocations() + intermediate.revocations())
        #expect(before.fault(of: certificate) == nil)
        try root.revoke(intermediate.certificate)
        let trust = try self.trust([root, intermediate], revocations: root.revocations())
        #expect(trust.fault(of: certificate) == "certificate revoked")
    }

    @Test("Files with other content, or with the list of an unknown authority, are named")
    func files() throws {
        let own = try TestAuthority()
        let pem = try self.bytes(own.certificate)
        func message(_ authorities: [UInt8], _ revocations: [UInt8]?) -> String? {
            let error = #expect(throws: TransportError.self) {
                _ = try ClientTrust(
                    authorities: (authorities, "ca.pem"),
                    revocations: revocations.map { ($0, "crl.pem") }
                )
            }
            return error?.message
        }
        let list = Array(try own.revocations())
        for text in [[], Array("nothing".utf8), list, pem.dropLast(100) + Array("-----END CERTIFICATE-----\n".utf8)] {
            #expect(message(Array(text), nil)?.hasPrefix("ca.pem holds no certificate") == true)
        }
        for text in [[], Array("nothing".utf8), pem] {
            #expect(message(pem, text)?.hasPrefix("crl.pem holds no list") == true)
        }
        // The same name with another key.
        let strange = Array(try TestAuthority().revocations())
        #expect(message(pem, strange)?.hasPrefix("crl.pem holds a list that no authority in ca.pem has signed") == true)
        #expect(message(pem, list + strange)?.hasPrefix("crl.pem holds a list that no authority") == true)
    }

    @Test("Fields of a certificate are read")
    func contents() throws {
        let own = try TestAuthority()
        let topics = [(topic: "com.example.app", kind: "app")]
        let extensions = TestAuthority.extensions(topics: topics, environments: [1])
        let file = try own.issue("/OU=one/OU=worker/UID=a/UID=b/CN=c", extensions: extensions)
        let certificate = try self.certificate(file)
        #expect(certificate.organizationalUnits == ["one", "worker"])
        #expect(certificate.userIDs == ["a", "b"])
        #expect(certificate.value(ofExtension: "1.2.840.113635.100.6.3.1") == [0x05, 0x00])
        #expect(certificate.value(ofExtension: "1.2.840.113635.100.6.3.2") == nil)
        #expect(certificate.value(ofExtension: "1.2.840.113635.100.6.3.6")?.starts(with: [0x30, 0x18, 0x0C]) == true)
        let seconds = Double(certificate.expiresAt) / 1000 - Date(timeIntervalSinceNow: 0).timeIntervalSince1970
        #expect((86_000...86_401).contains(seconds))
    }
}

/// The client's end of a TLS connection, without its socket: it speaks HTTP/2 and accepts any certificate.
@safe
final class TLSClient {
    private let context: OpaquePointer
    private let ssl: OpaquePointer
    /// The bytes received from the server, and those to be sent to it; `ssl` owns both.
    private let input: OpaquePointer
    private let output: OpaquePointer
    /// The bytes to be sent after the handshake.
    private var waiting: [UInt8] = []

    init?() {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()), let ssl = unsafe SSL_new(context),
            let input = unsafe BIO_new(BIO_s_mem()), let output = unsafe BIO_new(BIO_s_mem())
        else { return nil }
        unsafe SSL_set_bio(ssl, input, output)
        unsafe SSL_set_connect_state(ssl)
        unsafe SSL_set_alpn_protos(ssl, [2, 0x68, 0x32], 3)
        unsafe (self.context, self.ssl) = unsafe (context, ssl)
        unsafe (self.input, self.output) = unsafe (input, output)
    }

    deinit {
        unsafe SSL_free(self.ssl)
        unsafe SSL_CTX_free(self.context)
    }

    /// Returns the bytes to be sent to the server for `bytes` and the handshake.
    func send(_ bytes: [UInt8]) -> [UInt8] {
        self.waiting += bytes
        if unsafe SSL_do_handshake(self.ssl) == 1, !self.waiting.isEmpty {
            unsafe SSL_write(self.ssl, self.waiting, Int32(self.waiting.count))
            self.waiting = []
        }
        // A failure shows as missing bytes.
        ERR_clear_error()
        return unsafe Self.all { unsafe BIO_read(self.output, $0.baseAddress, Int32($0.count)) }
    }

    /// Decrypts bytes from the server.
    func receive(_ bytes: [UInt8]) -> [UInt8] {
        unsafe BIO_write(self.input, bytes, Int32(bytes.count))
        _ = unsafe SSL_do_handshake(self.ssl)
        defer { ERR_clear_error() }
        return unsafe Self.all { unsafe SSL_read(self.ssl, $0.baseAddress, Int32($0.count)) }
    }

    private static func all(_ read: (UnsafeMutableRawBufferPointer) -> Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe room.withUnsafeMutableBytes { unsafe read($0) }
            guard count > 0 else { return bytes }
            bytes += room[..<Int(count)]
        }
    }
}
