import Engine
import Policy
import Storage
import Wire

/// The lifecycle of one push on one device, reconstructed from the history.
struct PushHistory {
    /// The current state of a push, or its end.
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
    /// The time when the push was accepted; nil if the history no longer has it.
    private(set) var receivedAt: Instant?
    /// The time when the push ended; nil if it has not ended.
    private(set) var endedAt: Instant?
    private(set) var priority: Priority?
    /// The size of the payload; nil if the history does not have it.
    private(set) var payloadBytes: Int?
    /// The combined waiting time before all launches and before a discard; nil if the push has not waited.
    private(set) var waited: Waited?
    /// The name of the worker of the last wake, if it has one.
    private(set) var worker: String?
    private var workerBytes: [UInt8] = []
    /// The attempt number of the latest launch; 0 before the first launch.
    private(set) var attempts = 0
    /// The number of the push's wakes that were lost.
    private(set) var lost = 0
    private(set) var steps: [PushStep] = []

    init(_ apnsID: APNsID) {
        self.apnsID = apnsID
    }

    /// Returns the lifecycles of pushes that were received on one device, in the order of receipt.
    ///
    /// - `events`: the events of the device, the oldest first. Events of pushes received before are ignored.
    /// - `isWanted`: returns false for a push to leave out.
    static func all(
        in events: some Sequence<HistoryEvent>,
        where isWanted: (LoggedPush) -> Bool = { _ in true }
    ) -> [(push: LoggedPush, history: PushHistory)] {
        var histories: [(push: LoggedPush, history: PushHistory)] = []
        // An event names a push by its apns-id. If several pushes have this id, the event belongs to the latest of
        // them.
        var places: [APNsID: Int] = [:]
        for event in events {
            if let push = LoggedPush(event), let apnsID = event.apnsID {
                let isWanted = isWanted(push)
                places[apnsID] = isWanted ? histories.count : nil
                if isWanted { histories.append((push, PushHistory(apnsID))) }
            }
            for named in Set([event.apnsID, event.relatedPush].compactMap(\.self)) {
                if let place = places[named] { histories[place].history.append(event) }
            }
        }
        return histories
    }

    /// Applies the next event of the push, or of another push that was coalesced with this one.
    mutating func append(_ event: HistoryEvent) {
        if event.apnsID == self.apnsID {
            self.appendOwn(event)
        } else if let other = event.apnsID {
            switch event.kind {
            case .push: self.end(.coalesced(into: other), event)
            case .result: self.steps.append(PushStep(at: event.at, event: "absorbed", other: other))
            default: break
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
            self.payloadBytes = event.payloadBytes
            self.steps.append(PushStep(at: event.at, event: "received", detail: "\(disposition.name)"))
            if let older = event.relatedPush {
                self.steps.append(PushStep(at: event.at, event: "absorbed", other: older))
            }
        case .launch(_, let attempt, let coalesced):
            self.state = .inFlight
            self.attempts = Int(attempt)
            self.worker = nil
            self.workerBytes = []
            // The waiting time is not part of this text, because programs compare the text.
            let detail = "attempt \(attempt), coalesced \(coalesced)"
            self.steps.append(PushStep(at: event.at, event: "launched", detail: detail))
        case .result(let outcome):
            self.steps.append(PushStep(at: event.at, event: "result", detail: outcome.name))
            let isCompleted = outcome == .push(.newData) || outcome == .push(.noData)
            self.state = isCompleted ? .completed : .pending
            if isCompleted { self.endedAt = event.at }
            if outcome == .push(.lost) { self.lost += 1 }
            if let heir = event.relatedPush { self.end(.coalesced(into: heir), event) }
        case .discard(_, let reason): self.end(.discarded(reason), event)
        case .extended(_, let seconds):
            self.steps.append(PushStep(at: event.at, event: "extended", detail: "\(seconds) s left"))
        case .worker(let length, let place):
            let bytes = event.workerBytes
            // Earlier parts may be missing from the history.
            guard self.workerBytes.count == Int(place) * bytes.count else { break }
            self.workerBytes += bytes
            if self.workerBytes.count >= Int(length) {
                self.worker = String(validating: self.workerBytes.prefix(Int(length)), as: UTF8.self)
            }
        case .registered, .removed, .conditions, .taskSubmitted, .taskRefused, .transfersFinished, .subscribed,
            .namePart:
            break
        }
        guard let waited = event.waited else { return }
        self.waited = self.waited?.joined(waited) ?? waited
    }

    private mutating func end(_ state: State, _ event: HistoryEvent) {
        self.state = state
        self.endedAt = event.at
        let (other, reason) = self.ending
        self.steps.append(PushStep(at: event.at, event: state.name, detail: reason, other: other))
    }

    /// The state of the push in one word. For a discarded push, the reason.
    var outcome: String { self.ending.reason ?? "\(self.state.name)" }

    /// The push into which this one was coalesced, or the reason why it was discarded.
    private var ending: (into: APNsID?, reason: String?) {
        switch self.state {
        case .coalesced(let other): (other, nil)
        case .discarded(let reason): (nil, reason.rawValue)
        case .pending, .inFlight, .completed, .noWake: (nil, nil)
        }
    }
}

/// One step in the lifecycle of a push.
struct PushStep {
    let at: Instant
    let event: StaticString
    var detail: String?
    /// The other push, if two were coalesced.
    var other: APNsID?
}

// MARK: - JSON

extension PushHistory {
    /// Appends the apns-id, the state and the time of acceptance as members of the open object.
    func writeSummary(to writer: inout JSONWriter, _ offset: WallOffset) {
        writer.hex("apnsID") { self.apnsID.write(to: &$0) }
        writer.member("state", self.state.name)
        writer.member("into", self.ending.into)
        writer.member("reason", self.ending.reason)
        writer.member("receivedAt", self.receivedAt, offset)
    }

    /// Appends the push with its steps as an object.
    ///
    /// - `device`: the device; nil if it has been removed.
    /// - `pending`: the state of the device, if this push is pending on it.
    func write(
        to writer: inout JSONWriter,
        _ offset: WallOffset,
        _ device: LoggedDevice?,
        _ pending: DeviceSnapshot?
    ) {
        writer.beginObject()
        self.writeSummary(to: &writer, offset)
        writer.member("device", device) { writer, device in writer.hex { device.token.writeHex(to: &$0) } }
        writer.member("topic", device?.topic)
        writer.member("priority", self.priority.map { Int($0.rawValue) })
        writer.member("payloadBytes", self.payloadBytes)
        writer.member("attempts", self.attempts)
        writer.member("worker", self.worker)
        writer.array("held", pending?.held ?? []) { $0.string($1.name) }
        writer.member("expiresAt", pending?.state.pending?.expiry, offset)
        writer.member("coalesced", pending?.state.pending?.coalesced)
        writer.member("waited", self.waited) { writer, waited in waited.write(to: &writer) }
        writer.array("events", self.steps) { writer, step in
            writer.beginObject()
            writer.member("at", step.at, offset)
            writer.member("event", step.event)
            writer.member("detail", step.detail)
            writer.member("other", step.other)
            writer.endObject()
        }
        writer.endObject()
    }
}

/// The latest pushes to one device, reconstructed from its recent events.
struct PushList {
    /// The maximum number of pushes listed.
    static let pushesMax = 32
    /// The number of events to examine. A push with the maximum number of launches has eight events.
    static let eventsMax = 256
    /// The maximum number of events to examine, including those of tasks.
    static let examinedMax = 2048

    /// The pushes, the newest first.
    private(set) var pushes: [PushHistory] = []

    /// - Parameter recent: the recent events of the device and its pushes, the newest first.
    init(recent: [HistoryEvent]) {
        self.pushes = PushHistory.all(in: recent.reversed()).suffix(Self.pushesMax).reversed().map(\.history)
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
