import Wire

/// The topics that a provider's certificate names in its extension, alone and in addition to the topics of its subject.
///
/// An input is the value of the extension. If the first line is complete, it is also used as a subject.
enum CertificateTopicsTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var reader = InputReader(input)
        let line = reader.line().string
        try self.checkTopics([], input)
        try self.checkTopics(["com.example.app"], input)
        try self.checkTopics([line], reader.rest.isEmpty ? nil : reader.rest)
        guard let list = CertificateTopicList(input) else { return }
        let written = self.list(list)
        try promise(written == input.array, "a list changed when it was written anew: \(written)")
        try promise(list.entries.count <= CertificateTopicList.entriesMax, "a list is longer than it may be")
    }

    private static func checkTopics(_ subject: [String], _ list: ByteView?) throws(BrokenPromise) {
        guard let topics = try? CertificateTopics(subject: subject, list: list) else { return }
        try promise(!topics.names.isEmpty, "a certificate without a topic was taken")
        for name in topics.names {
            let isAdmitted = name.withByteView { Push.isTopic($0) && topics.admits(topic: $0) }
            // Sibling names of the longest topics are longer than any push may name.
            try promise(isAdmitted || name.utf8.count > Push.topicBytesMax, "\(name) is named and not admitted")
            let other = name + "!"
            try promise(!other.withByteView { topics.admits(topic: $0) }, "\(other) is admitted and not named")
        }
        guard let topic = topics.defaultTopic else { return }
        let name = String(decoding: topic, as: UTF8.self)
        try promise(topics.names.contains(name), "the default is not among the topics")
    }

    // MARK: Encoding

    private static func list(_ list: CertificateTopicList) -> [UInt8] {
        self.value(
            0x30,
            list.entries.flatMap { entry in
                self.value(0x0C, Array(entry.topic.utf8))
                    + self.value(0x30, entry.kinds.flatMap { self.value(0x0C, Array($0.utf8)) })
            }
        )
    }

    /// Returns a DER value: tag, shortest form of the length, and contents.
    private static func value(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        guard contents.count >= 0x80 else { return [tag, UInt8(contents.count)] + contents }
        var length: [UInt8] = []
        var rest = contents.count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag, 0x80 | UInt8(length.count)] + length + contents
    }
}
