import Engine
import Policy
import WakeGateTestKit
import Wire

/// The simulation's own knowledge of all events.
struct SimulationModels {
    var checker = WakeChecker()
    var ledger = PushLedger()
    var tasks = TaskModels()
    var removed: Set<DeviceToken> = []
    var launched: Int64 = 0
    var results = PerCase<WakeOutcome>()
    /// The most recently ended wakes of each device, as many as are remembered, the newest last.
    private(set) var endedWakes: [DeviceToken: [WakeID]] = [:]

    /// The last pushes of each device with client-supplied apns-ids, as many as are remembered, the newest last.
    private(set) var sentPushes: [DeviceToken: [SentPush]] = [:]

    mutating func remember(_ push: SentPush, of token: DeviceToken) {
        self.sentPushes[token] = Array(((self.sentPushes[token] ?? []) + [push]).suffix(4))
    }

    /// Forgets earlier pushes after a new registration.
    mutating func forgetPushes(of token: DeviceToken) { self.sentPushes[token] = nil }

    mutating func remember(_ wake: WakeID, of token: DeviceToken) {
        var ended = self.endedWakes[token] ?? []
        ended.append(wake)
        self.endedWakes[token] = Array(ended.suffix(4))
    }
}

/// The behavior of a stream's worker.
enum SimulatedWorker: CaseIterable {
    case good, slow, frozen, erratic, doubling

    struct Answer {
        var after: Int64
        var result: FetchResult
    }

    /// Returns the worker's answers to a wake.
    func answers(_ generator: inout SeededGenerator, window: Int64) -> [Answer] {
        let result = generator.pick(FetchResult.allCases)
        let soon = Int64(generator.number(below: Int(window)))
        switch self {
        case .good: return [Answer(after: min(soon, 1000), result: .newData)]
        case .slow: return [Answer(after: window / 2 + soon, result: result)]
        case .frozen:
            // It sometimes recovers and answers long after the deadline.
            return generator.once(in: 5) ? [Answer(after: window + soon, result: result)] : []
        case .erratic:
            guard !generator.once(in: 3) else { return [] }
            return [Answer(after: soon * Int64(generator.number(in: 1...30)), result: result)]
        case .doubling:
            let again = generator.once(in: 2) ? result : generator.pick(FetchResult.allCases)
            return [Answer(after: soon / 2, result: result), Answer(after: soon, result: again)]
        }
    }
}

/// The planned actions of a trace's workers on the wakes that they hold.
struct PlannedDeeds {
    enum What {
        case report(WakeReport)
        /// The worker's stream ends.
        case loss
        /// The progress of a continued task.
        case advance(UInt64)
    }

    struct Deed {
        let at: Int64
        let device: Int
        let wake: WakeID
        let what: What
        let lane: Lane
        /// The sequence number of the action.
        let number: Int
        /// True if no other action is due at the same time.
        var isAlone = true
    }

    private var deeds: [Deed] = []
    /// The wakes that workers hold, with their devices and kinds.
    private var held: [WakeID: (device: Int, kind: LaunchKind)] = [:]
    private var count = 0

    /// The time of the next action.
    var next: Int64? { self.deeds.map(\.at).min() }

    /// Plans the scripted actions for a wake that a worker received.
    mutating func plan<Answer>(
        _ step: WakeScript<Answer>.Step,
        _ delivery: Delivery,
        _ device: Int,
        at now: Int64
    ) {
        let kind = delivery.kind
        self.held[delivery.wake] = (device, kind)
        self.count += 1
        func deed(_ after: Int64, _ what: What) -> Deed {
            Deed(
                at: now + after,
                device: device,
                wake: delivery.wake,
                what: what,
                lane: kind.lane,
                number: self.count
            )
        }
        var deadline = delivery.deadline.milliseconds
        if kind == .continued, let advance = step.advance {
            // An action at or after the deadline is too late. The first one is sent nevertheless.
            let window = deadline - now
            for time in stride(from: advance, to: step.delay, by: Int64.Stride(advance)) {
                self.deeds.append(deed(time, .advance(UInt64(time / advance))))
                guard now + time < deadline else { break }
                deadline = now + time + window
            }
        }
        guard now + step.delay < deadline else { return }
        switch step.answer.rawValue {
        case "lost": self.deeds.append(deed(step.delay, .loss))
        case "none": break
        default:
            if let result = FetchResult(rawValue: step.answer.rawValue) {
                self.deeds.append(deed(step.delay, .report(.push(result))))
            } else if let result = TaskResult(rawValue: step.answer.rawValue) {
                self.deeds.append(deed(step.delay, .report(.task(result))))
            }
        }
    }

    /// Takes the actions due by now, in order of time; at the same time, in order of lanes.
    mutating func takeDue(at now: Int64) -> [Deed] {
        var due = self.deeds.filter { $0.at <= now }
        self.deeds.removeAll { $0.at <= now }
        due.sort { ($0.at, $0.lane, $0.number) < ($1.at, $1.lane, $1.number) }
        for index in due.indices {
            due[index].isAlone = due.count == 1
            switch due[index].what {
            case .report, .loss: self.held[due[index].wake] = nil
            case .advance: break
            }
        }
        return due
    }

    /// Cancels all actions on a wake that ended, or is about to end, without its worker.
    ///
    /// - Returns: its kind; nil if no worker holds it.
    mutating func end(_ wake: WakeID) -> LaunchKind? {
        self.deeds.removeAll { $0.wake == wake }
        return self.held.removeValue(forKey: wake)?.kind
    }

    /// Returns true if a worker holds a wake of this device.
    func hasOthers(_ device: Int) -> Bool { self.held.values.contains { $0.device == device } }
}
