/// The topics that a client certificate stands for.
package struct CertificateTopics: Hashable, Sendable {
    /// Why a certificate's topics cannot be told.
    package enum Fault: Error, Hashable, Sendable {
        /// Neither its subject nor the extension names one.
        case noTopic
        /// What its subject has as UID is no topic.
        case badSubject(String)
        /// The extension is not as `CertificateTopicList` describes it.
        case badList
    }

    /// The topics of the same app, besides its bundle identifier, that a certificate without the extension is for.
    private static let siblingEnds = [".voip", ".complication"]

    /// Every topic it is for, at least one.
    package let names: [String]
    /// What a push is for that names no topic; nil when the certificate has several and the push must say.
    package let defaultTopic: [UInt8]?
    /// `names` in UTF-8.
    private let bytes: [[UInt8]]

    /// - Parameters:
    ///   - subject: what the certificate's subject has as UID (0.9.2342.19200300.100.1.1).
    ///   - list: the value of its extension 1.2.840.113635.100.6.3.6; nil when it has none.
    package init(subject: [String], list: ByteView?) throws(Fault) {
        for topic in subject where !topic.withByteView({ Push.isTopic($0) }) { throw .badSubject(topic) }
        var own: [String] = []
        var siblings: [String] = []
        if let list {
            guard let list = CertificateTopicList(list) else { throw .badList }
            own = list.entries.map(\.topic)
        } else {
            siblings = subject.flatMap { topic in Self.siblingEnds.map { topic + $0 } }
        }
        for topic in subject where !own.contains(topic) { own.append(topic) }
        guard let first = own.first else { throw .noTopic }
        self.names = own + siblings
        self.defaultTopic = own.allSatisfy { $0 == first } ? Array(first.utf8) : nil
        self.bytes = self.names.map { Array($0.utf8) }
    }

    /// Whether the certificate is for `topic`.
    package func admits(topic: ByteView) -> Bool {
        for own in self.bytes where own.withByteView({ $0 == topic }) { return true }
        return false
    }
}

/// The value of the extension in which a provider's certificate names its topics, 1.2.840.113635.100.6.3.6: a SEQUENCE
/// in which each topic, a UTF8String, is followed by a SEQUENCE of UTF8Strings that say what it is for (`app`, `voip`,
/// `complication`).
package struct CertificateTopicList: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        /// What `Push.isTopic` takes.
        package let topic: String
        /// At least one; what they say decides nothing.
        package let kinds: [String]
    }

    /// The most topics one certificate may name, and the most kinds of each; APNs has about ten.
    package static let entriesMax = 64

    /// At least one, in the order in which they stand there.
    package let entries: [Entry]

    /// - Returns: nil when `der` is anything else.
    package init?(_ der: ByteView) {
        var outer = DERReader(der)
        guard let list = outer.value(.sequence), outer.isAtEnd else { return nil }
        var reader = DERReader(list)
        var entries: [Entry] = []
        while !reader.isAtEnd {
            guard entries.count < Self.entriesMax, let topic = reader.value(.utf8String), Push.isTopic(topic),
                let kinds = reader.value(.sequence), let kinds = Self.kinds(kinds)
            else { return nil }
            entries.append(Entry(topic: topic.string, kinds: kinds))
        }
        guard !entries.isEmpty else { return nil }
        self.entries = entries
    }

    private static func kinds(_ list: ByteView) -> [String]? {
        var reader = DERReader(list)
        var kinds: [String] = []
        while !reader.isAtEnd {
            guard kinds.count < self.entriesMax, let kind = reader.value(.utf8String), Push.isTopic(kind) else {
                return nil
            }
            kinds.append(kind.string)
        }
        return kinds.isEmpty ? nil : kinds
    }
}

/// Values in DER (X.690), one after the other, as far as the extensions of client certificates have them.
struct DERReader {
    enum Tag: UInt8 {
        case utf8String = 0x0C
        case sequence = 0x30
    }

    /// The most bytes in which a length is written; no certificate is longer than four of them can say.
    private static let lengthBytesMax = 4

    private var rest: ByteView

    init(_ bytes: ByteView) {
        self.rest = bytes
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    /// Takes the value that comes next.
    ///
    /// - Returns: its contents; nil when its tag is another one, it is cut short, or its length is not written as DER
    ///   has it: definite, and as short as can be.
    mutating func value(_ tag: Tag) -> ByteView? {
        guard self.rest.count >= 2, self.rest[0] == tag.rawValue else { return nil }
        var start = 2
        var count = Int(self.rest[1])
        if count >= 0x80 {
            let lengthBytes = count & 0x7F
            start += lengthBytes
            guard (1...Self.lengthBytesMax).contains(lengthBytes), start <= self.rest.count else { return nil }
            count = 0
            for index in 2..<start { count = count << 8 | Int(self.rest[index]) }
            guard count >= 0x80, count >> (8 * (lengthBytes - 1)) > 0 else { return nil }
        }
        guard count <= self.rest.count - start else { return nil }
        let contents = self.rest[start..<start + count]
        self.rest = self.rest.dropFirst(start + count)
        return contents
    }
}
