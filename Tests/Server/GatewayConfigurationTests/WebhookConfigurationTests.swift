import Engine
import Foundation
import Gateway
import Policy
import Testing
import Wire

@Suite("The configuration of webhooks")
struct WebhookConfigurationTests {
    /// Returns the faults of a webhook, without the name of its section.
    private static func faults(_ members: String) throws -> [String] {
        var configuration = try load("{topics: {t: {webhook: \(members)}}}")
        configuration.edge = .off
        return configuration.faults().map { "\($0)".replacingOccurrences(of: "topics.t.webhook", with: "") }
    }

    @Test("Every key is read, from the file and from the command line")
    func keys() throws {
        let text = """
            {topics: {"a.b": {policy: {maxAttempts: 2}, webhook: {url: "https://a.example/", slots: 4, certificate: "c",
              key: "k", ca: "a", secretFile: "s", allowPrivate: true}}}}
            """
        let webhook = try #require(try load(text).webhooks["a.b"])
        #expect(webhook.url == "https://a.example/" && webhook.slots == 4 && webhook.allowsPrivate)
        #expect(webhook.certificateFile == "c" && webhook.privateKeyFile == "k")
        #expect(webhook.certificateAuthorityFile == "a" && webhook.secretFile == "s")

        let changed = try load(
            text,
            set: ["topics.a.b.webhook.slots=9", "topics.a.b.webhook.secretFile=7", "topics.a.b.webhook.ca=null"]
                + ["topics.c.policy.webhook={url:'https://c.example/'}", "topics.webhook.policy.maxPenalty=1"]
        )
        #expect(changed.webhooks["a.b"]?.slots == 9)
        #expect(changed.webhooks["a.b"]?.secretFile == "7")
        #expect(changed.webhooks["a.b"]?.certificateAuthorityFile == nil)
        #expect(changed.webhooks["c.policy"]?.url == "https://c.example/")
        #expect(changed.webhooks["webhook"] == nil && changed.topicPolicies["webhook"]?.maxPenalty == 1)
        #expect(try load().webhooks.isEmpty)
    }

    @Test("Tasks and sessions of a webhook are set in the file and on the command line; the default is none")
    func patterns() throws {
        let text = "{topics: {t: {webhook: {url: 'https://a.example/', tasks: ['a.b', 'a.*'], sessions: ['s']}}}}"
        let webhook = try #require(try load(text).webhooks["t"])
        #expect(webhook.tasks.map(\.text) == ["a.b", "a.*"] && webhook.sessions.map(\.text) == ["s"])
        let changed = try load(text, set: ["topics.t.webhook.tasks=[]", "topics.t.tasks=['a.b']"])
        #expect(changed.webhooks["t"]?.tasks == [] && changed.webhooks["t"]?.sessions.count == 1)
        #expect(changed.permittedTasks["t"]?.map(\.text) == ["a.b"])
        let none = try #require(try load("{topics: {t: {webhook: {url: 'https://a.example/'}}}}").webhooks["t"])
        #expect(none.tasks.isEmpty && none.sessions.isEmpty)
        for value in ["'a'", "['a b']", "['a', 'a']", "['*']", "[5]"] {
            #expect(throws: ConfigurationError.self, "\(value)") {
                try load("{topics: {t: {webhook: {url: 'https://a.example/', tasks: \(value)}}}}")
            }
        }
    }

    @Test(
        "An unknown key, or one with an invalid value, is named with the remedy",
        arguments: [
            ("{urll: 'x'}", "topics.t.webhook.urll: is not a key; did you mean topics.t.webhook.url?"),
            (
                "{url: 5}",
                "topics.t.webhook.url: is 5; write an https URL, or with allowPrivate an http URL of a loopback host; "
                    + "without user and password"
            ),
            ("{slots: 0}", "topics.t.webhook.slots: is 0; write a whole number from 1 to 4096"),
            ("{allowPrivate: 1}", "topics.t.webhook.allowPrivate: is 1; write true or false"),
            ("{ca: ''}", "topics.t.webhook.ca: is \"\"; write a path, or null"),
        ]
    )
    func faults(members: String, message: String) throws {
        #expect(refusal(of: try load("{topics: {t: {webhook: \(members)}}}")) == [message])
    }

    @Test(
        "A forbidden URL is refused before anything starts",
        arguments: [
            ("", ".url: is missing; write an https URL"),
            ("example.com", ".url: is not a URL of http or https; write an https URL"),
            ("ftp://example.com/", ".url: is not a URL of http or https; write an https URL"),
            (
                "https://user:word@example.com/",
                ".url: holds a user or a password; leave it out; set secretFile, or certificate and key"
            ),
            ("https://example.com/#x", ".url: holds a fragment, which is never sent; leave it out"),
            (
                "http://example.com/",
                ".url: http://example.com/ would carry wakes in cleartext; write https; http is for a receiver on this "
                    + "machine alone, with allowPrivate: true"
            ),
            (
                "https://169.254.169.254/",
                ".url: 169.254.169.254 is not a public address (link-local); "
                    + "name a public host, or set allowPrivate: true"
            ),
            (
                "https://0x7f000001/",
                ".url: 127.0.0.1 is not a public address (loopback); name a public host, or set allowPrivate: true"
            ),
            (
                "https://[::ffff:10.0.0.1]/",
                ".url: ::ffff:10.0.0.1 is not a public address (private); name a public host, or set allowPrivate: true"
            ),
            (
                "https://example.com:0/",
                ".url: names port 0, on which no server listens; write a port from 1 to 65535"
            ),
            (
                "https://1.2.3.4.5/",
                ".url: names the host 1.2.3.4.5, which DNS cannot have; write an address, or a name of ASCII letters, "
                    + "digits and hyphens (xn-- for other alphabets)"
            ),
        ]
    )
    func url(url: String, message: String) throws {
        let secret = try Secret("0123456789abcdef", mode: 0o600)
        #expect(try Self.faults("{url: '\(url)', secretFile: '\(secret.path)'}") == [message])
    }

    @Test(
        "Private addresses are accepted if they are allowed, and cleartext only on this machine",
        arguments: [
            ("https://10.0.0.1/", true), ("https://localhost/", true), ("http://127.0.0.1:80/", true),
            ("http://localhost/", true), ("http://[::1]/", true), ("http://10.0.0.1/", false),
            ("http://example.com/", false), ("https://1.2.3.4.5/", false),
        ]
    )
    func allowed(url: String, isTaken: Bool) throws {
        #expect(try Self.faults("{url: '\(url)', allowPrivate: true}").isEmpty == isTaken)
    }

    @Test("A webhook without proof of the gateway's identity is refused")
    func proof() throws {
        let message =
            ": nothing shows the receiver that a wake is from this gateway; set secretFile, or certificate and key"
        #expect(try Self.faults("{url: 'https://example.com/'}") == [message])
        #expect(try Self.faults("{url: 'https://example.com/', allowPrivate: true}").isEmpty)
    }

    @Test(
        "A secret that cannot be one is refused, with the remedy",
        arguments: [
            (nil, 0o600, "cannot be read (no such file); name a file that is there"),
            ("0123456789abcdef", 0o604, "everybody may use FILE; run: chmod o= FILE"),
            ("0123456789abcde", 0o600, "is not one line of 16 to 1024 bytes; run: openssl rand -hex 32 > FILE"),
            ("", 0o600, "is not one line of 16 to 1024 bytes; run: openssl rand -hex 32 > FILE"),
            ("0123456789abcdef\nmore", 0o600, "is not one line of 16 to 1024 bytes; run: openssl rand -hex 32 > FILE"),
        ] as [(String?, Int, String)]
    )
    func secret(text: String?, mode: Int, message: String) throws {
        let secret = try Secret(text, mode: mode)
        let faults = try Self.faults("{url: 'https://example.com/', secretFile: '\(secret.path)'}")
        let shown = faults.map { $0.replacingOccurrences(of: secret.path, with: "FILE") }
        #expect(shown.count == 1 && shown[0].hasPrefix(".secretFile: ") && shown[0].hasSuffix(message), "\(shown)")
    }

    @Test("Files that are missing, or do not belong together, are named")
    func files() throws {
        let secret = try Secret("0123456789abcdef\n", mode: 0o640)
        let common = "url: 'https://example.com/', secretFile: '\(secret.path)'"
        #expect(try Self.faults("{\(common)}").isEmpty)
        #expect(
            try Self.faults("{\(common), certificate: '/none'}")
                == [
                    ".key: is missing with certificate; name a readable PEM file",
                    ".certificate: /none cannot be read (no such file); name a readable PEM file",
                ]
        )
        #expect(
            try Self.faults("{\(common), ca: '/none'}") == [
                ".ca: /none cannot be read (no such file); name a readable PEM file"
            ]
        )
        let unfit = try Self.faults("{\(common), certificate: '\(secret.path)', key: '\(secret.path)'}")
        #expect(unfit.count == 1 && unfit[0].hasPrefix(".certificate: does not fit: "))
    }

    /// A file for a secret; removed with the last reference.
    private final class Secret {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())").path

        /// - Parameter text: the contents; nil to create no file.
        init(_ text: String?, mode: Int) throws {
            guard let text else { return }
            try Data(text.utf8).write(to: URL(fileURLWithPath: self.path))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: self.path)
        }

        deinit {
            try? FileManager.default.removeItem(atPath: self.path)
        }
    }
}
