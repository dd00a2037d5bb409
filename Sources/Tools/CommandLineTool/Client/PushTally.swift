/// Counts the answers to many pushes.
package struct PushTally: Sendable {
    package private(set) var count = 0
    package private(set) var refused = 0
    private var outcomes: [String: Int] = [:]

    package init() {}

    package mutating func add(_ answer: PushAnswer) {
        self.count += 1
        if !answer.isAccepted { self.refused += 1 }
        self.outcomes[answer.outcome, default: 0] += 1
    }

    /// One line, such as `14 pushes: 7 coalesced, 7 launched`.
    package var text: String {
        let counts = self.outcomes.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
        return "\(self.count) pushes: \(counts.joined(separator: ", "))\n"
    }
}
