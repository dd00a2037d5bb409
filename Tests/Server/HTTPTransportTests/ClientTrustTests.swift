import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit

@Suite("Whose client certificates are trusted", .timeLimit(.minutes(15)))
struct ClientTrustTests {
    private func bytes(_ file: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: file))) }

    private func certificate(_ file: String) throws -> ClientCertificate {
        try #require(ClientCertificate(pem: try self.bytes(file)))
    }

    private func trust(_ authorities: [TestAuthority], revocations: Data? = nil) throws -> ClientTrust {
        let pem = try authorities.flatMap { try self.bytes($0.certificate) }
        return try ClientTrust(authorities: (pem, "ca.pem"), revocations: revocations.map { (Array($0), "crl.pem") })
    }

    @Test("A certificate is good from its first moment to its last, when an authority has signed it for clients")
    func signed() throws {
        let (own, other) = (try TestAuthority(), try TestAuthority())
        let stranger = try TestAuthority("Somebody else")
        let trust = try self.trust([own])
        func fault(_ file: String) throws -> String? { trust.fault(of: try self.certificate(file)) }
        let subject = "/UID=com.example.app"
        #expect(try fault(own.issue(subject)) == nil)
        #expect(try fault(own.issue(subject, extensions: "keyUsage = digitalSignature")) == nil)
        #expect(try fault(own.issue(subject, .yesterday)) == "certificate has expired")
        #expect(try fault(own.issue(subject, .tomorrow)) == "certificate is not yet valid")
        // The other authority has the same name, and another key.
        #expect(try fault(other.issue(subject))?.isEmpty == false)
        #expect(try fault(stranger.issue(subject))?.isEmpty == false)
        #expect(
            try fault(own.issue(subject, extensions: "extendedKeyUsage = serverAuth"))
                == "unsuitable certificate purpose"
        )
        #expect(try fault(own.issue(subject, keySpecification: ["rsa:1024"])) == "EE certificate key too weak")
        #expect(try fault(own.issue(subject, keySpecification: ["rsa:2048"])) == nil)
        let both = try self.trust([own, other])
        #expect(both.fault(of: try self.certificate(other.issue(subject))) == nil)
    }

    @Test("An authority that another one has signed is trusted by itself, or with what the client sends along")
    func intermediate() throws {
        let root = try TestAuthority("Root")
        let intermediate = try TestAuthority("Intermediate", by: root)
        let certificate = try self.certificate(intermediate.issue("/UID=com.example.app"))
        #expect(try self.trust([intermediate]).fault(of: certificate) == nil)
        #expect(try self.trust([root, intermediate]).fault(of: certificate) == nil)
        #expect(try self.trust([root]).fault(of: certificate) == "unable to get local issuer certificate")
        // Nor is an authority by having a certificate.
        let client = try root.issue("/CN=Intermediate", extensions: "basicConstraints = CA:FALSE")
        let pem = try self.bytes(root.certificate) + self.bytes(client)
        let trust = try ClientTrust(authorities: (pem, "ca.pem"), revocations: nil)
        #expect(trust.fault(of: certificate) != nil)
    }

    @Test("What an authority has revoked is refused, also by a list that is overdue; another's are not concerned")
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

    @Test("An authority that was revoked takes its clients with it")
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

    @Test("Files that hold something else, or a stranger's list, are named")
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
        // Of the same name, with another key.
        let strange = Array(try TestAuthority().revocations())
        #expect(message(pem, strange)?.hasPrefix("crl.pem holds a list that no authority in ca.pem has signed") == true)
        #expect(message(pem, list + strange)?.hasPrefix("crl.pem holds a list that no authority") == true)
    }

    @Test("What a certificate says of its holder is read")
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
