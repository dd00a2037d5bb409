package import Policy
package import Wire

/// A worker's open stream, at one moment.
package struct StreamSnapshot: Sendable {
    /// Whether a stream takes wakes, and what keeps it from that.
    package enum State: String, Sendable {
        /// The stream has a free slot.
        case free
        /// Every slot holds a wake.
        case busy
        /// The payloads it holds are as large as they may be.
        case full
        /// The stream's peer does not read.
        case paused
        /// Three wakes in a row expired on it unanswered, or were given back.
        case stalled
        /// The stream's worker stops.
        case draining
    }

    package let address: StreamAddress
    package let topic: TopicIndex
    /// What its worker calls itself; may be empty.
    package let label: String
    package let slots: Int
    /// The wakes it holds.
    package let busy: Int
    /// The wakes it was given since it was opened.
    package let wakesGiven: Int64
    /// When it was given the oldest of the wakes it holds; nil when it holds none.
    package let oldestGivenAt: Instant?
    /// The oldest of the wakes it holds.
    package let oldestWake: WakeID?
    package let state: State
    /// Why it gets no wakes, or may not have received one; nil if nothing speaks against it.
    package let trouble: String?

    init(_ subscription: Subscription, trouble: String?) {
        self.trouble = trouble
        self.address = subscription.address
        self.topic = subscription.topic
        self.label = subscription.request.label
        self.slots = subscription.slots
        self.busy = subscription.wakes.count
        self.wakesGiven = subscription.wakesGiven
        let oldest = subscription.wakes.all.min { left, right in
            (left.value.givenAt, left.wake.first) < (right.value.givenAt, right.wake.first)
        }
        self.oldestGivenAt = oldest?.value.givenAt
        self.oldestWake = oldest?.wake
        self.state =
            if subscription.isDraining {
                .draining
            } else if subscription.isPaused {
                .paused
            } else if subscription.isStalled {
                .stalled
            } else if subscription.isFull {
                .full
            } else if subscription.wakes.count >= subscription.slots {
                .busy
            } else {
                .free
            }
    }
}
