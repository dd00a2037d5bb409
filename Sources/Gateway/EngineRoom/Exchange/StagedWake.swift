import Bytes
import DeviceEngine
import LaunchPolicy
package import WakeFormat

/// A wake among the effects of a batch: plain memory, valid while the batch hands it over.
///
/// Behind a `Head` lie topic, collapse id, payload and what `PushTrace` keeps.
package struct StagedWake {
    private struct Head: BitwiseCopyable {
        let id: WakeID
        let kind: LaunchKind
        let device: DeviceToken
        let terms: Wake.Terms
        /// Nil for a wake without a push, which has nothing but a topic besides.
        let apnsID: APNsID?
        let topicCount: UInt32
        let collapseIDCount: UInt32
        let payloadCount: UInt32
        let traceCount: UInt32
    }

    private let bytes: ByteView

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Appends a wake for `init` to take.
    static func append(_ wake: borrowing LaunchedWake, _ offset: WallOffset, to buffer: inout ByteBuffer) {
        let push = wake.push
        let content = wake.content
        let (collapseID, payload) = (content?.collapseID ?? ByteView(), content?.payload ?? ByteView())
        let trace = content?.trace ?? ByteView()
        let head = Head(
            id: wake.id,
            kind: wake.kind,
            device: wake.token,
            terms: Wake.Terms(
                priority: push.priority.rawValue,
                attempt: push.attempts,
                coalesced: push.coalesced,
                receivedAt: offset.wall(push.receivedAt),
                firstReceivedAt: offset.wall(push.firstReceivedAt),
                deadline: offset.wall(wake.deadline),
                timeLeft: wake.timeLeft
            ),
            apnsID: content?.apnsID,
            topicCount: UInt32(wake.topic.utf8.count),
            collapseIDCount: UInt32(collapseID.count),
            payloadCount: UInt32(payload.count),
            traceCount: UInt32(trace.count)
        )
        buffer.append(memoryOf: head)
        buffer.append(wake.topic)
        buffer.append(collapseID)
        buffer.append(payload)
        buffer.append(trace)
    }

    /// The wake, whose views are of the batch.
    package var wake: Wake {
        let head = self.bytes.load(Head.self, at: 0)
        var offset = MemoryLayout<Head>.size
        func next(_ count: UInt32) -> ByteView {
            defer { offset += Int(count) }
            return self.bytes.slice(offset, count: Int(count))
        }
        let topic = next(head.topicCount)
        var push: Wake.Push?
        if let apnsID = head.apnsID {
            let (collapseID, payload) = (next(head.collapseIDCount), next(head.payloadCount))
            let trace = PushTrace(next(head.traceCount)).map { WakeTrace($0) } ?? WakeTrace()
            push = Wake.Push(apnsID: apnsID, collapseID: collapseID, payload: payload, trace: trace)
        }
        return Wake(
            head.id,
            kind: WakeKind(head.kind),
            device: head.device,
            topic: topic,
            terms: head.terms,
            push: push
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

extension WakeTrace {
    /// What the bytes of a push's trace say.
    fileprivate init(_ trace: PushTrace) {
        self.init(
            parent: trace.parent,
            state: trace.state,
            links: (0..<trace.linkCount).map { trace.link($0) },
            linksDropped: trace.linksDropped
        )
    }
}
