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
    /// What a wake is for that is no push's; nil for a push's.
    package let work: Work?
    /// The trace that a background task's request belongs to; none of a push's wake.
    private let taskTrace: WakeTrace

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

        /// The terms of a background task's or session's wake.
        ///
        /// - `submittedAt`: when the gateway took the request, or the first word of finished transfers.
        package init(attempt: UInt32, submittedAt: Int64, deadline: Int64, timeLeft: Int64) {
            self.init(
                priority: 5,
                attempt: attempt,
                coalesced: 0,
                receivedAt: submittedAt,
                firstReceivedAt: submittedAt,
                deadline: deadline,
                timeLeft: timeLeft
            )
        }

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

    /// What a wake is for that is no push's.
    package enum Work {
        /// A background task: its identifier, and the texts of its request; an empty one is none.
        ///
        /// - `resumption`: nil for a launch that goes on with nothing.
        case task(
            ByteView,
            title: ByteView = ByteView(),
            subtitle: ByteView = ByteView(),
            resumption: Resumption? = nil
        )
        /// So many transfers of a background session have finished.
        case session(ByteView, count: UInt32)
    }

    /// What a continued task that is launched again goes on from.
    package enum Resumption {
        /// The last launch told of no progress.
        case nothingTold
        /// An empty text is none.
        case progress(completed: UInt64, total: UInt64, title: ByteView, subtitle: ByteView)
    }

    /// - `push`: nil for a wake without a push, and for one that is for `work`.
    /// - `work`: nil for a wake of the kind `push`, and for no other.
    /// - `trace`: the one that a task's request belongs to; a push has its own.
    package init(
        _ id: WakeID,
        kind: WakeKind,
        device: DeviceToken,
        topic: ByteView,
        terms: Terms,
        push: Push? = nil,
        work: Work? = nil,
        trace: WakeTrace = WakeTrace()
    ) {
        self.id = id
        self.kind = kind
        self.device = device
        self.topic = topic
        self.terms = terms
        self.push = push
        self.work = work
        self.taskTrace = trace
    }

    /// The traces that the wake belongs to.
    package var trace: WakeTrace { self.push?.trace ?? self.taskTrace }
}

/// What a wake is for, as its event names it.
package struct WakeKind: Hashable, Sendable {
    /// The longest name that is believed.
    package static let lengthMax = 32

    package static let push = WakeKind(known: "push")
    package static let appRefresh = WakeKind(known: "appRefresh")
    package static let processing = WakeKind(known: "processing")
    package static let continued = WakeKind(known: "continued")
    package static let urlSession = WakeKind(known: "urlSession")

    package let name: String

    private init(known name: String) {
        self.name = name
    }

    /// The kind of this name, which this program need not know; nil for a name that no gateway gives.
    package init?(_ name: String) {
        guard 1...Self.lengthMax ~= name.utf8.count, name.utf8.allSatisfy({ Self.isLetter($0) }) else { return nil }
        self.name = name
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        default: false
        }
    }
}

/// The traces that a wake belongs to; most belong to none.
package struct WakeTrace {
    /// What the sender of the push or request said; nil when it said nothing.
    package let parent: TraceParent?
    /// The sender's `tracestate`; empty when there is none.
    package let state: ByteView
    /// The traces of older pushes that it stands for, the newest first.
    package let links: [TraceParent]
    /// How many more there were.
    package let linksDropped: UInt32

    package init(
        parent: TraceParent? = nil,
        state: ByteView = ByteView(),
        links: [TraceParent] = [],
        linksDropped: UInt32 = 0
    ) {
        self.parent = parent
        self.state = state
        self.links = links
        self.linksDropped = linksDropped
    }
}
