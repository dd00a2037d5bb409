package import Wire

/// What a step of a shared store did to streams, until it is known whether it happened.
package struct StreamChanges {
    /// Whose turn it was when a stream got a wake.
    struct Turn {
        let isPush: Bool
        /// True if the stream was the next to get a push, or a task.
        let wasNext: Bool
        let lastTurn: UInt64
        /// The turn that the wake was.
        var turn: UInt64 = 0
        /// The wake made the stream full of bytes.
        var madeFull = false
    }

    /// One change, as it is undone.
    enum Change {
        case given(WakeID, Subscription, Turn)
        case released(WakeID, HeldWake, Subscription)
        /// A wake that had been released counts as expired unanswered.
        case expired(WakeID, Subscription)
        /// The worker gave back a wake, which had been released.
        case gaveBack(Subscription)
        /// The wakes that had expired unanswered or been given back are forgotten.
        case answered([WakeID], WakesGivenBack?, Subscription)
        case toldConditions(DeviceToken, Subscription)
        /// A continued task was seen to advance, perhaps; it was so before.
        case progressed(WakeID, HeldWake, Subscription)
    }

    var changes: [Change] = []
    /// Wakes that ended in this step, or had before, and that no stream here held, and why they expired; nil for
    /// another end. Whoever holds one is to be told, once the step is durable: `Dispatcher.wakeEndedElsewhere`.
    package internal(set) var endedElsewhere: [(wake: WakeID, reason: ExpirationReason?)] = []

    /// How many reports of continued tasks' progress were taken.
    var progressReports: Int64 = 0

    package init() {}

    /// Nothing was done.
    package var isEmpty: Bool { self.changes.isEmpty && self.endedElsewhere.isEmpty }
}
