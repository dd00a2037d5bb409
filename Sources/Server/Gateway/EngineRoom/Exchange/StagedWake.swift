import Engine
import Policy
package import Wire

/// A wake among the effects of a batch: plain memory, valid while the batch hands it over.
///
/// Behind a `Head` lies the topic, and behind that what the wake is for: a `StagedPush` or a `StagedTask`.
package struct StagedWake {
    private struct Head: BitwiseCopyable {
        let id: WakeID
        let kind: LaunchKind
        let device: DeviceToken
        let terms: Wake.Terms
        let topicCount: UInt32
    }

    private let bytes: ByteView

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Appends a wake for `init` to take.
    static func append(_ wake: borrowing LaunchedWake, _ offset: WallOffset, to buffer: inout ByteBuffer) {
        let head = Head(
            id: wake.id,
            kind: wake.kind,
            device: wake.token,
            terms: Self.terms(wake, offset),
            topicCount: UInt32(wake.topic.utf8.count)
        )
        buffer.append(memoryOf: head)
        buffer.append(wake.topic)
        switch wake.cause {
        case .push(_, let content): StagedPush.append(content, to: &buffer)
        case .task(let launched): StagedTask.append(launched, to: &buffer)
        }
    }

    private static func terms(_ wake: borrowing LaunchedWake, _ offset: WallOffset) -> Wake.Terms {
        let (deadline, timeLeft) = (offset.wall(wake.deadline), wake.timeLeft)
        switch wake.cause {
        case .push(let push, _):
            return Wake.Terms(
                priority: push.priority.rawValue,
                attempt: push.attempts,
                coalesced: push.coalesced,
                receivedAt: offset.wall(push.receivedAt),
                firstReceivedAt: offset.wall(push.firstReceivedAt),
                deadline: deadline,
                timeLeft: timeLeft
            )
        case .task(let launched):
            return Wake.Terms(
                attempt: launched.task.attempts,
                submittedAt: offset.wall(launched.task.arrivedAt),
                deadline: deadline,
                timeLeft: timeLeft
            )
        }
    }

    /// The wake, whose views are of the batch.
    package var wake: Wake {
        let head = self.bytes.load(Head.self, at: 0)
        let topicStart = MemoryLayout<Head>.size
        let topic = self.bytes.slice(topicStart, count: Int(head.topicCount))
        let rest = self.bytes.dropFirst(topicStart + Int(head.topicCount))
        let isPush = head.kind == .push
        return Wake(
            head.id,
            kind: WakeKind(head.kind),
            device: head.device,
            topic: topic,
            terms: head.terms,
            push: isPush ? StagedPush.push(in: rest) : nil,
            work: isPush ? nil : StagedTask.work(in: rest),
            trace: isPush ? WakeTrace() : StagedTask.trace(in: rest)
        )
    }
}

extension WakeKind {
    fileprivate init(_ kind: LaunchKind) {
        self =
            switch kind {
            case .push: .push
            case .appRefresh: .appRefresh
            case .processing: .processing
            case .continued: .continued
            case .urlSession: .urlSession
            }
    }
}

/// The push of a wake among the effects of a batch: behind a `Head` collapse id, payload and what `PushTrace` keeps.
enum StagedPush {
    private struct Head: BitwiseCopyable {
        /// Nil for a wake without a push.
        let apnsID: APNsID?
        let collapseIDCount: UInt32
        let payloadCount: UInt32
        let traceCount: UInt32
    }

    /// - `content`: nil for a wake without a push.
    static func append(_ content: PushContent?, to buffer: inout ByteBuffer) {
        let (collapseID, payload) = (content?.collapseID ?? ByteView(), content?.payload ?? ByteView())
        let trace = content?.trace ?? ByteView()
        let head = Head(
            apnsID: content?.apnsID,
            collapseIDCount: UInt32(collapseID.count),
            payloadCount: UInt32(payload.count),
            traceCount: UInt32(trace.count)
        )
        buffer.append(memoryOf: head)
        buffer.append(collapseID)
        buffer.append(payload)
        buffer.append(trace)
    }

    /// What was appended; nil when there was no push. Its views are of `bytes`.
    static func push(in bytes: ByteView) -> Wake.Push? {
        let head = bytes.load(Head.self, at: 0)
        guard let apnsID = head.apnsID else { return nil }
        var offset = MemoryLayout<Head>.size
        func next(_ count: UInt32) -> ByteView {
            defer { offset += Int(count) }
            return bytes.slice(offset, count: Int(count))
        }
        let (collapseID, payload) = (next(head.collapseIDCount), next(head.payloadCount))
        let trace = PushTrace(next(head.traceCount)).map { WakeTrace($0) } ?? WakeTrace()
        return Wake.Push(apnsID: apnsID, collapseID: collapseID, payload: payload, trace: trace)
    }
}

extension WakeTrace {
    /// What the bytes of a push's trace say.
    init(_ trace: PushTrace) {
        self.init(
            parent: trace.parent,
            state: trace.state,
            links: (0..<trace.linkCount).map { trace.link($0) },
            linksDropped: trace.linksDropped
        )
    }
}

/// The task or session of a wake among the effects of a batch: behind a `Head` what `PushTrace` keeps of its request's
/// trace, its name, title and subtitle, and title and subtitle of the progress that it goes on from.
enum StagedTask {
    private struct Head: BitwiseCopyable {
        /// What the launch goes on from.
        enum Resumption: BitwiseCopyable {
            /// The launch is the first.
            case none
            case nothingTold
            case progress(completed: UInt64, total: UInt64)
        }

        /// The wake is a session's, with so many finished transfers; nil for a task's.
        let transfers: UInt32?
        let resumption: Resumption
        let traceCount: UInt16
        let nameCount: UInt16
        let titleCount: UInt16
        let subtitleCount: UInt16
        let lastTitleCount: UInt16
        let lastSubtitleCount: UInt16
    }

    static func append(_ launched: LaunchedTask, to buffer: inout ByteBuffer) {
        let task = launched.task
        let last = launched.resumedFrom?.progress
        let texts = [launched.name, launched.details.title, launched.details.subtitle, last?.title, last?.subtitle]
        let counts = texts.map { UInt16(clamping: $0?.utf8.count ?? 0) }
        let head = Head(
            transfers: task.kind == .urlSession ? UInt32(clamping: task.transfers) : nil,
            resumption: Self.resumption(launched),
            traceCount: UInt16(clamping: launched.details.trace.count),
            nameCount: counts[0],
            titleCount: counts[1],
            subtitleCount: counts[2],
            lastTitleCount: counts[3],
            lastSubtitleCount: counts[4]
        )
        buffer.append(memoryOf: head)
        buffer.append(launched.details.trace)
        for case let text? in texts { buffer.append(text) }
    }

    /// The trace of what was appended, whose views are of `bytes`.
    static func trace(in bytes: ByteView) -> WakeTrace {
        let count = Int(bytes.load(Head.self, at: 0).traceCount)
        return PushTrace(bytes.slice(MemoryLayout<Head>.size, count: count)).map { WakeTrace($0) } ?? WakeTrace()
    }

    /// What was appended, whose views are of `bytes`.
    static func work(in bytes: ByteView) -> Wake.Work {
        let head = bytes.load(Head.self, at: 0)
        var offset = MemoryLayout<Head>.size + Int(head.traceCount)
        func next(_ count: UInt16) -> ByteView {
            defer { offset += Int(count) }
            return bytes.slice(offset, count: Int(count))
        }
        let name = next(head.nameCount)
        if let transfers = head.transfers { return .session(name, count: transfers) }
        let (title, subtitle) = (next(head.titleCount), next(head.subtitleCount))
        let (lastTitle, lastSubtitle) = (next(head.lastTitleCount), next(head.lastSubtitleCount))
        let resumption: Wake.Resumption? =
            switch head.resumption {
            case .none: nil
            case .nothingTold: .nothingTold
            case .progress(let completed, let total):
                .progress(completed: completed, total: total, title: lastTitle, subtitle: lastSubtitle)
            }
        return .task(name, title: title, subtitle: subtitle, resumption: resumption)
    }

    private static func resumption(_ launched: LaunchedTask) -> Head.Resumption {
        switch launched.resumedFrom {
        case nil: .none
        case .nothingTold?: .nothingTold
        case .progress(let last)?: .progress(completed: last.completed, total: last.total)
        }
    }
}

extension TaskResumption {
    fileprivate var progress: TaskProgress? {
        if case .progress(let progress) = self { progress } else { nil }
    }
}
