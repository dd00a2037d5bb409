import Engine
import Wire

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
