package import Policy

/// Which identifiers of background tasks the workers of each topic may submit.
package struct PermittedTasks: Hashable, Sendable {
    /// The most patterns that one topic names.
    package static let patternsPerTopicMax = 1000

    /// Nothing is permitted but what a topic names.
    package static let none = PermittedTasks(permitsUnnamed: false)
    /// Everything is permitted, but to a topic that names what is.
    package static let all = PermittedTasks(permitsUnnamed: true)

    /// What one topic names.
    private struct Topic: Hashable {
        /// As they were written, to be shown.
        let patterns: [IdentifierPattern]
        let identifiers: Set<Substring>
        /// What patterns that stand for several begin with, each up to its dot.
        let beginnings: Set<Substring>

        init(_ patterns: [IdentifierPattern]) {
            self.patterns = patterns
            self.identifiers = Set(patterns.filter(\.isExact).map { $0.stem[...] })
            self.beginnings = Set(patterns.filter { !$0.isExact }.map { $0.stem[...] })
        }

        func permits(_ identifier: String) -> Bool {
            if self.identifiers.contains(identifier[...]) { return true }
            guard !self.beginnings.isEmpty else { return false }
            var end = identifier.startIndex
            while let dot = identifier[end...].firstIndex(of: ".") {
                end = identifier.index(after: dot)
                guard end < identifier.endIndex else { return false }
                if self.beginnings.contains(identifier[..<end]) { return true }
            }
            return false
        }
    }

    private let permitsUnnamed: Bool
    private var topics: [String: Topic] = [:]

    private init(permitsUnnamed: Bool) {
        self.permitsUnnamed = permitsUnnamed
    }

    /// What the topic of this name permits, or nil when it has what all others have.
    package subscript(topic: String) -> [IdentifierPattern]? {
        get { self.topics[topic]?.patterns }
        set { self.topics[topic] = newValue.map { Topic($0) } }
    }

    /// The topics that name what they permit.
    package var namedTopics: some Collection<String> { self.topics.keys }

    /// Whether a topic's workers may submit tasks of this identifier.
    ///
    /// The cost is one look-up for each dot of the identifier, however many patterns there are. What is no identifier
    /// is never permitted.
    package func permits(_ identifier: String, topic: String) -> Bool {
        guard self.permitsUnnamed || !self.topics.isEmpty, IdentifierPattern.isIdentifier(identifier.utf8) else {
            return false
        }
        return self.topics[topic]?.permits(identifier) ?? self.permitsUnnamed
    }
}
