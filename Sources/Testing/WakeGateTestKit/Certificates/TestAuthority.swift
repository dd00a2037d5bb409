package import Foundation

/// An authority of client certificates, made with openssl in a temporary folder. The last reference removes the folder.
package final class TestAuthority {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The validity period of a certificate.
    package enum Validity: Sendable {
        case now, yesterday, tomorrow
        /// Valid for a few seconds, enough for a few requests.
        case briefly
    }

    package let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-ca-\(UUID())")
    private var count = 0

    /// - Parameters:
    ///   - name: the common name. Several authorities may have the same name.
    ///   - parent: the authority that signs this authority's certificate; nil for a self-signed certificate.
    package init(_ name: String = "Test CA", by parent: TestAuthority? = nil) throws {
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        try self.write("", to: "database")
        try self.write(Self.configuration, to: "ca.cnf")
        let key = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)"]
        let use = ["-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self.path("ca.key")]
        if let parent {
            try self.openSSL(key + ["-keyout", self.path("ca.key"), "-out", self.path("ca.csr")])
            try parent.sign(self.path("ca.csr"), to: self.certificate, extensions: Self.authorityExtensions, .now)
        } else {
            try self.openSSL(key + use + ["-x509", "-days", "2", "-out", self.certificate])
        }
    }

    deinit { try? FileManager.default.removeItem(at: self.folder) }

    /// The path of the authority's own certificate, in PEM.
    package var certificate: String { self.path("ca.pem") }

    /// Issues a client certificate, and returns the path of the file with the certificate and its key.
    ///
    /// - `subject`: the argument of `openssl req -subj`.
    /// - `extensions`: lines of an OpenSSL configuration. They may include further sections.
    /// - `keySpecification`: the argument of `openssl req -newkey`.
    package func issue(
        _ subject: String,
        extensions: String = "extendedKeyUsage = clientAuth",
        _ validity: Validity = .now,
        keySpecification: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    ) throws -> String {
        self.count += 1
        let (key, request) = (self.path("\(self.count).key"), self.path("\(self.count).csr"))
        let certificate = self.path("\(self.count).crt")
        try self.openSSL(
            ["req", "-newkey"] + keySpecification + ["-nodes", "-subj", subject, "-keyout", key, "-out", request]
        )
        try self.sign(request, to: certificate, extensions: extensions, validity)
        let parts = try [certificate, key].map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
        try (parts[0] + parts[1]).write(to: self.folder.appendingPathComponent("\(self.count).pem"))
        return self.path("\(self.count).pem")
    }

    /// Revokes a certificate of this authority. `revocations` then lists it.
    package func revoke(_ file: String) throws {
        try self.openSSL(["ca", "-config", self.path("ca.cnf")] + self.own + ["-revoke", file])
    }

    /// Returns the revocation list in PEM.
    ///
    /// - Parameter isOverdue: true if the next list should already have been published.
    package func revocations(isOverdue: Bool = false) throws -> Data {
        let times =
            isOverdue ? ["-crl_lastupdate", Self.time(-7200), "-crl_nextupdate", Self.time(-3600)] : ["-crldays", "2"]
        let file = self.path("revocations.pem")
        try self.openSSL(["ca", "-config", self.path("ca.cnf"), "-gencrl", "-out", file] + self.own + times)
        return try Data(contentsOf: URL(fileURLWithPath: file))
    }

    /// Returns extension lines for a certificate: the extended key usage, the environments, and the topics.
    package static func extensions(topics: [(topic: String, kind: String)], environments: [Int] = []) -> String {
        var lines = ["extendedKeyUsage = clientAuth"]
        lines += environments.map { "1.2.840.113635.100.6.3.\($0) = ASN1:NULL" }
        guard !topics.isEmpty else { return lines.joined(separator: "\n") }
        lines += ["1.2.840.113635.100.6.3.6 = ASN1:SEQUENCE:topics", "[topics]"]
        for (index, entry) in topics.enumerated() {
            lines += ["\(index).0 = UTF8:\(entry.topic)", "\(index).1 = SEQUENCE:kind\(index)"]
        }
        for (index, entry) in topics.enumerated() { lines += ["[kind\(index)]", "0 = UTF8:\(entry.kind)"] }
        return lines.joined(separator: "\n")
    }

    // MARK: Implementation

    private static let authorityExtensions = """
        basicConstraints = critical,CA:TRUE
        keyUsage = critical,keyCertSign,cRLSign
        """

    private static let configuration = """
        [ca]
        default_ca = own
        [own]
        database = database
        new_certs_dir = .
        default_md = sha256
        policy = any
        unique_subject = no
        rand_serial = yes
        [any]
        commonName = optional
        organizationalUnitName = optional
        userId = optional
        """

    private var own: [String] { ["-keyfile", self.path("ca.key"), "-cert", self.certificate] }

    private func sign(_ request: String, to file: String, extensions: String, _ validity: Validity) throws {
        try self.write("[made]\n\(extensions)\n", to: "extensions.cnf")
        let (start, end) =
            switch validity {
            case .now: (Self.time(-3600), Self.time(86_400))
            case .yesterday: (Self.time(-86_400), Self.time(-3600))
            case .tomorrow: (Self.time(3600), Self.time(86_400))
            case .briefly: (Self.time(-3600), Self.time(8))
            }
        try self.openSSL(
            ["ca", "-config", self.path("ca.cnf"), "-batch", "-notext", "-preserveDN"] + self.own + [
                "-startdate", start, "-enddate", end, "-extfile", self.path("extensions.cnf"), "-extensions", "made",
                "-in", request, "-out", file,
            ]
        )
    }

    /// Returns the time `seconds` from now in the format of `openssl ca`.
    private static func time(_ seconds: Double) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "yyyyMMddHHmmss'Z'"
        return formatter.string(from: Date(timeIntervalSinceNow: seconds))
    }

    private func path(_ name: String) -> String { self.folder.appendingPathComponent(name).path }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: self.folder.appendingPathComponent(name))
    }

    private func openSSL(_ arguments: [String]) throws {
        let ended = try Children.run("openssl", arguments, in: self.folder)
        guard ended.status == 0 else {
            let words = arguments.joined(separator: " ")
            throw Failure(description: "openssl \(words): \(ended.errors)")
        }
    }
}
