package import Wire

/// The kinds of wakes that a worker has no handler for, each said once.
package struct RefusedKinds: Sendable {
    /// The most that are remembered: there are fewer, and a peer may make some up.
    package static let countMax = 16

    private var said: Set<WakeKind> = []

    package init() {}

    /// A wake of `kind` was refused.
    ///
    /// - Returns: whether that is to be said.
    package mutating func isFirst(_ kind: WakeKind) -> Bool {
        self.said.count < Self.countMax && self.said.insert(kind).inserted
    }
}
