import Engine
import Gateway
import HTTPTransport
import Platform
import Policy
import WakeGateTestKit
import Wire

/// The results of an engine for providers, workers and operators, by the numbers of their requests and streams.
enum EngineOutput {
    case push(Int, PushReply)
    case answer(Int, Outcome)
    /// The output passes a request to the engine again.
    case asked(EngineRequest)
    case subscribed(Int, SubscriptionWarning? = nil)
    case wake(ReceivedWake)
    case expiring(WakeID, deadline: Int64, timeLeft: Int64, stream: Int)
    case expired(WakeID, ExpirationReason, stream: Int)
    case released(WakeID, stream: Int)
    case conditions(DeviceToken, Conditions, stream: Int)
    case drained(Int)
    case draining

    /// The number of the request that this answers; nil if it answers none.
    var answered: Int? {
        switch self {
        case .push(let request, _), .answer(let request, _), .subscribed(let request, _): request
        case .asked, .wake, .expiring, .expired, .released, .conditions, .drained, .draining: nil
        }
    }

    /// Takes the effects in the mailbox of a loop.
    static func all(from loop: LoopMailbox) -> [EngineOutput] {
        var effects = EffectBatch()
        loop.take(into: &effects)
        var heard: [EngineOutput] = []
        effects.handOver { heard.append(EngineOutput($0)) }
        return heard
    }

    private init(_ effect: Effect) {
        switch effect {
        case .pushAnswer(let reply): self = .push(reply.address.number, reply)
        case .answer(let address, let outcome): self = .answer(address.number, outcome)
        case .asked(let request): self = .asked(request)
        case .subscribed(let address, let warning): self = .subscribed(address.number, warning)
        case .wake(let address, let wake): self = .wake(ReceivedWake(wake, on: address.number))
        case .expiring(let address, let wake, let deadline, let timeLeft):
            self = .expiring(wake, deadline: deadline, timeLeft: timeLeft, stream: address.number)
        case .expired(let address, let wake, let reason): self = .expired(wake, reason, stream: address.number)
        case .released(let address, let wake): self = .released(wake, stream: address.number)
        case .conditions(let address, let device, let conditions):
            self = .conditions(device, conditions, stream: address.number)
        case .drained(let address): self = .drained(address.number)
        case .draining: self = .draining
        }
    }
}

/// A recipient of an engine's results.
protocol OutputHolder {
    /// The results in order.
    var heard: [EngineOutput] { get }
}

extension Array: OutputHolder where Element == EngineOutput {
    var heard: [EngineOutput] { self }
}

extension OutputHolder {
    /// Returns the number of answers to a request.
    func answerCount(_ request: Int) -> Int { self.heard.count { $0.answered == request } }

    /// Returns the reply to a push as a word; nil if there is none.
    func word(_ request: Int) -> String? { self.reply(request)?.word }

    func reply(_ request: Int) -> PushReply? {
        for case .push(request, let reply) in self.heard { return reply }
        return nil
    }

    func outcome(_ request: Int) -> Outcome? {
        for case .answer(request, let outcome) in self.heard { return outcome }
        return nil
    }

    /// Returns the status of a request's answer and the reason of a refusal; empty without an answer.
    func answer(_ request: Int) -> String {
        guard let outcome = self.outcome(request) else { return "" }
        return outcome.reason.map { "\(outcome.status) \($0)" } ?? "\(outcome.status)"
    }

    /// Returns the body of a request's answer; empty if there is none.
    func text(_ request: Int) -> String {
        var writer = JSONWriter()
        self.outcome(request)?.write(to: &writer)
        return writer.buffer.view.string
    }

    var wakes: [ReceivedWake] {
        self.heard.compactMap { heard in
            if case .wake(let wake) = heard { wake } else { nil }
        }
    }

    /// Returns true if a stream was notified that it holds no more wakes, and ends.
    func hasDrained(_ stream: Int) -> Bool {
        self.heard.contains { if case .drained(stream) = $0 { true } else { false } }
    }

    /// True if the loop was notified that nothing is launched any more.
    var isDraining: Bool {
        self.heard.contains { if case .draining = $0 { true } else { false } }
    }

    // MARK: On a stream, in order

    /// Returns the wakes that a stream had to release.
    func released(_ stream: Int) -> [WakeID] {
        self.heard.compactMap { heard in
            if case .released(let wake, stream) = heard { wake } else { nil }
        }
    }

    /// Returns the wakes reported to a stream as expired.
    func expired(_ stream: Int) -> [WakeID] {
        self.heard.compactMap { heard in
            if case .expired(let wake, _, stream) = heard { wake } else { nil }
        }
    }

    /// Returns the reasons of those expirations.
    func expirations(_ stream: Int) -> [ExpirationReason] {
        self.heard.compactMap { heard in
            if case .expired(_, let reason, stream) = heard { reason } else { nil }
        }
    }

    /// Returns the warnings of near deadlines on a stream, with the remaining times.
    func warnings(_ stream: Int) -> [(wake: WakeID, deadline: Int64, timeLeft: Int64)] {
        self.heard.compactMap { heard in
            guard case .expiring(let wake, let deadline, let timeLeft, stream) = heard else { return nil }
            return (wake, deadline, timeLeft)
        }
    }

    /// Returns the conditions reported to a stream.
    func conditions(_ stream: Int) -> [Conditions] {
        self.heard.compactMap { heard in
            if case .conditions(_, let conditions, stream) = heard { conditions } else { nil }
        }
    }
}

/// A wake as received by its worker.
struct ReceivedWake {
    let id: WakeID
    let stream: Int
    let device: DeviceToken
    let topic: String
    let push: APNsID?
    let attempt: UInt32
    let coalesced: UInt32
    let deadline: Int64
    let timeLeft: Int64
    let kind: WakeKind
    /// The identifier of a task, or the name of a session; empty for a push.
    let name: String
    /// The event's data.
    let text: String

    init(_ staged: StagedWake, on stream: Int) {
        let wake = staged.wake
        self.id = wake.id
        self.stream = stream
        self.device = wake.device
        self.topic = wake.topic.string
        self.push = wake.push?.apnsID
        self.attempt = wake.terms.attempt
        self.coalesced = wake.terms.coalesced
        self.deadline = wake.terms.deadline
        self.timeLeft = wake.terms.timeLeft
        self.kind = wake.kind
        self.name =
            switch wake.work {
            case nil: ""
            case .task(let name, _, _, _)?, .session(let name, _)?: name.string
            }
        var writer = JSONWriter()
        wake.write(to: &writer)
        self.text = writer.buffer.view.string
    }
}

extension PushReply {
    /// The result for the provider: a disposition, or the reason of a refusal.
    var word: String {
        self.reason?.rawValue ?? self.disposition.map { "\($0.name)" } ?? "?"
    }

    /// The hold of the push as a word; empty if there is none.
    var hold: String { self.held.map { "\($0.name)" } ?? "" }
}

extension Caller {
    /// Returns an operator with a token for these topics, authenticated like the caller of a request.
    static func ofTopics(_ topics: [Int]) throws -> Caller {
        let folder = try TemporaryFolder()
        let key = try TokenKey.make(in: folder.path)
        let token = BearerToken(
            id: BearerToken.newID(),
            role: .operator,
            topics: topics.map { EngineRig.topicName($0) },
            expiresAt: SystemClock.wall / 1000 + 3600
        )
        var configuration = GatewayConfiguration()
        configuration.stateFolder = folder.path
        var authorization = Authorization(tokens: configuration.tokenCheck { _ in }, certificates: nil)
        let shown = "bearer \(try token.text(signedWith: key))".utf8.map { $0 }
        return try shown.withByteView { shown in
            try authorization.admit(
                { AuthorizationField(value: shown) },
                on: ConnectionID(index: 0, generation: 1),
                through: .operators(isLocal: false),
                by: AccessRule(.operator, .topicOfSubject),
                topic: ByteView(),
                count: { _ in }
            ).caller
        }
    }
}

extension EngineOutput {
    var isAnswer: Bool { self.answered != nil }

    /// The number of its request or stream; 0 if it has none.
    var request: Int {
        switch self {
        case .push(let request, _), .answer(let request, _), .subscribed(let request, _), .drained(let request): request
        case .expiring(_, _, _, let stream), .expired(_, _, let stream), .released(_, let stream): stream
        case .conditions(_, _, let stream): stream
        case .wake(let wake): wake.stream
        case .asked(let request): request.reply.number
        case .draining: 0
        }
    }

    /// The HTTP status of an answer; 0 if it is none.
    var status: Int {
        switch self {
        case .push(_, let reply): reply.reason?.status ?? 200
        case .answer(_, let outcome): outcome.status
        case .subscribed: 200
        default: 0
        }
    }

    /// The word of a push, the body of another answer, or the data of a wake.
    var text: String {
        switch self {
        case .push(_, let reply): return reply.word
        case .answer(_, let outcome):
            var writer = JSONWriter()
            outcome.write(to: &writer)
            return writer.buffer.view.string
        case .wake(let wake): return wake.text
        default: return ""
        }
    }

    /// The value at a path of names; nil if there is none.
    func value(_ path: [String]) -> JSONValue? { JSONValue(self.text.utf8)?.value(at: path) }

    func string(_ path: String...) -> String? { self.value(path)?.text }

    func integer(_ path: String...) -> Int64? { self.value(path)?.integer }

    /// The steps of a push's history, each as event, detail and the other push.
    var steps: [[String]] { self.texts("events", ["event", "detail", "other"]) }

    /// The events of an explanation, the newest first, each as event, apns-id and detail.
    var recent: [[String]] { self.texts("recent", ["event", "apnsID", "detail"]) }

    /// Returns members of each element of a list; empty for those without text.
    private func texts(_ list: String, _ names: [String]) -> [[String]] {
        let elements = self.value([list])?.elements ?? []
        return elements.map { element in names.map { element[$0]?.text ?? "" } }
    }
}

extension JSONValue {
    /// Returns the value at a path of names, and of indexes of elements; nil if there is none.
    func value(at path: [String]) -> JSONValue? {
        var value: JSONValue? = self
        for name in path {
            if let index = Int(name), case .array(let elements)? = value {
                value = elements.indices.contains(index) ? elements[index] : nil
            } else {
                value = value?[name]
            }
        }
        return value
    }
}
