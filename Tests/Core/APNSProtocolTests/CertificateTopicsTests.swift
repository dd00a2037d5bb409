import Testing
import Wire

@Suite("The topics of a client certificate")
struct CertificateTopicsTests {
    /// A value in DER with the shortest length.
    private static func der(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        let count = contents.count
        if count < 0x80 { return [tag, UInt8(count)] + contents }
        if count < 0x100 { return [tag, 0x81, UInt8(count)] + contents }
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + contents
    }

    private static func text(_ text: String) -> [UInt8] { self.der(0x0C, Array(text.utf8)) }

    private static func list(_ entries: [(topic: String, kinds: [String])]) -> [UInt8] {
        self.der(0x30, entries.flatMap { self.text($0.topic) + self.der(0x30, $0.kinds.flatMap { self.text($0) }) })
    }

    private static func read(_ bytes: [UInt8]) -> CertificateTopicList? {
        bytes.withByteView { CertificateTopicList($0) }
    }

    private static let three: [(topic: String, kinds: [String])] = [
        ("com.example.app", ["app"]), ("com.example.app.voip", ["voip"]),
        ("com.example.app.complication", ["complication", "other"]),
    ]

    @Test("The extension is read as Apple's certificates have it")
    func list() throws {
        // The bytes of the first entry in a real certificate.
        let bytes: [UInt8] =
            [0x30, 0x18, 0x0C, 0x0F] + Array("com.example.app".utf8) + [0x30, 0x05, 0x0C, 0x03]
            + Array("app".utf8)
        #expect(bytes == Self.list([Self.three[0]]))
        let list = try #require(Self.read(Self.list(Self.three)))
        #expect(list.entries.map(\.topic) == Self.three.map(\.topic))
        #expect(list.entries.map(\.kinds) == Self.three.map(\.kinds))
    }

    @Test("Lengths of one, two and three bytes are read, up to the most topics")
    func long() throws {
        let topic = String(repeating: "x", count: 255)
        let many = (0..<CertificateTopicList.entriesMax).map { number in
            (topic: "\(number)" + topic.dropFirst("\(number)".count), kinds: ["app"])
        }
        #expect(try #require(Self.read(Self.list(many))).entries.map(\.topic) == many.map(\.topic))
        #expect(Self.read(Self.list(many + [(topic, ["app"])])) == nil)
        #expect(Self.read(Self.list([("x", Array(repeating: "app", count: 65))])) == nil)
    }

    private static let malformedLists: [[UInt8]] = [
        [], [0x30], [0x30, 0x00], [0x31, 0x00],
        // A topic without kinds, kinds without a topic, an invalid kind, another string type.
        Self.der(0x30, Self.text("a")), Self.der(0x30, Self.der(0x30, Self.text("app"))),
        Self.der(0x30, Self.text("a") + Self.der(0x30, [])),
        Self.der(0x30, Self.der(0x13, [0x61]) + Self.der(0x30, Self.text("app"))),
        Self.der(0x30, Self.text("a") + Self.der(0x30, Self.der(0x13, [0x61]))),
        Self.der(0x30, Self.text("a") + Self.der(0x30, Self.text(""))),
        // Invalid topics: empty, with a space, with a line end, not UTF-8, too long.
        Self.list([("", ["app"])]), Self.list([("a b", ["app"])]), Self.list([("a\n", ["app"])]),
        Self.der(0x30, Self.der(0x0C, [0xFF]) + Self.der(0x30, Self.text("app"))),
        Self.list([(String(repeating: "x", count: 256), ["app"])]),
        // Extra bytes after the end, truncated values.
        Self.list(Self.three) + [0x00], Self.list(Self.three) + [0x30, 0x00],
        Self.der(0x30, Self.text("a") + Self.der(0x30, Self.text("app")) + [0x05]),
        Array(Self.list(Self.three).dropLast()), [0x30, 0x81], [0x30, 0x7F, 0x0C],
        // Lengths that are indefinite, not in the shortest form, or larger than any certificate.
        [0x30, 0x80] + Self.text("a") + Self.der(0x30, Self.text("app")) + [0x00, 0x00],
        [0x30, 0x81, 0x0A] + Self.text("a") + Self.der(0x30, Self.text("app")),
        [0x30, 0x82, 0x00, 0x0A] + Self.text("a") + Self.der(0x30, Self.text("app")),
        [0x30, 0x0B, 0x0C, 0x81, 0x01, 0x61] + Self.der(0x30, Self.text("app")),
        [0x30, 0x85, 0x01, 0x00, 0x00, 0x00, 0x00], [0x30, 0xFF] + [UInt8](repeating: 0xFF, count: 127),
        [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF],
    ]

    @Test(
        "A malformed list of topics is refused",
        arguments: Self.malformedLists
    )
    func malformed(bytes: [UInt8]) {
        #expect(Self.read(bytes) == nil)
    }

    private func topics(_ subject: [String], _ list: [UInt8]? = nil) throws(CertificateTopics.Fault)
        -> CertificateTopics
    {
        guard let list else { return try CertificateTopics(subject: subject, list: nil) }
        let result = list.withByteView { list in
            Result { () throws(CertificateTopics.Fault) in try CertificateTopics(subject: subject, list: list) }
        }
        return try result.get()
    }

    private func admits(_ topics: CertificateTopics, _ topic: String) -> Bool {
        topic.withByteView { topics.admits(topic: $0) }
    }

    @Test("Without the extension the certificate is for the app of its subject, and pushes need not name it")
    func subject() throws {
        let topics = try self.topics(["com.example.app"])
        #expect(topics.defaultTopic == Array("com.example.app".utf8))
        for topic in ["com.example.app", "com.example.app.voip", "com.example.app.complication"] {
            #expect(self.admits(topics, topic), "\(topic)")
        }
        for topic in ["", "com.example", "com.example.apps", "com.example.app.", "com.example.app.location-query"] {
            #expect(!self.admits(topics, topic), "\(topic)")
        }
    }

    @Test("With the extension it is for the topics in the extension and the subject, and pushes name one of several")
    func extensionList() throws {
        let several = try self.topics(["com.example.app"], Self.list(Self.three))
        #expect(several.defaultTopic == nil)
        #expect(several.names == Self.three.map(\.topic))
        let one = try self.topics(["com.example.app"], Self.list([Self.three[0]]))
        #expect(one.defaultTopic == Array("com.example.app".utf8))
        #expect(!self.admits(one, "com.example.app.voip"))
        let other = try self.topics(["com.example.app"], Self.list([("com.example.other", ["app"])]))
        #expect(other.defaultTopic == nil)
        #expect(self.admits(other, "com.example.app") && self.admits(other, "com.example.other"))
        #expect(try self.topics([], Self.list([Self.three[1]])).defaultTopic == Array("com.example.app.voip".utf8))
        #expect(try self.topics(["a", "b"]).defaultTopic == nil)
    }

    @Test("A certificate without a topic, or with a malformed one, is refused")
    func faults() {
        #expect(throws: CertificateTopics.Fault.noTopic) { try self.topics([]) }
        #expect(throws: CertificateTopics.Fault.badSubject("a b")) { try self.topics(["a b"]) }
        #expect(throws: CertificateTopics.Fault.badSubject("a\0")) { try self.topics(["a\0"]) }
        #expect(throws: CertificateTopics.Fault.badList) { try self.topics(["com.example.app"], [0x30, 0x00]) }
    }
}
