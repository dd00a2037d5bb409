package import Engine
import Platform
package import Policy
package import Wire

/// An effect of the engine for an output. A wake's bytes are valid only while it is being delivered.
package enum Effect {
    /// The answer to a push.
    case pushAnswer(PushReply)
    /// The answer to another request.
    case answer(StreamAddress, Outcome)
    /// A request that the output must pass back to the engine, which continues it.
    case asked(EngineRequest)
    /// The stream is subscribed. Its response begins, with the warning if there is one.
    case subscribed(StreamAddress, SubscriptionWarning?)
    /// A wake for an open stream.
    case wake(StreamAddress, StagedWake)
    /// The deadline of a wake on the stream is near. `deadline` is a time of the wall clock.
    case expiring(StreamAddress, WakeID, deadline: Int64, timeLeft: Int64)
    /// A wake on the stream has expired.
    case expired(StreamAddress, WakeID, ExpirationReason)
    /// A wake on the stream has ended.
    case released(StreamAddress, WakeID)
    /// The conditions of a device have changed. The stream has requested such reports.
    case conditions(StreamAddress, DeviceToken, Conditions)
    /// The stream is drained and has no more wakes.
    case drained(StreamAddress)
    /// The engine launches nothing any more.
    case draining
}

/// The effects of steps for one output, in order.
///
/// The class is `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of
/// `LoopMailbox`.
package final class EffectBatch: @unchecked Sendable {
    /// An effect. Its bytes, if it has any, follow the bytes of the previous effects in `bytes`.
    private enum Item: BitwiseCopyable {
        case pushAnswer(PushReply)
        /// The next outcome in `outcomes`.
        case answer(StreamAddress)
        case wake(StreamAddress, byteCount: UInt32)
        case released(StreamAddress, WakeID)
        /// The next effect in `others`.
        case other
    }

    private var items: [Item] = []
    private var outcomes: [Outcome] = []
    /// The effects of rare kinds.
    private var others: [Effect] = []
    private var bytes = ByteBuffer()

    package init() {}

    var isEmpty: Bool { self.items.isEmpty }

    func append(_ reply: PushReply) {
        self.items.append(.pushAnswer(reply))
    }

    /// Appends the answer to a request other than a push.
    package func append(_ outcome: Outcome, to address: StreamAddress) {
        self.items.append(.answer(address))
        self.outcomes.append(outcome)
    }

    /// Appends an effect of any other kind.
    func append(_ effect: Effect) {
        self.items.append(.other)
        self.others.append(effect)
    }

    /// Appends a wake for an open stream.
    func appendWake(_ wake: borrowing LaunchedWake, _ offset: WallOffset, to address: StreamAddress) {
        let before = self.bytes.count
        StagedWake.append(wake, offset, to: &self.bytes)
        self.items.append(.wake(address, byteCount: UInt32(self.bytes.count - before)))
    }

    /// Appends the end of a wake on a stream.
    func appendReleased(_ wake: WakeID, from address: StreamAddress) {
        self.items.append(.released(address, wake))
    }

    func append(_ other: EffectBatch) {
        self.items.append(contentsOf: other.items)
        if !other.outcomes.isEmpty { self.outcomes.append(contentsOf: other.outcomes) }
        if !other.others.isEmpty { self.others.append(contentsOf: other.others) }
        self.bytes.append(other.bytes.view)
    }

    package func removeAll() {
        // Calling `removeAll` on an empty array would allocate a new array.
        if !self.items.isEmpty { self.items.removeAll(keepingCapacity: true) }
        if !self.outcomes.isEmpty { self.outcomes.removeAll(keepingCapacity: true) }
        if !self.others.isEmpty { self.others.removeAll(keepingCapacity: true) }
        self.bytes.removeAll()
    }

    /// Passes every effect to a closure in order.
    package func handOver(to take: (Effect) -> Void) {
        self.handOver(pushAnswer: { take(.pushAnswer($0)) }, other: take)
    }

    /// Passes every effect to one of two closures, in order. Answers to pushes have their own closure, because an
    /// `Effect` is twice as large as a reply.
    package func handOver(pushAnswer: (PushReply) -> Void, other take: (Effect) -> Void) {
        let bytes = self.bytes.view
        var offset = 0
        var nextOutcome = 0
        var nextOther = 0
        func next(_ count: UInt32) -> ByteView {
            defer { offset += Int(count) }
            return bytes.slice(offset, count: Int(count))
        }
        for item in self.items {
            switch item {
            case .pushAnswer(let reply): pushAnswer(reply)
            case .answer(let address):
                take(.answer(address, self.outcomes[nextOutcome]))
                nextOutcome += 1
            case .wake(let address, let count): take(.wake(address, StagedWake(next(count))))
            case .released(let address, let wake): take(.released(address, wake))
            case .other:
                take(self.others[nextOther])
                nextOther += 1
            }
        }
    }
}

/// The mailbox through which the engine passes effects to one output: a loop, or the webhooks.
///
/// The class is `@unchecked Sendable`: `monitor` guards every field.
package final class LoopMailbox: @unchecked Sendable {
    private let monitor = Monitor()
    private var incoming = EffectBatch()
    private var settings: LoopSettings?
    private var signal: @Sendable () -> Void = {}

    package init() {}

    /// Sets the function that wakes the output.
    package func attach(wake: @escaping @Sendable () -> Void) {
        self.monitor.withLock { self.signal = wake }
    }

    /// Takes all effects of `batch`, and wakes the output.
    package func deliver(_ batch: inout EffectBatch) {
        self.monitor.lock()
        if self.incoming.isEmpty {
            swap(&self.incoming, &batch)
        } else {
            self.incoming.append(batch)
            batch.removeAll()
        }
        let signal = self.signal
        self.monitor.unlock()
        signal()
    }

    /// Stores new settings for the loop, and wakes it.
    package func deliver(_ settings: LoopSettings) {
        let signal = self.monitor.withLock {
            self.settings = settings
            return self.signal
        }
        signal()
    }

    /// Moves all effects into `batch`, which must be empty.
    ///
    /// - Returns: new settings; nil if they have not changed.
    @discardableResult
    package func take(into batch: inout EffectBatch) -> LoopSettings? {
        self.monitor.lock()
        swap(&self.incoming, &batch)
        let settings = self.settings
        if settings != nil { self.settings = nil }
        self.monitor.unlock()
        return settings
    }
}

/// One element for each output of the engine: one for every loop, and one for all webhooks.
package struct PerOutput<Element> {
    /// The elements by loop number.
    package var loops: [Element]
    package var webhooks: Element

    package init(loops: [Element], webhooks: Element) {
        self.loops = loops
        self.webhooks = webhooks
    }

    /// The element of the output for `address`.
    package subscript(address: StreamAddress) -> Element {
        switch address {
        case .stream(let stream), .faulted(let stream): self.loops[Int(stream.loop)]
        case .webhook, .webhookReport: self.webhooks
        }
    }
}

extension PerOutput: Sendable where Element: Sendable {}

/// A wake in the bytes of a batch, valid only while it is being delivered.
///
/// A `Head` is followed by texts, each after its size: the topic, the bytes of a `PushTrace`, and those of the push or
/// the task.
package struct StagedWake {
    private struct Head: BitwiseCopyable {
        let id: WakeID
        let kind: LaunchKind
        let device: DeviceToken
        let terms: Wake.Terms
        /// Nil for a wake without a push.
        var apnsID: APNsID?
        /// The number of finished transfers of a session.
        var transfers: UInt32 = 0
        var resumption = Resumption.none
    }

    /// The progress from which a task resumes.
    private enum Resumption: BitwiseCopyable {
        /// This is the first launch.
        case none
        case noProgress
        case progress(completed: UInt64, total: UInt64)
    }

    /// The texts after a head.
    private struct Texts {
        let bytes: ByteView
        var offset = MemoryLayout<Head>.size

        mutating func next() -> ByteView {
            let count = Int(self.bytes.load(UInt32.self, at: self.offset))
            let start = self.offset + MemoryLayout<UInt32>.size
            self.offset = start + count
            return self.bytes.slice(start, count: count)
        }
    }

    private let bytes: ByteView

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Appends a wake in the format that `init` reads.
    static func append(_ wake: borrowing LaunchedWake, _ offset: WallOffset, to buffer: inout ByteBuffer) {
        var head = Head(id: wake.id, kind: wake.kind, device: wake.token, terms: Self.terms(wake, offset))
        switch wake.cause {
        case .push(_, let content):
            head.apnsID = content?.apnsID
            buffer.append(memoryOf: head)
            buffer.append(sized: wake.topic)
            buffer.append(sized: content?.trace ?? ByteView())
            buffer.append(sized: content?.collapseID ?? ByteView())
            buffer.append(sized: content?.payload ?? ByteView())
        case .task(let launched):
            head.transfers = UInt32(clamping: launched.task.transfers)
            var last: TaskProgress?
            switch launched.resumedFrom {
            case nil: break
            case .noProgress?: head.resumption = .noProgress
            case .progress(let progress)?:
                head.resumption = .progress(completed: progress.completed, total: progress.total)
                last = progress
            }
            buffer.append(memoryOf: head)
            buffer.append(sized: wake.topic)
            launched.details.trace.withByteView { buffer.append(sized: $0) }
            buffer.append(sized: launched.name)
            buffer.append(sized: launched.details.title ?? "")
            buffer.append(sized: launched.details.subtitle ?? "")
            buffer.append(sized: last?.title ?? "")
            buffer.append(sized: last?.subtitle ?? "")
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

    /// The wake. Its views refer to the bytes of the batch.
    package var wake: Wake {
        let head = self.bytes.load(Head.self, at: 0)
        var texts = Texts(bytes: self.bytes)
        let topic = texts.next()
        let trace = PushTrace(texts.next()).map { WakeTrace($0) } ?? WakeTrace()
        var (push, work): (Wake.Push?, Wake.Work?)
        if head.kind != .push {
            work = Self.work(head, &texts)
        } else if let apnsID = head.apnsID {
            let (collapseID, payload) = (texts.next(), texts.next())
            push = Wake.Push(apnsID: apnsID, collapseID: collapseID, payload: payload, trace: trace)
        }
        return Wake(
            head.id,
            kind: WakeKind(head.kind),
            device: head.device,
            topic: topic,
            terms: head.terms,
            push: push,
            work: work,
            trace: trace
        )
    }

    private static func work(_ head: Head, _ texts: inout Texts) -> Wake.Work {
        let name = texts.next()
        guard head.kind != .urlSession else { return .session(name, count: head.transfers) }
        let (title, subtitle) = (texts.next(), texts.next())
        let resumption: Wake.Resumption? =
            switch head.resumption {
            case .none: nil
            case .noProgress: .noProgress
            case .progress(let completed, let total):
                .progress(completed: completed, total: total, title: texts.next(), subtitle: texts.next())
            }
        return .task(name, title: title, subtitle: subtitle, resumption: resumption)
    }
}

extension ByteBuffer {
    /// Appends a text after its size.
    fileprivate mutating func append(sized bytes: ByteView) {
        self.append(memoryOf: UInt32(bytes.count))
        self.append(bytes)
    }

    /// Appends a text after its size.
    fileprivate mutating func append(sized text: String) {
        self.append(memoryOf: UInt32(text.utf8.count))
        self.append(text)
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
    /// Converts the bytes of a push's trace.
    init(_ trace: PushTrace) {
        self.init(
            parent: trace.parent,
            state: trace.state,
            links: (0..<trace.linkCount).map { trace.link($0) },
            linksDropped: trace.linksDropped
        )
    }
}
