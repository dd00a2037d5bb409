/// What a rule does with a push, in this order.
package struct FaultEffect: Hashable, Sendable {
    /// How long everything else waits.
    package var delayMilliseconds: Int64 = 0
    /// What the connection's peer is told of the streams that it may have open; nil for nothing.
    package var streamLimit: FaultStreamLimit?
    /// What the connection's peer is told of how much it may send on a stream; nil for nothing.
    package var streamWindow: FaultStreamWindow?
    package var outcome = FaultOutcome.passed

    package init() {}
}

/// Another number of streams that a connection may have open.
package struct FaultStreamLimit: Hashable, Sendable {
    package enum End: Hashable, Sendable {
        /// The limit ends with the connection.
        case connection
        case milliseconds(Int64)
        /// The limit ends when a push that came under it is accepted.
        case success
    }

    package let limit: Int
    package let end: End

    package init(limit: Int, end: End) {
        self.limit = limit
        self.end = end
    }
}

/// Another window for the streams of a connection: with less than a push has, its client is stalled.
package struct FaultStreamWindow: Hashable, Sendable {
    /// The most bytes: one less than a push of any type may have.
    package static let bytesMax = 4_095

    package let bytes: Int
    /// How long it holds; nil when it ends with the connection.
    package let milliseconds: Int64?

    package init(bytes: Int, milliseconds: Int64?) {
        self.bytes = bytes
        self.milliseconds = milliseconds
    }
}

/// What becomes of a push that a rule has caught.
package enum FaultOutcome: Hashable, Sendable {
    /// The push goes on as if there were no rule.
    case passed
    /// The push is refused.
    case refused(FaultAnswer)
    /// The push's stream is reset with this error code.
    case reset(code: UInt32)
    /// The push's connection is told to go away.
    case goneAway(FaultGoAway)
    /// The push is never answered; its stream ends with the connection.
    case stuck
    /// The provider token it shows counts as expired from now on, and its connection takes no push any more.
    case tokenExpired
    /// The push is handed to the engine, and its answer is lost.
    case replyLost(LostReply)
    /// The push's connection is closed without a word.
    case closed
}

/// An answer that refuses a push.
package struct FaultAnswer: Hashable, Sendable {
    package enum Timestamp: Hashable, Sendable {
        /// As APNs does it: with 410 the moment of the answer, with others none.
        case usual
        case absent
        /// Milliseconds since 1970.
        case at(Int64)
    }

    /// From 400 to 599.
    package let status: Int
    /// One of APNs' reasons, or any other text.
    package let reason: String
    package var timestamp = Timestamp.usual
    package var retryAfterSeconds: Int?

    package init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }
}

/// How a connection is told to go away.
package struct FaultGoAway: Hashable, Sendable {
    /// What becomes of the streams in flight.
    package enum InFlight: String, CaseIterable, Sendable {
        /// The streams in flight are answered first, this push too.
        case answer
        /// This one and later ones were never looked at, which GOAWAY says: their client may send them again.
        case refuse
        /// Nothing more comes, and their client cannot know what became of them. This push is not taken.
        case drop
    }

    package let reason: String
    package var code: UInt32 = 0
    package var inFlight = InFlight.answer

    package init(reason: String) {
        self.reason = reason
    }
}

/// What its client sees in place of an answer that is lost.
package enum LostReply: String, CaseIterable, Sendable {
    /// The connection is closed without a word.
    case close
    /// The stream is reset with INTERNAL_ERROR.
    case reset
    /// Nothing.
    case stuck
}
