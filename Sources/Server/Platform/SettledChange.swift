/// Notices that something which is looked at now and then has changed, and stayed so until the next look: a file that
/// is being written is not read half.
package struct SettledChange<State: Equatable & Sendable>: Sendable {
    /// The state that was taken, nil when that came to nothing; and the one of the last look.
    private var taken: State?
    private var seen: State

    package init(_ state: State) {
        self.taken = state
        self.seen = state
    }

    /// - Returns: whether `state` is to be taken: it is another one than was taken last, and that of the last look.
    package mutating func looked(_ state: State) -> Bool {
        defer { self.seen = state }
        guard state == self.seen, state != self.taken else { return false }
        self.taken = state
        return true
    }

    /// What was to be taken could not be: the next look that finds it the same takes it again.
    package mutating func failed() {
        self.taken = nil
    }
}
