package import Engine
import Platform
package import Policy
package import Wire

/// What the engine has for an outlet; the bytes of a wake are valid while it is handed over.
package enum Effect {
    /// The answer to a push.
    case pushAnswer(PushReply)
    /// The answer to another request.
    case answer(StreamAddress, Outcome)
    /// What a caller asked for goes on at the engine, for which the outlet hands it over.
    case asked(EngineRequest)
    /// The stream is subscribed: its response begins.
    case subscribed(StreamAddress)
    /// A wake for an open stream.
    case wake(StreamAddress, StagedWake)
    /// The deadline of a wake that the stream holds is near: it, by the wall clock, and how long it is until then.
    case expiring(StreamAddress, WakeID, deadline: Int64, timeLeft: Int64)
    /// A wake that the stream holds has expired.
    case expired(StreamAddress, WakeID, ExpirationReason)
    /// A wake that the stream held has ended.
    case released(StreamAddress, WakeID)
    /// Conditions of a device have changed, and a stream that asked for it is told.
    case conditions(StreamAddress, DeviceToken, Conditions)
    /// The stream's worker stops, and holds no wake any more.
    case drained(StreamAddress)
    /// Nothing is launched any more.
    case draining
}

/// What steps of the engine have for one outlet, in order.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `LoopMailbox`.
package final class EffectBatch: @unchecked Sendable {
    /// An effect whose bytes, if it has any, lie in `bytes` behind those of the effects before it.
    private enum Item: BitwiseCopyable {
        case pushAnswer(PushReply)
        /// The next of `outcomes`.
        case answer(StreamAddress)
        /// The next of `requests`.
        case asked
        case subscribed(StreamAddress)
        case wake(StreamAddress, byteCount: UInt32)
        case expiring(StreamAddress, WakeID, deadline: Int64, timeLeft: Int64)
        case expired(StreamAddress, WakeID, ExpirationReason)
        case released(StreamAddress, WakeID)
        /// The next of `conditions`.
        case conditions(StreamAddress)
        case drained(StreamAddress)
        case draining
    }

    private var items: [Item] = []
    private var outcomes: [Outcome] = []
    private var requests: [EngineRequest] = []
    private var conditions: [(device: DeviceToken, now: Conditions)] = []
    private var bytes = ByteBuffer()

    package init() {}

    var isEmpty: Bool { self.items.isEmpty }

    func append(_ reply: PushReply) {
        self.items.append(.pushAnswer(reply))
    }

    /// The answer to a request that is no push.
    package func append(_ outcome: Outcome, to address: StreamAddress) {
        self.items.append(.answer(address))
        self.outcomes.append(outcome)
    }

    /// What a caller asked for goes on at the engine.
    func append(_ request: EngineRequest) {
        self.items.append(.asked)
        self.requests.append(request)
    }

    func appendSubscribed(_ address: StreamAddress) {
        self.items.append(.subscribed(address))
    }

    /// A wake for an open stream.
    func appendWake(_ wake: borrowing LaunchedWake, _ offset: WallOffset, to address: StreamAddress) {
        let before = self.bytes.count
        StagedWake.append(wake, offset, to: &self.bytes)
        self.items.append(.wake(address, byteCount: UInt32(self.bytes.count - before)))
    }

    /// The deadline of a wake that the stream holds is near.
    func appendExpiring(_ wake: WakeID, deadline: Int64, timeLeft: Int64, on address: StreamAddress) {
        self.items.append(.expiring(address, wake, deadline: deadline, timeLeft: timeLeft))
    }

    /// A wake that the stream holds has expired.
    func appendExpired(_ wake: WakeID, _ reason: ExpirationReason, on address: StreamAddress) {
        self.items.append(.expired(address, wake, reason))
    }

    /// Conditions of a device have changed.
    func append(_ conditions: Conditions, of device: DeviceToken, to address: StreamAddress) {
        self.items.append(.conditions(address))
        self.conditions.append((device, conditions))
    }

    /// A wake that the stream held has ended.
    func appendReleased(_ wake: WakeID, from address: StreamAddress) {
        self.items.append(.released(address, wake))
    }

    /// The stream's worker stops, and holds no wake any more.
    func appendDrained(_ address: StreamAddress) {
        self.items.append(.drained(address))
    }

    /// Nothing is launched any more.
    func appendDraining() {
        self.items.append(.draining)
    }

    func append(_ other: EffectBatch) {
        self.items.append(contentsOf: other.items)
        if !other.outcomes.isEmpty { self.outcomes.append(contentsOf: other.outcomes) }
        if !other.requests.isEmpty { self.requests.append(contentsOf: other.requests) }
        if !other.conditions.isEmpty { self.conditions.append(contentsOf: other.conditions) }
        self.bytes.append(other.bytes.view)
    }

    package func removeAll() {
        // Even of an empty array it would make another one.
        if !self.items.isEmpty { self.items.removeAll(keepingCapacity: true) }
        if !self.outcomes.isEmpty { self.outcomes.removeAll(keepingCapacity: true) }
        if !self.requests.isEmpty { self.requests.removeAll() }
        if !self.conditions.isEmpty { self.conditions.removeAll(keepingCapacity: true) }
        self.bytes.removeAll()
    }

    /// Hands over every effect in order.
    package func handOver(to take: (Effect) -> Void) {
        self.handOver(pushAnswer: { take(.pushAnswer($0)) }, other: take)
    }

    /// Hands over every effect in order, answers to pushes as they are: one among all effects is twice as large.
    package func handOver(pushAnswer: (PushReply) -> Void, other take: (Effect) -> Void) {
        let bytes = self.bytes.view
        var offset = 0
        var nextOutcome = 0
        var nextRequest = 0
        var nextConditions = 0
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
            case .asked:
                take(.asked(self.requests[nextRequest]))
                nextRequest += 1
            case .subscribed(let address): take(.subscribed(address))
            case .wake(let address, let count): take(.wake(address, StagedWake(next(count))))
            case .expiring(let address, let wake, let deadline, let timeLeft):
                take(.expiring(address, wake, deadline: deadline, timeLeft: timeLeft))
            case .expired(let address, let wake, let reason): take(.expired(address, wake, reason))
            case .released(let address, let wake): take(.released(address, wake))
            case .conditions(let address):
                let (device, conditions) = self.conditions[nextConditions]
                take(.conditions(address, device, conditions))
                nextConditions += 1
            case .drained(let address): take(.drained(address))
            case .draining: take(.draining)
            }
        }
    }
}

/// Where the engine leaves what it has for one outlet: a loop, or the webhooks.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field.
package final class LoopMailbox: @unchecked Sendable {
    private let monitor = Monitor()
    private var incoming = EffectBatch()
    private var settings: LoopSettings?
    private var ring: @Sendable () -> Void = {}

    package init() {}

    /// Says how the outlet is woken.
    package func attach(wake: @escaping @Sendable () -> Void) {
        self.monitor.withLock { self.ring = wake }
    }

    /// Leaves everything of `batch`, which is empty afterwards, and wakes the outlet.
    package func deliver(_ batch: inout EffectBatch) {
        self.monitor.lock()
        if self.incoming.isEmpty {
            swap(&self.incoming, &batch)
        } else {
            self.incoming.append(batch)
            batch.removeAll()
        }
        let ring = self.ring
        self.monitor.unlock()
        ring()
    }

    /// Leaves what the loop is to go on with, and wakes it.
    package func deliver(_ settings: LoopSettings) {
        let ring = self.monitor.withLock {
            self.settings = settings
            return self.ring
        }
        ring()
    }

    /// Takes everything there is into `batch`, which must be empty.
    ///
    /// - Returns: what to go on with; nil for what there is.
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

/// One thing for each outlet of the engine: every loop has its own, and the webhooks have one together.
package struct PerOutlet<Element> {
    /// By loop number.
    package var loops: [Element]
    package var webhooks: Element

    package init(loops: [Element], webhooks: Element) {
        self.loops = loops
        self.webhooks = webhooks
    }

    /// The element that what is meant for `address` goes through.
    package subscript(address: StreamAddress) -> Element {
        switch address {
        case .stream(let stream), .faulted(let stream): self.loops[Int(stream.loop)]
        case .webhook, .webhookReport: self.webhooks
        }
    }
}

extension PerOutlet: Sendable where Element: Sendable {}
