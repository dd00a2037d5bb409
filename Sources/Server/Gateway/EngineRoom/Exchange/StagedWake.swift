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
