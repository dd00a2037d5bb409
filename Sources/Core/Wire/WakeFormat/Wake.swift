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

extension Wake {
    /// Writes the wake as a JSON object on one line: what a stream's event and a webhook's request carry.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("wake")
        writer.hex { self.id.write(to: &$0) }
        writer.key("kind")
        writer.string(self.kind.name)
        writer.key("device")
        writer.hex { self.device.writeHex(to: &$0) }
        writer.key("topic")
        writer.string(self.topic)
        if let work = self.work {
            work.writeMembers(to: &writer)
            self.terms.writeTaskMembers(to: &writer)
            self.trace.writeMembers(to: &writer)
            work.writeTexts(to: &writer)
        } else {
            self.writePushMembers(to: &writer)
        }
        writer.endObject()
    }

    private func writePushMembers(to writer: inout JSONWriter) {
        writer.key("apnsID")
        if let push = self.push { writer.hex { push.apnsID.write(to: &$0) } } else { writer.null() }
        self.terms.writeMembers(to: &writer)
        self.push?.trace.writeMembers(to: &writer)
        writer.key("collapseID")
        if let push = self.push, !push.collapseID.isEmpty { writer.string(push.collapseID) } else { writer.null() }
        writer.key("payload")
        if let push = self.push { writer.line(push.payload) } else { writer.null() }
    }
}

extension Wake.Work {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        switch self {
        case .task(let identifier, _, _, _):
            writer.key("task")
            writer.string(identifier)
        case .session(let name, let count):
            writer.key("session")
            writer.string(name)
            writer.key("count")
            writer.integer(count)
        }
    }

    fileprivate func writeTexts(to writer: inout JSONWriter) {
        guard case .task(_, let title, let subtitle, let resumption) = self else { return }
        Self.write(title: title, subtitle: subtitle, to: &writer)
        switch resumption {
        case nil: break
        case .nothingTold?:
            writer.key("resumedFrom")
            writer.null()
        case .progress(let completed, let total, let title, let subtitle)?:
            writer.key("resumedFrom")
            writer.beginObject()
            writer.key("completed")
            writer.integer(completed)
            writer.key("total")
            writer.integer(total)
            Self.write(title: title, subtitle: subtitle, to: &writer)
            writer.endObject()
        }
    }

    private static func write(title: ByteView, subtitle: ByteView, to writer: inout JSONWriter) {
        if !title.isEmpty {
            writer.key("title")
            writer.string(title)
        }
        if !subtitle.isEmpty {
            writer.key("subtitle")
            writer.string(subtitle)
        }
    }
}

extension Wake.Terms {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        writer.key("priority")
        writer.integer(Int64(self.priority))
        writer.key("attempt")
        writer.integer(Int64(self.attempt))
        writer.key("coalesced")
        writer.integer(Int64(self.coalesced))
        writer.key("receivedAt")
        writer.integer(self.receivedAt)
        writer.key("firstReceivedAt")
        writer.integer(self.firstReceivedAt)
        self.writeTime(to: &writer)
    }

    fileprivate func writeTaskMembers(to writer: inout JSONWriter) {
        writer.key("attempt")
        writer.integer(Int64(self.attempt))
        writer.key("submittedAt")
        writer.integer(self.receivedAt)
        self.writeTime(to: &writer)
    }

    private func writeTime(to writer: inout JSONWriter) {
        writer.key("deadline")
        writer.integer(self.deadline)
        writer.key("timeLeft")
        writer.integer(self.timeLeft)
    }
}

extension WakeTrace {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        if let parent = self.parent {
            writer.key("traceparent")
            writer.hex { parent.write(to: &$0) }
        }
        if !self.state.isEmpty {
            writer.key("tracestate")
            writer.string(self.state)
        }
        guard !self.links.isEmpty else { return }
        writer.key("traceLinks")
        writer.beginArray()
        for link in self.links { writer.hex { link.write(to: &$0) } }
        writer.endArray()
        guard self.linksDropped > 0 else { return }
        writer.key("traceLinksDropped")
        writer.integer(self.linksDropped)
    }
}

extension Wake {
    /// Writes the event that tells of the wake on its worker's stream. The writer is to be empty.
    package func writeEvent(to writer: inout JSONWriter) {
        writer.buffer.append("event: wake\nid: ")
        self.id.write(to: &writer.buffer)
        writer.buffer.append("\ndata: ")
        self.write(to: &writer)
        writer.buffer.append("\n\n")
    }
}

/// The events of a worker's stream besides wakes, as a gateway writes them. The writer is to be empty.
extension Wake {
    /// Writes the event that says that a wake's deadline is near: it, in milliseconds since 1970, and how many
    /// milliseconds are left.
    package static func writeExpiringEvent(
        _ wake: WakeID,
        deadline: Int64,
        timeLeft: Int64,
        to writer: inout JSONWriter
    ) {
        writer.buffer.append("event: expiring\ndata: ")
        writer.beginObject()
        writer.key("wake")
        writer.hex { wake.write(to: &$0) }
        writer.key("deadline")
        writer.integer(deadline)
        writer.key("timeLeft")
        writer.integer(timeLeft)
        writer.endObject()
        writer.buffer.append("\n\n")
    }

    /// Writes the event that says that a wake's time is over, and why.
    package static func writeExpiredEvent(_ wake: WakeID, reason: ExpirationReason, to writer: inout JSONWriter) {
        writer.buffer.append("event: expired\ndata: ")
        writer.beginObject()
        writer.key("wake")
        writer.hex { wake.write(to: &$0) }
        writer.key("reason")
        writer.string(reason.rawValue)
        writer.endObject()
        writer.buffer.append("\n\n")
    }

    /// Writes the event that tells of the conditions of a device.
    ///
    /// - `members`: writes the members of all conditions.
    package static func writeConditionsEvent(
        _ device: DeviceToken,
        to writer: inout JSONWriter,
        members: (inout JSONWriter) -> Void
    ) {
        writer.buffer.append("event: conditions\ndata: ")
        writer.beginObject()
        writer.key("device")
        writer.hex { device.writeHex(to: &$0) }
        members(&writer)
        writer.endObject()
        writer.buffer.append("\n\n")
    }
}

/// Why the time of a wake is over before its worker has answered, as an `expired` event names it.
package enum ExpirationReason: String, BitwiseCopyable, CaseIterable, Sendable {
    /// The deadline has passed.
    case deadline
    /// A continued task has not advanced for too long.
    case progress
    /// The device's conditions no longer allow it.
    case conditions
    /// Memory is short, or fewer continued tasks may run than before.
    case pressure
    /// Whoever submitted the task has cancelled it.
    case cancelled
    /// An operator has ended it.
    case `operator`
    /// The gateway has given it up, and launches it again.
    case lost
}
