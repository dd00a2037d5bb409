import Engine
import Policy
import WakeGateTestKit
import Wire

/// Checks deliveries of wakes from the outside, using only messages to workers and their answers.
struct WakeChecker {
    struct Stream {
        let topic: String
        var slots: Int
        let devices: Set<DeviceToken>
        var takes = StreamTakes.pushes
        var open: Set<WakeID> = []
        var expiredInARow: Set<WakeID> = []
        var isPaused = false
        var isDraining = false

        var isFree: Bool {
            !self.isPaused && !self.isDraining && self.expiredInARow.count < 3 && self.open.count < self.slots
        }

        func takes(_ token: DeviceToken, topic: String, _ target: LaunchTarget) -> Bool {
            self.topic == topic && (self.devices.isEmpty || self.devices.contains(token)) && self.takes.takes(target)
        }
    }

    var streams: [StreamAddress: Stream] = [:]
    private(set) var open: [WakeID: Delivery] = [:]
    /// The deadlines of open wakes that were extended.
    private var extended: [WakeID: Instant] = [:]
    /// The deadlines of open wakes that their workers were last warned of.
    private var warned: [WakeID: Instant] = [:]
    /// The progress of open wakes of continued tasks.
    private var progress: [WakeID: UInt64] = [:]
    /// The launch times of open wakes.
    private var launches: [WakeID: Instant] = [:]
    /// The launch order of open wakes.
    private var places: [WakeID: Int] = [:]
    /// The streams that hold a wake, or on which one expired since they last answered.
    private var answerers: [WakeID: StreamAddress] = [:]
    private var seen: Set<WakeID> = []
    private var byDevice: [DeviceToken: WakeID] = [:]
    private(set) var faults: [String] = []
    private(set) var stalls = 0
    /// True if the gateway is shutting down: nothing may be launched.
    var isDraining = false
    /// The paused topics.
    var pausedTopics: Set<String> = []

    /// Records that a wake was lost while its stream stayed open.
    ///
    /// - Returns: the wake, if it was in flight.
    mutating func lost(_ wake: WakeID) -> Delivery? {
        self.answerers[wake] = nil
        return self.close(wake)
    }

    /// Records that the gateway ended the stream.
    mutating func drained(_ address: StreamAddress) {
        let stream = self.streams[address]
        if stream?.isDraining != true { self.faults.append("a stream was ended without a request") }
        if !self.ended(address).isEmpty { self.faults.append("a stream was ended with wakes in flight") }
    }

    /// Checks the answer to a request for an extension.
    ///
    /// - Parameters:
    ///   - longest: the maximum total extension of a wake.
    ///   - window: the initial time of a processing task, which may have changed since its launch.
    /// - Returns: true if the deadline moved.
    mutating func extended(
        _ wake: WakeID,
        until moment: Instant,
        _ longest: Int64,
        window: Int64,
        _ outcome: ExtensionOutcome
    ) -> Bool {
        guard let delivery = self.open[wake] else {
            switch outcome {
            case .ended, .unknown: break
            case .lasts, .limitReached: self.faults.append("wake \(wake) has ended, and was answered \(outcome)")
            }
            return false
        }
        let deadline = self.deadline(delivery)
        if delivery.kind == .continued {
            if outcome != .limitReached(deadline) {
                self.faults.append("wake \(wake) of a continued task cannot be extended, and was answered \(outcome)")
            }
            return false
        }
        var limit = delivery.deadline + longest
        if delivery.kind == .processing, let launched = self.launches[wake] { limit = launched + window + longest }
        let expected = max(deadline, min(moment, limit))
        let isRefused = moment > deadline && expected == deadline
        if outcome != (isRefused ? .limitReached(deadline) : .lasts(expected)) {
            self.faults.append("wake \(wake) should last until \(expected), and was answered \(outcome)")
        }
        self.extended[wake] = expected
        return expected > deadline
    }

    /// Checks the answer to a progress report.
    ///
    /// - Parameter window: the maximum time between two advances.
    mutating func progressed(
        _ wake: WakeID,
        _ completed: UInt64,
        at now: Instant,
        _ window: Int64,
        _ outcome: ProgressOutcome
    ) {
        guard let delivery = self.open[wake] else {
            switch outcome {
            case .ended, .unknown: break
            case .lasts, .notContinued: self.faults.append("wake \(wake) has ended, and its progress was \(outcome)")
            }
            return
        }
        var expected = ProgressOutcome.notContinued
        if delivery.kind == .continued {
            if completed > self.progress[wake, default: 0] {
                self.progress[wake] = completed
                self.extended[wake] = now + window
            }
            expected = .lasts(self.deadline(delivery))
        }
        if outcome != expected { self.faults.append("the progress of wake \(wake) was \(outcome), not \(expected)") }
    }

    /// Checks that a wake does not expire before its deadline.
    mutating func reachedDeadline(_ wake: WakeID, at now: Instant) {
        guard let delivery = self.open[wake], self.deadline(delivery) > now else { return }
        self.faults.append("wake \(wake) expired before its deadline")
    }

    mutating func ended(_ address: StreamAddress) -> [Delivery] {
        let wakes = self.streams.removeValue(forKey: address)?.open ?? []
        self.answerers = self.answerers.filter { $0.value != address }
        return wakes.sorted { ($0.first, $0.second) < ($1.first, $1.second) }.compactMap { self.close($0) }
    }

    /// Records a restart of the gateway, which ends every stream.
    ///
    /// - Returns: the wakes that were in flight, in order of launch.
    mutating func restarted() -> [Delivery] {
        self.isDraining = false
        let places = self.places
        return self.streams.keys.sorted { $0.number < $1.number }.flatMap { self.ended($0) }.sorted { left, right in
            (places[left.wake] ?? 0) < (places[right.wake] ?? 0)
        }
    }

    /// - Parameters:
    ///   - laneMax: the maximum number of wakes of its lane in flight on its device.
    ///   - isForced: true if an operator launched it.
    mutating func delivered(_ delivery: Delivery, at now: Instant, laneMax: Int = 1, isForced: Bool = false) {
        let name = "wake \(delivery.wake)"
        if !isForced, self.pausedTopics.contains(delivery.topic) {
            self.faults.append("\(name) launched automatically while its topic is paused")
        }
        if !self.seen.insert(delivery.wake).inserted { self.faults.append("\(name) was delivered twice") }
        if self.isDraining { self.faults.append("\(name) was launched while draining") }
        if self.count(delivery.token, delivery.kind.lane) >= laneMax {
            self.faults.append("\(name) is one too many in flight in its lane")
        }
        if delivery.deadline <= now { self.faults.append("\(name) was past its deadline when it was launched") }
        guard let stream = self.streams[delivery.stream] else {
            self.faults.append("\(name) went to a stream that has ended")
            return
        }
        if !stream.isFree { self.faults.append("\(name) went to a stream that is not free") }
        if !stream.takes(delivery.token, topic: delivery.topic, delivery.target) {
            self.faults.append("\(name) went to a stream that did not ask for it")
        }
        if stream.devices.isEmpty, !self.naming(delivery).isEmpty {
            self.faults.append("\(name) passed a free stream that names its device")
        }
        self.open[delivery.wake] = delivery
        self.answerers[delivery.wake] = delivery.stream
        self.places[delivery.wake] = self.seen.count
        self.launches[delivery.wake] = now
        if delivery.kind == .push { self.byDevice[delivery.token] = delivery.wake }
        self.streams[delivery.stream]?.open.insert(delivery.wake)
    }

    /// Checks that workers are warned once of each deadline of a wake in flight that is near.
    mutating func warned(_ warnings: [RecordingOutput.Warning], at now: Instant) {
        for warning in warnings {
            let name = "wake \(warning.wake)"
            guard let delivery = self.open[warning.wake], delivery.stream == warning.stream else {
                self.faults.append("\(name) is not in flight on a stream that is warned")
                continue
            }
            if warning.deadline != self.deadline(delivery) { self.faults.append("\(name) has another deadline") }
            let timeLeft = warning.deadline.milliseconds - now.milliseconds
            if warning.timeLeft != timeLeft || !(1...5000).contains(timeLeft) {
                self.faults.append("\(name) is said to have \(warning.timeLeft) ms left")
            }
            if self.warned[warning.wake] == warning.deadline { self.faults.append("\(name) was warned of twice") }
            self.warned[warning.wake] = warning.deadline
        }
    }

    /// - Returns: the wake, if it was in flight.
    mutating func expired(_ wake: WakeID, on address: StreamAddress) -> Delivery? {
        guard self.streams[address]?.open.contains(wake) == true else {
            self.faults.append("wake \(wake) expired on a stream that does not hold it")
            return nil
        }
        let delivery = self.close(wake)
        // Continued and processing tasks do not stall a silent stream, and late answers to them do not end a stall.
        guard delivery?.kind.lane == .short else {
            self.answerers[wake] = nil
            return delivery
        }
        self.streams[address]?.expiredInARow.insert(wake)
        if self.streams[address]?.expiredInARow.count == 3 { self.stalls += 1 }
        return delivery
    }

    /// Records a worker's report, which shows that its stream is responsive.
    ///
    /// - Returns: the wake, if this report ended it.
    mutating func answered(_ wake: WakeID, _ outcome: ReportOutcome) -> Delivery? {
        let address = self.answerers[wake]
        var ended: Delivery?
        switch outcome {
        case .ended:
            if self.open[wake] == nil { self.faults.append("wake \(wake) ended twice") }
            ended = self.close(wake)
            self.answerers[wake] = nil
        case .otherKind: return nil
        case .repeated, .endedOtherwise, .unknown:
            if self.open[wake] != nil { self.faults.append("wake \(wake) was in flight, and answered \(outcome)") }
        }
        if let address {
            for expired in self.streams[address]?.expiredInARow ?? [] { self.answerers[expired] = nil }
            self.streams[address]?.expiredInARow = []
        }
        return ended
    }

    /// Checks the invariants after a step.
    mutating func stepEnded(at now: Instant) {
        for (wake, delivery) in self.open where self.deadline(delivery) <= now {
            self.faults.append("wake \(wake) is past its deadline and still in flight")
        }
        for (address, stream) in self.streams where stream.isDraining && stream.open.isEmpty {
            self.faults.append("stream \(address.number) is drained and has not ended")
        }
    }

    /// Returns true if a pending launch of the device must launch: a free stream can take it, and launches are allowed.
    func couldTake(_ token: DeviceToken, topic: String, _ target: LaunchTarget = .push) -> Bool {
        !self.pausedTopics.contains(topic) && self.couldTakeForced(token, topic: topic, target)
    }

    /// Returns true if an operator's launch on the device must succeed.
    func couldTakeForced(_ token: DeviceToken, topic: String, _ target: LaunchTarget = .push) -> Bool {
        !self.isDraining && self.hasFreeTaker(token, topic: topic, target)
    }

    /// Returns true if a free stream can take the launch of the device.
    func hasFreeTaker(_ token: DeviceToken, topic: String, _ target: LaunchTarget = .push) -> Bool {
        self.streams.values.contains { $0.isFree && $0.takes(token, topic: topic, target) }
    }

    /// Returns the free streams that name the device of a wake and take it.
    func naming(_ delivery: Delivery) -> [Stream] {
        self.streams.values.filter {
            $0.isFree && !$0.devices.isEmpty && $0.takes(delivery.token, topic: delivery.topic, delivery.target)
        }
    }

    /// Returns the number of wakes of a lane in flight on the device.
    func count(_ token: DeviceToken, _ lane: Lane) -> Int {
        self.open.values.count { $0.token == token && $0.kind.lane == lane }
    }

    /// Returns the deadline of an open wake.
    func deadline(_ delivery: Delivery) -> Instant { self.extended[delivery.wake] ?? delivery.deadline }

    func wakeInFlight(_ token: DeviceToken) -> WakeID? { self.byDevice[token] }

    private mutating func close(_ wake: WakeID) -> Delivery? {
        guard let delivery = self.open.removeValue(forKey: wake) else { return nil }
        self.extended[wake] = nil
        self.warned[wake] = nil
        self.progress[wake] = nil
        self.places[wake] = nil
        self.launches[wake] = nil
        self.streams[delivery.stream]?.open.remove(wake)
        if delivery.kind == .push { self.byDevice[delivery.token] = nil }
        return delivery
    }
}

extension TaskSnapshot {
    /// The requirements of the launch for a stream.
    var target: LaunchTarget {
        LaunchTarget(kind: LaunchKind(self.task.kind), name: self.name, resources: self.details.resources)
    }
}

extension Delivery {
    /// The requirements of the launch for a stream.
    var target: LaunchTarget {
        LaunchTarget(kind: self.kind, name: self.task?.name ?? "", resources: self.task?.details.resources ?? [])
    }
}
