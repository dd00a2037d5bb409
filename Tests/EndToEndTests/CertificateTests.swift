import Foundation
import Testing
import WakeGateTestKit

@Suite("Providers and their client certificates", .serialized, .timeLimit(.minutes(15)))
struct CertificateTests {
    private static let topic = "com.example.certified"
    private static let subject = "/CN=Apple Push Services: \(topic)/UID=\(topic)"
    private let device = String(repeating: "ce", count: 32)
    private let authority: TestAuthority

    init() throws { self.authority = try TestAuthority() }

    private func gateway(_ settings: String...) throws -> RunningGateway {
        let always = ["tls.clientCA=\(self.authority.certificate)"]
        return try RunningGateway((always + settings).flatMap { ["--set", $0] })
    }

    /// Returns the status and the reason of a push over a connection with or without a client certificate.
    private func push(
        _ gateway: RunningGateway,
        _ certificate: String?,
        topic: String? = nil,
        type: String = "background",
        token: String? = nil,
        device: String? = nil
    ) throws -> String {
        var options = certificate.map { ["--cert", $0] } ?? []
        if let topic { options += ["-H", "apns-topic: \(topic)"] }
        if let token { options += ["-H", "authorization: bearer \(token)"] }
        options += ["-H", "apns-push-type: \(type)", "--data-binary", RunningGateway.payload]
        let url = "https://\(gateway.edge)/3/device/\(device ?? self.device)"
        let answer = try Answer.curl(gateway.curlOptions + options + [url])
        return ["\(answer.status)", answer.reason].compactMap { $0 }.joined(separator: " ")
    }

    /// Returns the output of a connection with a client certificate that pushes at once, up to its end.
    private func heard(_ gateway: RunningGateway, _ certificate: String) throws -> String {
        let ended = try self.connection(gateway, certificate).finish()
        #expect(ended.status == 0, "\(ended.errors)")
        return ended.output
    }

    private func connection(_ gateway: RunningGateway, _ certificate: String) throws -> ChildProcess {
        try gateway.hearing(certificate, "/3/device/\(self.device)")
    }

    private static let badCertificate = "settings\ngoaway 0 0 {\"reason\":\"BadCertificate\"}\n"
    private static let badEnvironment = "settings\ngoaway 0 0 {\"reason\":\"BadCertificateEnvironment\"}\n"

    @Test("A certificate pushes for the app of its subject without naming it, and nothing else")
    func subject() throws {
        let gateway = try self.gateway()
        let good = try self.authority.issue(Self.subject)
        #expect(try self.push(gateway, good) == "200")
        #expect(try gateway.stats().integer("pushes", "accepted") == 1)
        let devices = ["voip", "complication"].map { String(repeating: $0 == "voip" ? "01" : "02", count: 32) }
        #expect(try self.push(gateway, good, topic: "\(Self.topic).voip", type: "voip", device: devices[0]) == "200")
        #expect(
            try self.push(gateway, good, topic: "\(Self.topic).complication", type: "complication", device: devices[1])
                == "200"
        )
        #expect(try self.push(gateway, good, topic: "com.example.other") == "400 TopicDisallowed")
        #expect(try self.push(gateway, good, topic: "\(Self.topic).pushkit.fileprovider") == "400 TopicDisallowed")
        #expect(try self.push(gateway, good, topic: "a b") == "400 BadTopic")
        let devicesOfTopic = try gateway.admin("/v1/devices/\(self.device)")
        #expect(devicesOfTopic.value("topic") as? String == Self.topic)
        // The push without a topic counts for the certificate's topic.
        #expect(try gateway.admin("/v1/stats/topics/\(Self.topic)").integer("pushes", "accepted") == 1)
        // Types that require a token are refused with a certificate, whatever token accompanies it.
        for type in ["location", "liveactivity"] {
            #expect(try self.push(gateway, good, topic: Self.topic, type: type) == "403 MissingProviderToken")
            #expect(try self.push(gateway, good, type: type, token: "a.b.c") == "403 MissingProviderToken")
        }
        // With a certificate, the token is ignored.
        #expect(try self.push(gateway, good, token: "a.b.c") == "200")
    }

    @Test("With keys and authorities a provider shows a token or a certificate")
    func both() throws {
        let asking = try AskingGateway(["--set", "tls.clientCA=\(self.authority.certificate)"])
        let gateway = asking.gateway
        try asking.useKey("KEY0000001", topic: Self.topic)
        #expect(try self.push(gateway, self.authority.issue(Self.subject)) == "200")
        #expect(try self.push(gateway, nil, topic: Self.topic) == "403 MissingProviderToken")
        withExtendedLifetime(asking) {}
    }

    @Test("A bad certificate gets SETTINGS and GOAWAY, and its requests get no answer; the log says why")
    func bad() throws {
        let revoked = try self.authority.issue(Self.subject)
        try self.authority.revoke(revoked)
        let list = self.authority.folder.appendingPathComponent("list.pem")
        try self.authority.revocations().write(to: list)
        let gateway = try self.gateway("tls.clientCRL=\(list.path)")
        let unknownPeer = try TestAuthority("Unknown")
        let broken = "1.2.840.113635.100.6.3.6 = ASN1:UTF8:\(Self.topic)"
        let cases = [
            (try self.authority.issue(Self.subject, .yesterday), "certificate has expired"),
            (try self.authority.issue(Self.subject, .tomorrow), "certificate is not yet valid"),
            (try unknownPeer.issue(Self.subject), "unable to get local issuer certificate"),
            (revoked, "certificate revoked"),
            (
                try self.authority.issue(Self.subject, extensions: "extendedKeyUsage = serverAuth"),
                "unsuitable certificate purpose"
            ), (try self.authority.issue("/CN=nothing"), "it names no topic"),
            (try self.authority.issue("/UID=no topic"), "the UID of its subject is not a topic"),
            (try self.authority.issue(Self.subject, extensions: broken), "is not a list of topics"),
        ]
        for (certificate, cause) in cases {
            #expect(try self.heard(gateway, certificate) == Self.badCertificate, "\(cause)")
        }
        #expect(try self.push(gateway, self.authority.issue(Self.subject)) == "200")
        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "accepted") == 1)
        try gateway.eventually("a line in the log") {
            gateway.process.errors.contains(#"clientCertificate cause="certificate has expired""#)
        }
    }

    @Test("Only a certificate of the other environment is refused by name")
    func environment() throws {
        func issue(_ environments: [Int]) throws -> String {
            let extensions = TestAuthority.extensions(topics: [], environments: environments)
            return try self.authority.issue(Self.subject, extensions: extensions)
        }
        let (neither, development) = (try issue([]), try issue([1]))
        let (production, both) = (try issue([2]), try issue([1, 2]))
        for (setting, bad) in [("\"development\"", production), ("\"production\"", development), ("null", "")] {
            let gateway = try self.gateway("environment=\(setting)")
            for certificate in [neither, development, production, both] {
                if certificate == bad {
                    #expect(try self.heard(gateway, certificate) == Self.badEnvironment, "\(setting)")
                } else {
                    #expect(try self.push(gateway, certificate) == "200", "\(setting)")
                }
            }
        }
    }

    @Test("A revocation ends open connections, and an invalid list changes nothing until a valid one replaces it")
    func revocation() throws {
        let list = self.authority.folder.appendingPathComponent("list.pem")
        try self.authority.revocations().write(to: list)
        let gateway = try self.gateway("tls.clientCRL=\(list.path)")
        let files = try (0..<2).map { _ in try self.authority.issue(Self.subject) }
        let connections = try files.map { try self.connection(gateway, $0) }
        for connection in connections {
            #expect(try connection.line() == "settings")
            #expect(try connection.line() == "answer 200")
        }
        try self.authority.revoke(files[0])
        // Moved into place, as a tool would do it.
        let next = self.authority.folder.appendingPathComponent("next.pem").path
        try self.authority.revocations().write(to: URL(fileURLWithPath: next))
        #expect(unsafe rename(next, list.path) == 0)
        #expect(try connections[0].line() == "goaway 0 1 {\"reason\":\"BadCertificate\"}")
        #expect(try self.heard(gateway, files[0]) == Self.badCertificate)
        #expect(try self.push(gateway, files[1]) == "200")

        try Data("nothing".utf8).write(to: list)
        try gateway.eventually("a line in the log") { gateway.process.errors.contains("What was read before holds.") }
        #expect(try self.heard(gateway, files[0]) == Self.badCertificate)
        #expect(try self.push(gateway, files[1]) == "200")
        try self.authority.revoke(files[1])
        try self.authority.revocations().write(to: list)
        #expect(try connections[1].line() == "goaway 0 1 {\"reason\":\"BadCertificate\"}")
    }

    @Test("A certificate that expires ends the connections that showed it")
    func expiry() throws {
        let gateway = try self.gateway()
        let connection = try self.connection(gateway, self.authority.issue(Self.subject, .briefly))
        #expect(try connection.line() == "settings")
        #expect(try connection.line() == "answer 200")
        #expect(try connection.line() == "goaway 0 1 {\"reason\":\"BadCertificate\"}")
    }

    @Test("A new authority in the file replaces the old one")
    func authorities() throws {
        let other = try TestAuthority("Next")
        let gateway = try self.gateway()
        let (old, new) = (try self.authority.issue(Self.subject), try other.issue(Self.subject))
        #expect(try self.push(gateway, old) == "200")
        #expect(try self.heard(gateway, new) == Self.badCertificate)
        let open = try self.connection(gateway, old)
        #expect(try open.line() == "settings")
        try Data(contentsOf: URL(fileURLWithPath: other.certificate)).write(
            to: URL(fileURLWithPath: self.authority.certificate)
        )
        #expect(try open.line() == "answer 200")
        #expect(try open.line() == "goaway 0 1 {\"reason\":\"BadCertificate\"}")
        #expect(try self.push(gateway, new) == "200")
        #expect(try self.heard(gateway, old) == Self.badCertificate)
    }

    @Test("The certificates that dev makes work with its own commands, in one file or in two")
    func development() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start(["--set", "tls.clientCA=.wakegate/ca.pem"])
        // The commands are written after the ready line.
        try gateway.eventually("commands") {
            gateway.process.errors.contains("--cert \(folder.state.path)/provider.pem")
        }
        func push(_ options: [String]) throws -> ChildProcess.Ended {
            let words = ["push", self.device, "--topic", "com.example.app"] + options
            return try ChildProcess.wakegate(words, folder: folder.folder)
        }
        let file = ".wakegate/provider.pem"
        #expect(try push([]).output.hasPrefix("403 MissingProviderToken"))
        #expect(try push(["--cert", file]).output.hasPrefix("200 scheduled"))
        #expect(try push(["--cert", file, "--key", file]).output.hasPrefix("200 coalesced"))
        let worker = ["worker", "--topic", "com.example.app", "--cert", file, "--", "cat"]
        let subscribing = try ChildProcess.wakegate(worker, folder: folder.folder)
        #expect(subscribing.errors.contains("The client certificate is a provider's"), "\(subscribing.errors)")
        #expect(try push(["--cert", ".wakegate/worker.pem"]).output.hasPrefix("403 Forbidden"))
    }
}
