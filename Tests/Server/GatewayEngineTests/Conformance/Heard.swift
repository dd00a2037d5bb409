import Engine
import Gateway
import Policy
import WakeGateTestKit
import Wire

/// What providers, workers and operators heard of an engine, by the numbers of their requests and streams.
enum Heard {
    case push(Int, PushReply)
    case answer(Int, Outcome)
    /// The outlet hands a request to the engine once more.
    case asked(EngineRequest)
    case subscribed(Int)
    case wake(HeardWake)
    case expired(WakeID, ExpirationReason, stream: Int)
    case released(WakeID, stream: Int)
    case conditions(DeviceToken, Conditions, stream: Int)
    case drained(Int)
    case draining

    /// The request that this answers; nil when it answers none.
    var answered: Int? {
        switch self {
        case .push(let request, _), .answer(let request, _), .subscribed(let request): request
        case .asked, .wake, .expired, .released, .conditions, .drained, .draining: nil
        }
    }

    static func all(in effects: EffectBatch) -> [Heard] {
        var heard: [Heard] = []
        effects.handOver { heard.append(Heard($0)) }
        return heard
    }

    private init(_ effect: Effect) {
        switch effect {
        case .pushAnswer(let reply): self = .push(reply.address.number, reply)
        case .answer(let address, let outcome): self = .answer(address.number, outcome)
        case .asked(let request): self = .asked(request)
        case .subscribed(let address): self = .subscribed(address.number)
        case .wake(let address, let wake): self = .wake(HeardWake(wake, on: address.number))
        case .expired(let address, let wake, let reason): self = .expired(wake, reason, stream: address.number)
        case .released(let address, let wake): self = .released(wake, stream: address.number)
        case .conditions(let address, let device, let conditions):
            self = .conditions(device, conditions, stream: address.number)
        case .drained(let address): self = .drained(address.number)
        case .draining: self = .draining
        }
    }
}

/// A wake as its worker has got it.
struct HeardWake {
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
    /// As the provider reads it: a disposition, or the reason of a refusal.
    var word: String {
        guard self.reason == PushReply.accepted else { return APNSReason.allCases[Int(self.reason)].rawValue }
        return Disposition(rawValue: self.disposition).map { "\($0.name)" } ?? "?"
    }

    /// What holds the push, in a word; empty when nothing does.
    var hold: String { Hold(rawValue: self.held).map { "\($0.name)" } ?? "" }
}
