import Engine
import Policy
import WakeGateTestKit
import Wire

/// The requests and observations of the clients of a simulated engine room, through all its lives.
struct RoomClients {
    struct Stream {
        let topic: Int
        let slots: Int
        var wakes: Set<WakeID> = []
    }

    struct Report {
        let wake: WakeID
        let result: FetchResult
        /// The uptime in milliseconds.
        let sentAt: Int64
        /// True if the same result was answered 204 before.
        var isRepeated = false
    }

    /// The device of each push, by its request.
    var sent: [Int: Int] = [:]
    /// The pushes that were answered 200.
    private(set) var accepted: Set<Int> = []
    /// The device and the name of each submission, by its request.
    var submissions: [Int: (device: Int, name: String)] = [:]
    /// The number of submissions that were answered 201, and their names by device.
    private(set) var submittedCount = 0
    private(set) var submitted: [Int: Set<String>] = [:]
    /// The streams of this life, by their requests.
    var streams: [Int: Stream] = [:]
    /// The wakes that workers hold and have not reported, with their streams.
    private(set) var held: [WakeID: Int] = [:]
    /// Every wake that was ever delivered.
    private(set) var wakes: Set<WakeID> = []
    /// The results that wait for their answers, by their requests.
    var reports: [Int: Report] = [:]
    /// The last wake of each device delivered in this life.
    private var lastWakes: [DeviceToken: WakeID] = [:]
    /// The results of this life that were answered 204, and the uptime in milliseconds at which they were sent.
    private(set) var settled: [WakeID: (result: FetchResult, at: Int64)] = [:]
    /// The answers by request.
    var answers: [Int: EngineOutput] = [:]
    /// Every request that was answered.
    private var answered: Set<Int> = []
    /// True if a request was refused because the store has failed.
    private(set) var hasMetFailure = false

    /// Removes streams and open requests, because the gateway was restarted.
    mutating func restarted() {
        self.streams = [:]
        self.held = [:]
        self.reports = [:]
        self.answers = [:]
        self.settled = [:]
        self.lastWakes = [:]
        self.hasMetFailure = false
    }

    /// Returns a result that is answered 204 if it is repeated now: a device's last wakes are remembered for ten
    /// minutes.
    func rememberedResult(at now: Int64) -> (wake: WakeID, result: FetchResult)? {
        let remembered = self.settled.filter { wake, settled in
            now - settled.at < 600_000 && self.lastWakes.values.contains(wake)
        }
        return remembered.min { $0.key.text < $1.key.text }.map { ($0.key, $0.value.result) }
    }

    /// The wakes that workers hold, in an order that does not depend on hashes.
    var heldInOrder: [WakeID] { self.held.keys.sorted { $0.text < $1.text } }

    /// Removes a worker's stream.
    mutating func ended(_ stream: Int) {
        self.streams[stream] = nil
        self.held = self.held.filter { $0.value != stream }
    }

    /// - Returns: the error in the result.
    mutating func take(_ told: EngineOutput) -> String? {
        if told.isAnswer {
            guard self.answered.insert(told.request).inserted else { return "a second answer: \(told)" }
            if told.status == 503 { self.hasMetFailure = true }
        }
        switch told {
        case .push: return self.takePush(told)
        case .answer: return self.takeAnswer(told)
        case .wake(let wake): return self.takeWake(wake)
        case .expiring(let wake, _, _, let stream):
            guard self.isHeld(wake, on: stream) else { return "a worker is warned of a wake that it lacks: \(told)" }
        case .expired(let wake, _, let stream):
            guard self.isHeld(wake, on: stream) else { return "a wake expired that is not in flight there: \(told)" }
            self.release(wake)
        case .released(let wake, _): self.release(wake)
        case .asked, .subscribed, .conditions, .drained, .draining: break
        }
        return nil
    }

    /// Returns true if a stream holds a wake, or has ended.
    private func isHeld(_ wake: WakeID, on stream: Int) -> Bool {
        self.held[wake] == stream || self.streams[stream] == nil
    }

    private mutating func release(_ wake: WakeID) {
        guard let stream = self.held.removeValue(forKey: wake) else { return }
        self.streams[stream]?.wakes.remove(wake)
    }

    private mutating func takePush(_ told: EngineOutput) -> String? {
        guard told.status == 200 else { return told.status == 503 ? nil : "a push is refused: \(told)" }
        guard self.sent[told.request] != nil else { return "an answer to no push: \(told)" }
        self.accepted.insert(told.request)
        return nil
    }

    private mutating func takeAnswer(_ told: EngineOutput) -> String? {
        guard let report = self.reports.removeValue(forKey: told.request) else {
            self.answers[told.request] = told
            if told.status == 201, let (device, name) = self.submissions[told.request] {
                self.submittedCount += 1
                self.submitted[device, default: []].insert(name)
            }
            return nil
        }
        if told.status == 204 {
            guard !report.isRepeated else { return nil }
            self.settled[report.wake] = (report.result, report.sentAt)
            self.release(report.wake)
            return nil
        }
        if told.status == 503 { return nil }
        // A wake may have expired or been reported while this result was in transit.
        if report.isRepeated { return "a result that was answered 204 is answered \(told) when it comes again" }
        return [404, 409, 410].contains(told.status) ? nil : "a result is answered \(told)"
    }

    private mutating func takeWake(_ wake: ReceivedWake) -> String? {
        guard self.wakes.insert(wake.id).inserted else { return "wake \(wake.id.text) came twice" }
        self.lastWakes[wake.device] = wake.id
        // A worker that has left does not receive it.
        guard let stream = self.streams[wake.stream] else { return nil }
        if let identifier = wake.push {
            let push = self.sent.keys.first { EngineRig.apnsID(UInt64($0)) == identifier }
            guard let push, self.sent[push].map({ EngineRig.token($0) }) == wake.device else {
                return "wake \(wake.id.text) carries a push of another device"
            }
        }
        self.held[wake.id] = wake.stream
        self.streams[wake.stream]?.wakes.insert(wake.id)
        if stream.wakes.count >= stream.slots { return "stream \(wake.stream) has more wakes than slots" }
        return nil
    }
}

extension WakeID {
    fileprivate var text: String {
        var text = ByteBuffer()
        self.write(to: &text)
        return text.view.string
    }
}

enum RoomEvent: CaseIterable {
    case death, deathInCommit, failedStart, failedCommit, wake, expired, released, push, wayTold
    case wallSetBack, wallSetForward, policyTimeTold, submission
}

extension Coverage<RoomEvent> {
    mutating func add(_ told: [EngineOutput]) {
        for each in told {
            switch each {
            case .wake: self.note(.wake)
            case .expired: self.note(.expired)
            case .released: self.note(.released)
            case .push where each.status == 200: self.note(.push)
            case .answer where each.status == 201: self.note(.submission)
            default: break
            }
        }
    }
}
