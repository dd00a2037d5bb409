import Synchronization

/// Says that something has changed: once, until whoever hears of it has looked.
final class ChangeSignal: Sendable {
    private let isUp = Atomic(false)
    private let wasRaised: @Sendable () -> Void

    /// - Parameter wasRaised: is called from the thread that changes something.
    init(_ wasRaised: @escaping @Sendable () -> Void) {
        self.wasRaised = wasRaised
    }

    /// Whether something has changed that nobody has looked at.
    var isRaised: Bool { self.isUp.load(ordering: .acquiring) }

    /// Something has changed.
    func raise() {
        guard !self.isUp.exchange(true, ordering: .acquiringAndReleasing) else { return }
        self.wasRaised()
    }

    /// What is looked at from here on has every change that was told.
    func lower() { self.isUp.store(false, ordering: .sequentiallyConsistent) }
}
