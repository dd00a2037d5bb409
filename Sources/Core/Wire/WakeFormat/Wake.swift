/// A wake in the form in which its worker receives it. Its views are valid as long as the bytes from which it was
/// created.
package struct Wake {
    package let id: WakeID
    package let kind: WakeKind
    package let device: DeviceToken
    package let topic: ByteView
    /// The priority, times and counts of the push. For a wake without a push, those of the launch.
    package let terms: Terms
    /// The push; nil for an empty wake and for a wake with `work`.
    package let push: Push?
    /// The task or session of the wake; nil for a push's wake.
    package let work: Work?
    /// The trace of a background task's request; empty for a push's wake.
    private let taskTrace: WakeTrace

    /// The terms of the launch. Times are in milliseconds since 1970.
    package struct Terms: BitwiseCopyable, Sendable {
        package let priority: UInt8
        /// The number of the launch of this push, counted from 1.
        package let attempt: UInt32
        /// The number of older pushes coalesced into this push.
        package let coalesced: UInt32
        package let receivedAt: Int64
        package let firstReceivedAt: Int64
        package let deadline: Int64
        /// The time until the deadline, in milliseconds.
        package let timeLeft: Int64

        /// Creates the terms of a background task's or session's wake.
        ///
        /// - `submittedAt`: the time at which the gateway accepted the request, or first learned of finished transfers.
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

    /// The push of a wake.
    package struct Push {
        package let apnsID: APNsID
        /// The collapse id; empty if there is none.
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

    /// The task or session of a wake.
    package enum Work {
        /// A background task: its identifier, and the title and subtitle of its request. An absent text is empty.
        ///
        /// - `resumption`: nil for the first launch.
        case task(
            ByteView,
            title: ByteView = ByteView(),
            subtitle: ByteView = ByteView(),
            resumption: Resumption? = nil
        )
        /// A background session: its name, and the number of finished transfers.
        case session(ByteView, count: UInt32)
    }

    /// The state from which a relaunched continued task resumes.
    package enum Resumption {
        /// The task was launched before, but reported no progress.
        case noProgress
        /// The last reported progress. An absent text is empty.
        case progress(completed: UInt64, total: UInt64, title: ByteView, subtitle: ByteView)
    }

    /// - `push`: the push; nil for an empty wake, and for a wake with `work`.
    /// - `work`: the task or session; nil if and only if the kind is `push`.
    /// - `trace`: the trace of a task's request; ignored for a push, which has its own trace.
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

    /// The trace of the push or of the task's request.
    package var trace: WakeTrace { self.push?.trace ?? self.taskTrace }
}

/// The kind of a wake, by its name in events.
package struct WakeKind: Hashable, Sendable {
    /// The maximum accepted length of a name, in bytes.
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

    /// Creates a kind from its name, which may be unknown. Returns nil if no gateway can send the name.
    package init?(_ name: String) {
        guard 1...Self.lengthMax ~= name.utf8.count, name.utf8.allSatisfy({ ($0 | 0x20) &- 0x61 < 26 }) else {
            return nil
        }
        self.name = name
    }
}

/// The trace of a wake, with the traces of coalesced pushes. Most wakes have none.
package struct WakeTrace {
    /// The trace context from the sender of the push or request; nil if there is none.
    package let parent: TraceParent?
    /// The sender's `tracestate`; empty if there is none.
    package let state: ByteView
    /// The traces of older coalesced pushes, newest first.
    package let links: [TraceParent]
    /// The number of traces that do not fit in `links`.
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
    /// Writes the wake as a JSON object on one line, for a stream's event or a webhook's request.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.hex("wake") { self.id.write(to: &$0) }
        writer.member("kind", self.kind.name)
        writer.hex("device") { self.device.writeHex(to: &$0) }
        writer.member("topic", self.topic)
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
            writer.member("task", identifier)
        case .session(let name, let count):
            writer.member("session", name)
            writer.member("count", count)
        }
    }

    fileprivate func writeTexts(to writer: inout JSONWriter) {
        guard case .task(_, let title, let subtitle, let resumption) = self else { return }
        Self.write(title: title, subtitle: subtitle, to: &writer)
        switch resumption {
        case nil: break
        case .noProgress?:
            writer.key("resumedFrom")
            writer.null()
        case .progress(let completed, let total, let title, let subtitle)?:
            writer.beginObject("resumedFrom")
            writer.member("completed", completed)
            writer.member("total", total)
            Self.write(title: title, subtitle: subtitle, to: &writer)
            writer.endObject()
        }
    }

    private static func write(title: ByteView, subtitle: ByteView, to writer: inout JSONWriter) {
        if !title.isEmpty { writer.member("title", title) }
        if !subtitle.isEmpty { writer.member("subtitle", subtitle) }
    }
}

extension Wake.Terms {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        writer.member("priority", Int64(self.priority))
        writer.member("attempt", Int64(self.attempt))
        writer.member("coalesced", Int64(self.coalesced))
        writer.member("receivedAt", self.receivedAt)
        writer.member("firstReceivedAt", self.firstReceivedAt)
        self.writeTime(to: &writer)
    }

    fileprivate func writeTaskMembers(to writer: inout JSONWriter) {
        writer.member("attempt", Int64(self.attempt))
        writer.member("submittedAt", self.receivedAt)
        self.writeTime(to: &writer)
    }

    private func writeTime(to writer: inout JSONWriter) {
        writer.member("deadline", self.deadline)
        writer.member("timeLeft", self.timeLeft)
    }
}

extension WakeTrace {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        if let parent = self.parent { writer.hex("traceparent") { parent.write(to: &$0) } }
        if !self.state.isEmpty { writer.member("tracestate", self.state) }
        guard !self.links.isEmpty else { return }
        writer.beginArray("traceLinks")
        for link in self.links { writer.hex { link.write(to: &$0) } }
        writer.endArray()
        guard self.linksDropped > 0 else { return }
        writer.member("traceLinksDropped", self.linksDropped)
    }
}

extension Wake {
    /// Writes the event for the wake on its worker's stream. The writer must be empty.
    package func writeEvent(to writer: inout JSONWriter) {
        writer.buffer.append("event: wake\nid: ")
        self.id.write(to: &writer.buffer)
        writer.buffer.append("\ndata: ")
        self.write(to: &writer)
        writer.buffer.append("\n\n")
    }
}

/// The other events on a worker's stream. The writer must be empty.
extension Wake {
    /// Writes the event for a deadline that is near.
    ///
    /// - `deadline`: in milliseconds since 1970.
    /// - `timeLeft`: in milliseconds.
    package static func writeExpiringEvent(
        _ wake: WakeID,
        deadline: Int64,
        timeLeft: Int64,
        to writer: inout JSONWriter
    ) {
        writer.buffer.append("event: expiring\ndata: ")
        writer.beginObject()
        writer.hex("wake") { wake.write(to: &$0) }
        writer.member("deadline", deadline)
        writer.member("timeLeft", timeLeft)
        writer.endObject()
        writer.buffer.append("\n\n")
    }

    /// Writes the event for an expired wake, with the reason.
    package static func writeExpiredEvent(_ wake: WakeID, reason: ExpirationReason, to writer: inout JSONWriter) {
        writer.buffer.append("event: expired\ndata: ")
        writer.beginObject()
        writer.hex("wake") { wake.write(to: &$0) }
        writer.member("reason", reason.rawValue)
        writer.endObject()
        writer.buffer.append("\n\n")
    }

    /// Writes the event for the conditions of a device.
    ///
    /// - `members`: writes the members of the conditions.
    package static func writeConditionsEvent(
        _ device: DeviceToken,
        to writer: inout JSONWriter,
        members: (inout JSONWriter) -> Void
    ) {
        writer.buffer.append("event: conditions\ndata: ")
        writer.beginObject()
        writer.hex("device") { device.writeHex(to: &$0) }
        members(&writer)
        writer.endObject()
        writer.buffer.append("\n\n")
    }
}

/// The reason in an `expired` event: why the wake ended before its worker reported a result.
package enum ExpirationReason: String, BitwiseCopyable, CaseIterable, Sendable {
    /// The deadline has passed.
    case deadline
    /// A continued task has made no progress for too long: it has stalled.
    case progress
    /// The device's conditions no longer allow the wake.
    case conditions
    /// The device is short of memory, or the maximum number of continued tasks was lowered.
    case pressure
    /// The task was cancelled.
    case cancelled
    /// An operator has ended the wake.
    case `operator`
    /// The gateway considers the wake lost and launches it again.
    case lost
}
