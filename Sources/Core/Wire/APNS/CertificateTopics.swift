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
        for topic in subject where !topic.withByteView({ PushHead.isTopic($0) }) { throw .badSubject(topic) }
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
