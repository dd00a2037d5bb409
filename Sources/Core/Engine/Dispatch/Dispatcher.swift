package import Policy
package import Wire

/// Pairs devices that are due with free worker slots, on the engine's thread.
///
/// Every verb leaves nothing undone: afterwards no device waits that a free slot could take. Only what is more than
/// `workPerStepMax` between two calls of `advance` is left for the next ones, so that no crowd keeps others waiting. A
/// device that a stream names goes to that stream first; the others take turns. A stream that comes free is given what
/// has waited longest of all that it takes.
package final class Dispatcher {
    let engine: EmbeddedEngine
    let output: any DispatchOutput
    var streams: StreamTable
    /// Streams that have ended with wakes that are to be lost.
    var ended = EndedStreams()
    /// Streams that may have a free slot again.
    var freed = FIFOQueue<Subscription>()
    /// The most wakes that are launched from queues, or lost with their streams, between two calls of `advance`.
    let workPerStepMax: Int
    /// How many of them are left.
    var workLeft: Int
    /// How many streams and changes may still be looked at before the next call of `advance` for what streams are to
    /// hear of conditions: as many as wakes, and apart from them, so that neither keeps the other waiting.
    var looksLeft: Int
    /// The gateway is shutting down: nothing new is launched.
    var isDraining = false
    /// True while devices are in memory only to be read: nothing is launched, and streams hear of nothing.
    package var isReading = false
    /// How many reports of continued tasks' progress were taken here.
    package internal(set) var progressReports: Int64 = 0

    /// A dispatcher without streams.
    ///
    /// - `wakeBytesPerStreamMax`: the bytes of payloads that a stream may hold unanswered; it gets wakes until
    ///   it has as many.
    /// - `workPerStepMax`: the most wakes that are launched from queues, or lost with their streams, between two calls
    ///   of `advance`.
    package init(
        engine: EmbeddedEngine,
        output: any DispatchOutput,
        wakeBytesPerStreamMax: Int = 4_194_304,
        workPerStepMax: Int = 4096
    ) {
        self.workPerStepMax = workPerStepMax
        self.workLeft = workPerStepMax
        self.looksLeft = workPerStepMax
        self.engine = engine
        self.output = output
        self.streams = StreamTable(wakeBytesMax: wakeBytesPerStreamMax)
    }
}

// MARK: - Time and pushes

extension Dispatcher {
    /// Goes on to `now`.
    ///
    /// - Returns: whether everything that is due was done; otherwise call again soon.
    package func advance(to now: Instant, devicesMax: Int) -> Bool {
        self.workLeft = self.workPerStepMax
        self.looksLeft = self.workPerStepMax
        let isDone = self.engine.advance(to: now, devicesMax: devicesMax)
        self.flow()
        return isDone && !self.isBehind
    }

    /// Whether more was to do than a step may: call `advance` again soon.
    package var isBehind: Bool {
        !self.ended.isEmpty || self.streams.hasConditionsToTell
            || (!self.isDraining && (!self.freed.isEmpty || self.engine.hasNewlyReady || self.engine.hasReadyTask))
    }

    /// What a push was answered.
    package enum PushOutcome: Hashable, Sendable {
        case answered(PushAnswer)
        case refused(Refusal)
    }

    /// A push arrived.
    package func push(
        _ push: IncomingPush,
        token: borrowing DeviceToken,
        topic: ByteView,
        isDryRun: Bool
    ) -> PushOutcome {
        switch self.engine.admit(token, topic: topic, isDryRun: isDryRun) {
        case .refused(let refusal): return .refused(refusal)
        case .newcomer(let topic):
            if let refusal = self.engine.memoryRefusal(push, nil, topic) { return .refused(refusal) }
            var isFree = false
            if let topic { isFree = self.freeStream(topic, token) != nil }
            return .answered(self.engine.acceptDryRun(push, device: nil, topic: topic, workerIsFree: isFree))
        case .device(let device):
            self.catchUp(device)
            let topic = self.engine.topic(of: device)
            let stream = self.freeStream(topic, token)
            guard !isDryRun else {
                if let refusal = self.engine.memoryRefusal(push, device, topic) ?? self.engine.rateRefusal(device) {
                    return .refused(refusal)
                }
                return .answered(
                    self.engine.acceptDryRun(push, device: device, topic: topic, workerIsFree: stream != nil)
                )
            }
            do throws(Refusal) {
                let answer = try self.engine.accept(push, device: device, workerIsFree: stream != nil)
                if let wake = answer.wake { self.launched(wake, for: stream) }
                self.flow()
                return .answered(answer)
            } catch {
                return .refused(error)
            }
        }
    }
}

// MARK: - Questions

extension Dispatcher {
    /// Workers of one topic, or of all.
    package struct WorkerCounts: Hashable, Sendable {
        package var connected = 0
        package var slots = 0
        package var busy = 0
        /// The streams that get no wakes: those that this gateway has.
        package var stalled = 0
        /// Which stream is stalled and why; one of them if there are several.
        package var stallReason: String?

        package init(connected: Int = 0, slots: Int = 0, busy: Int = 0) {
            self.connected = connected
            self.slots = slots
            self.busy = busy
        }
    }

    /// - Parameter topic: nil for all topics together.
    package func workerCounts(_ topic: TopicIndex?) -> WorkerCounts { self.streams.counts(topic) }

    /// The open streams and how each is: those that hold the most wakes, when there are more than `countMax`.
    package func streams(countMax: Int) -> [StreamSnapshot] {
        Array(self.streams.all).most(countMax) { $0.wakes.count }.map {
            StreamSnapshot($0, trouble: self.streams.trouble(of: $0))
        }
    }

    /// What the connected streams of a topic offer, in the order of the names.
    package func resources(_ topic: TopicIndex) -> [String] { self.streams.resources(topic) }

    /// How often a stream got no more wakes because of the bytes it held.
    package var timesStreamWasFull: Int64 { self.streams.timesFull }

    /// Everything that is known of a device, once what is due of it is done.
    package func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        self.catchUp(device)
        var snapshot = self.engine.snapshot(device)
        for index in snapshot.tasks.indices { self.noteTakers(of: &snapshot.tasks[index], device) }
        if let wake = self.engine.expiredWake(device), let stream = self.streams.holder(of: wake), !stream.hasBeenHeard
        {
            snapshot.silentWorker = stream.nameText
        }
        return snapshot
    }

    /// Says of a task of this device that waits for a slot whether any stream takes it.
    package func noteTakers(of task: inout TaskSnapshot, _ device: DeviceIndex) {
        guard case .waiting(_, let held, _) = task.state, held.first == .worker else { return }
        let target = LaunchTarget(
            kind: LaunchKind(task.task.kind),
            name: task.name,
            resources: task.details.resources
        )
        task.isTaken = self.streams.isTaken(self.engine.topic(of: device), task.device, target)
    }

    /// How many tasks of a topic are kept as waiting for a slot; some may have ceased to, never most of them.
    package func waitingTaskCount(_ topic: TopicIndex) -> Int { self.streams.waitingCount(topic) }

    /// Returns the number of classes of a topic's streams that were looked at for tasks.
    package func classesLookedAt(_ topic: TopicIndex) -> Int64 { self.streams.classesLookedAt(topic) }

    /// How many streams are open.
    package var streamCount: Int { self.streams.count }
}
