/// The topics of a client certificate.
package struct CertificateTopics: Hashable, Sendable {
    /// The reason why a certificate's topics cannot be determined.
    package enum Fault: Error, Hashable, Sendable {
        /// Neither the subject nor the extension of the certificate names a topic.
        case noTopic
        /// The UID of the certificate's subject is not a topic.
        case badSubject(String)
        /// The extension does not have the form of `CertificateTopicList`.
        case badList
    }

    /// The suffixes of the additional topics that a certificate covers if it has no topic list.
    private static let siblingEnds = [".voip", ".complication"]

    /// The topics of the certificate, at least one.
    package let names: [String]
    /// The topic of a push that names no topic. It is nil if the certificate has several topics; the push must then
    /// name one.
    package let defaultTopic: [UInt8]?
    /// `names` in UTF-8.
    private let bytes: [[UInt8]]

    /// - Parameters:
    ///   - subject: the values of UID (0.9.2342.19200300.100.1.1) in the certificate's subject.
    ///   - list: the value of the certificate's extension 1.2.840.113635.100.6.3.6; nil if there is none.
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

    /// Returns true if the certificate covers `topic`.
    package func admits(topic: ByteView) -> Bool {
        for own in self.bytes where own.withByteView({ $0 == topic }) { return true }
        return false
    }
}

/// The value of the certificate extension 1.2.840.113635.100.6.3.6, which lists topics. It is a SEQUENCE of pairs. A
/// pair is the topic, a UTF8String, and its kinds (`app`, `voip`, `complication`), a SEQUENCE of UTF8Strings.
package struct CertificateTopicList: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        /// The topic, valid by `Push.isTopic`.
        package let topic: String
        /// The kinds, at least one. The gateway does not use them.
        package let kinds: [String]
    }

    /// The maximum number of topics per certificate, and of kinds per topic. APNs has about ten.
    package static let entriesMax = 64

    /// The entries, at least one, in the order of the extension.
    package let entries: [Entry]

    /// - Returns: nil if `der` is malformed.
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

/// A reader for consecutive DER values (X.690), limited to the types in topic lists and in signatures.
struct DERReader {
    enum Tag: UInt8 {
        case integer = 0x02
        case utf8String = 0x0C
        case sequence = 0x30
    }

    /// The maximum number of length bytes. Four suffice for any certificate.
    private static let lengthBytesMax = 4

    private var rest: ByteView

    init(_ bytes: ByteView) {
        self.rest = bytes
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    /// Reads the next value.
    ///
    /// - Returns: the contents; nil if the value has another tag or is truncated, or if its length is indefinite or not
    ///   in the shortest form.
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
