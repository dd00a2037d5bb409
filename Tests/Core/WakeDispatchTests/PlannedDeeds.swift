import Engine
import Foundation
import Policy
import WakeGateTestKit
import Wire

/// An answer of a worker's script in a trace.
struct TraceAnswer {
    var answer: String
    /// Milliseconds after the launch.
    var delay: Int64
    /// Every how many milliseconds before that a continued task advances; nil is never.
    var advance: Int64?

    /// What becomes of tasks that a trace says nothing of.
    static let reliable = [TraceAnswer(answer: "success", delay: 1000)]

    init(answer: String, delay: Int64) {
        self.answer = answer
        self.delay = delay
    }

    /// - Parameter step: as the trace has it.
    init?(_ step: [Any]) {
        guard let answer = step.first as? String, step.count > 1, let delay = step[1] as? Double else { return nil }
        self.answer = answer
        self.delay = TraceDriver.milliseconds(delay)
        if step.count > 2 { self.advance = (step[2] as? Double).map { TraceDriver.milliseconds($0) } }
    }
}

/// What the workers of a trace will do with the wakes that they hold.
struct PlannedDeeds {
    enum What {
        case report(WakeReport)
        /// The worker's stream ends.
        case loss
        /// A continued task is as far as this.
        case advance(UInt64)
    }

    struct Deed {
        let at: Int64
        let device: Int
        let wake: WakeID
        let what: What
        let lane: Lane
        /// Launches and what follows from them are numbered.
        let number: Int
        /// Whether nothing else is to be done at this moment.
        var isAlone = true
    }

    private var deeds: [Deed] = []
    /// The wakes that workers hold, with their devices and kinds.
    private var held: [WakeID: (device: Int, kind: LaunchKind)] = [:]
    private var count = 0

    /// When something is next to be done.
    var next: Int64? { self.deeds.map(\.at).min() }

    /// A worker got a wake: plans what its script says.
    mutating func plan(_ step: TraceAnswer, _ delivery: Delivery, _ device: Int, at now: Int64) {
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
            // What comes at the deadline or later comes too late, and is told nevertheless: once.
            let window = deadline - now
            for time in stride(from: advance, to: step.delay, by: Int64.Stride(advance)) {
                self.deeds.append(deed(time, .advance(UInt64(time / advance))))
                guard now + time < deadline else { break }
                deadline = now + time + window
            }
        }
        guard now + step.delay < deadline else { return }
        switch step.answer {
        case "lost": self.deeds.append(deed(step.delay, .loss))
        case "none": break
        default:
            if let result = FetchResult(rawValue: step.answer) {
                self.deeds.append(deed(step.delay, .report(.push(result))))
            } else if let result = TaskResult(rawValue: step.answer) {
                self.deeds.append(deed(step.delay, .report(.task(result))))
            }
        }
    }

    /// Takes what is to be done by now, in the order of time, and at one moment lane by lane.
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

    /// The wake has ended without its worker's doing, or is to: nothing is done with it any more.
    ///
    /// - Returns: its kind; nil when no worker holds it.
    mutating func end(_ wake: WakeID) -> LaunchKind? {
        self.deeds.removeAll { $0.wake == wake }
        return self.held.removeValue(forKey: wake)?.kind
    }

    /// Whether a worker holds a wake of this device.
    func hasOthers(_ device: Int) -> Bool { self.held.values.contains { $0.device == device } }
}
