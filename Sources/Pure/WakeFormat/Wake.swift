package import Bytes

/// A wake as its worker is to be told of it. Its views are valid as long as the bytes of whoever made it.
package struct Wake {
    package let id: WakeID
    package let kind: WakeKind
    package let device: DeviceToken
    package let topic: ByteView
    /// The priority, times and counts of the push it is for; of a wake without a push, those of its launch.
    package let terms: Terms
    /// Nil for a wake without a push.
    package let push: Push?

    /// What decided on the launch. Moments are in milliseconds since 1970.
    package struct Terms: BitwiseCopyable, Sendable {
        package let priority: UInt8
        /// Which launch of the push it is, from 1.
        package let attempt: UInt32
        /// How many older pushes it stands for besides its own.
        package let coalesced: UInt32
        package let receivedAt: Int64
        package let firstReceivedAt: Int64
        package let deadline: Int64
        /// How long until the deadline, in milliseconds.
        package let timeLeft: Int64

        package init(
            priority: UInt8,
            attempt: UInt32,
            coalesced: UInt32,
            receivedAt: Int64,
            firstReceivedAt: Int64,
            deadline: Int64,
            timeLeft: Int64
        ) {
            self.priority = priority
            self.attempt = attempt
            self.coalesced = coalesced
            self.receivedAt = receivedAt
            self.firstReceivedAt = firstReceivedAt
            self.deadline = deadline
            self.timeLeft = timeLeft
        }
    }

    /// The push that a wake hands over.
    package struct Push {
        package let apnsID: APNsID
        /// Empty when there is none.
        package let collapseID: ByteView
        /// The push as JSON text.
        package let payload: ByteView
        package let trace: WakeTrace

        package init(apnsID: APNsID, collapseID: ByteView, payload: ByteView, trace: WakeTrace = WakeTrace()) {
            self.apnsID = apnsID
            self.collapseID = collapseID
            self.payload = payload
            self.trace = trace
        }
    }

    package init(
        _ id: WakeID,
        kind: WakeKind,
        device: DeviceToken,
        topic: ByteView,
        terms: Terms,
        push: Push?
    ) {
        self.id = id
        self.kind = kind
        self.device = device
        self.topic = topic
        self.terms = terms
        self.push = push
    }
}
