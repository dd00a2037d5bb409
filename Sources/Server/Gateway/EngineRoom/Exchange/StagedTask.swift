import Engine
import Policy
import Wire

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
