/// The value of the extension in which a provider's certificate names its topics, 1.2.840.113635.100.6.3.6: a SEQUENCE
/// in which each topic, a UTF8String, is followed by a SEQUENCE of UTF8Strings that say what it is for (`app`, `voip`,
/// `complication`).
package struct CertificateTopicList: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        /// What `PushHead.isTopic` takes.
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
            guard entries.count < Self.entriesMax, let topic = reader.value(.utf8String), PushHead.isTopic(topic),
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
            guard kinds.count < self.entriesMax, let kind = reader.value(.utf8String), PushHead.isTopic(kind) else {
                return nil
            }
            kinds.append(kind.string)
        }
        return kinds.isEmpty ? nil : kinds
    }
}
