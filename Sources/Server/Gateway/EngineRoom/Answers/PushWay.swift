import Engine
import Policy
import Storage
import Wire

/// The way of one push through one device, as the history tells it.
struct PushWay {
    /// Where a push is, or how it ended.
    enum State: Hashable {
        case pending, inFlight, completed, noWake
        case coalesced(into: APNsID)
        case discarded(DiscardReason)

        var name: StaticString {
            switch self {
            case .pending: "pending"
            case .inFlight: "inFlight"
            case .completed: "completed"
            case .noWake: "noWake"
            case .coalesced: "coalesced"
            case .discarded: "discarded"
            }
        }
    }

    let apnsID: APNsID
    private(set) var state = State.pending
    /// When it was accepted; nil when the history does not reach back that far.
    private(set) var receivedAt: Instant?
    /// When it ended; nil while it has not.
    private(set) var endedAt: Instant?
    private(set) var priority: Priority?
    /// The number of launches so far.
    private(set) var attempts = 0
    private(set) var steps: [PushStep] = []

    init(_ apnsID: APNsID) {
        self.apnsID = apnsID
    }

    /// Takes what happened next to it, or to a push it was coalesced with.
    mutating func append(_ event: HistoryEvent) {
        if event.apnsID == self.apnsID {
            self.appendOwn(event)
        } else if let other = event.apnsID {
            switch event.kind {
            case .push: self.end(.coalesced(into: other), event)
            case .result: self.steps.append(PushStep(at: event.at, event: "absorbed", other: other))
            case .registered, .removed, .launch, .discard, .conditions, .extended, .taskSubmitted, .transfersFinished,
                .namePart:
                break
            }
        }
    }

    private mutating func appendOwn(_ event: HistoryEvent) {
        switch event.kind {
        case .push(let disposition):
            self.state = disposition == .noWake ? .noWake : .pending
            self.receivedAt = event.at
            self.endedAt = disposition == .noWake ? event.at : nil
            self.priority = event.terms?.priority
            self.steps.append(PushStep(at: event.at, event: "received", detail: "\(disposition.name)"))
            if let older = event.related {
                self.steps.append(PushStep(at: event.at, event: "absorbed", other: older))
            }
        case .launch(_, let attempt, let coalesced):
            self.state = .inFlight
            self.attempts = Int(attempt)
            let detail = "attempt \(attempt), coalesced \(coalesced)"
            self.steps.append(PushStep(at: event.at, event: "launched", detail: detail))
        case .result(let outcome):
            self.steps.append(PushStep(at: event.at, event: "result", detail: outcome.name))
            let isCompleted = outcome == .push(.newData) || outcome == .push(.noData)
            self.state = isCompleted ? .completed : .pending
            if isCompleted { self.endedAt = event.at }
            if let heir = event.related { self.end(.coalesced(into: heir), event) }
        case .discard(_, let reason): self.end(.discarded(reason), event)
        case .extended(_, let seconds):
            self.steps.append(PushStep(at: event.at, event: "extended", detail: "\(seconds) s left"))
        case .registered, .removed, .conditions, .taskSubmitted, .transfersFinished, .namePart: break
        }
    }

    private mutating func end(_ state: State, _ event: HistoryEvent) {
        self.state = state
        self.endedAt = event.at
        let (other, reason) = self.ending
        self.steps.append(PushStep(at: event.at, event: state.name, detail: reason, other: other))
    }

    /// How the push ended or where it is, in one word: why, when it was discarded.
    var outcome: String { self.ending.reason ?? "\(self.state.name)" }

    /// The push it was coalesced into, or why it was discarded.
    private var ending: (into: APNsID?, reason: String?) {
        switch self.state {
        case .coalesced(let other): (other, nil)
        case .discarded(let reason): (nil, reason.rawValue)
        case .pending, .inFlight, .completed, .noWake: (nil, nil)
        }
    }
}

/// One step on a push's way.
struct PushStep {
    let at: Instant
    let event: StaticString
    var detail: String?
    /// The other push of a coalescing.
    var other: APNsID?
}

// MARK: - JSON

extension PushWay {
    /// Appends apns-id, state, and when it was received, as members of the object that is open.
    func writeSummary(to writer: inout JSONWriter, _ offset: WallOffset) {
        writer.key("apnsID")
        writer.hex { self.apnsID.write(to: &$0) }
        writer.key("state")
        writer.string(self.state.name)
        writer.key("into")
        writer.optional(self.ending.into) { writer, other in writer.hex { other.write(to: &$0) } }
        writer.key("reason")
        writer.optional(self.ending.reason) { writer, reason in writer.string(reason) }
        writer.key("receivedAt")
        writer.moment(self.receivedAt, offset)
    }

    /// Appends the push with its steps as an object.
    ///
    /// - Parameter device: the device; nil if it has been removed.
    func write(to writer: inout JSONWriter, _ offset: WallOffset, _ device: LoggedDevice?) {
        writer.beginObject()
        self.writeSummary(to: &writer, offset)
        writer.key("device")
        writer.optional(device) { writer, device in writer.hex { device.token.writeHex(to: &$0) } }
        writer.key("topic")
        writer.optional(device) { writer, device in writer.string(device.topic) }
        writer.key("priority")
        writer.optional(self.priority) { writer, priority in writer.integer(Int(priority.rawValue)) }
        writer.key("attempts")
        writer.integer(self.attempts)
        writer.key("events")
        writer.beginArray()
        for step in self.steps {
            writer.beginObject()
            writer.key("at")
            writer.moment(step.at, offset)
            writer.key("event")
            writer.string(step.event)
            writer.key("detail")
            writer.optional(step.detail) { writer, detail in writer.string(detail) }
            writer.key("other")
            writer.optional(step.other) { writer, other in writer.hex { other.write(to: &$0) } }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}

/// The last pushes to one device, made of what happened to it last.
struct PushList {
    /// The most pushes that are listed.
    static let pushesMax = 32
    /// How far the list looks back: a push that is launched as often as may be has eight events.
    static let eventsMax = 256
    /// How far it looks back when most of what happened befell tasks.
    static let examinedMax = 2048

    /// The newest first.
    private(set) var pushes: [PushWay] = []

    /// - Parameter recent: what happened to the device and its pushes last, the newest first.
    init(recent: [HistoryEvent]) {
        var places: [APNsID: Int] = [:]
        var ways: [PushWay] = []
        for event in recent.reversed() {
            // A push whose beginning lies farther back is not among the last.
            if let apnsID = event.apnsID, case .push = event.kind {
                places[apnsID] = ways.count
                ways.append(PushWay(apnsID))
            }
            for named in Set([event.apnsID, event.related].compactMap(\.self)) {
                if let place = places[named] { ways[place].append(event) }
            }
        }
        self.pushes = ways.suffix(Self.pushesMax).reversed()
    }

    /// Appends the pushes as an array.
    func write(to writer: inout JSONWriter, _ offset: WallOffset) {
        writer.beginArray()
        for push in self.pushes {
            writer.beginObject()
            push.writeSummary(to: &writer, offset)
            writer.endObject()
        }
        writer.endArray()
    }
}
