import APNSProtocol
import Bytes
import DeviceEngine
import LaunchPolicy
import WakeDispatch

/// What the engine's thread owns: engine, dispatcher, store, and the effects of the step under way.
///
/// One step: go on to the present, take every command in order, make the step durable, and only then let out what it
/// has for the loops.
final class EngineCore {
    /// The most devices looked at in one step, so that pushes never wait long for a crowd that is due at once.
    private static let dueDevicesMax = 4096

    let engine: EmbeddedEngine
    let dispatcher: Dispatcher
    /// Wall clock minus policy time at the current step.
    var offset: WallOffset
    /// Refused pushes by reason; of the topics that are known, also by topic number.
    var rejected = Array(repeating: Int64(0), count: APNSReason.count)
    var rejectedByTopic: [TopicIndex: [Int64]] = [:]
    /// When the counters began, in milliseconds since 1970.
    let countingSince: Int64
    var writer = JSONWriter()
    private let store: any DeviceStore
    private let clock: PolicyClock
    private let mailboxes: [LoopMailbox]
    private let stage: EffectStage
    var isDraining = false
    /// Why the engine takes nothing more: a commit failed.
    var failure: StoreError?

    init(configuration: EngineConfiguration, store: any DeviceStore, mailboxes: [LoopMailbox]) {
        var random = RandomBits()
        let wall = SystemClock.wall
        let clock = PolicyClock(wall: wall, boot: SystemClock.boot)
        let now = clock.now(boot: SystemClock.boot)
        self.clock = clock
        self.countingSince = wall
        self.offset = WallOffset(wall: wall, now: now)
        self.store = store
        self.mailboxes = mailboxes
        self.engine = EmbeddedEngine(configuration: configuration, now: now) { random.next() }
        self.stage = EffectStage(loopCount: mailboxes.count, offset: self.offset)
        self.dispatcher = Dispatcher(engine: self.engine, output: self.stage)
    }

    /// Takes a batch, which is empty afterwards.
    ///
    /// - Returns: how many milliseconds may pass until the next step, if nothing arrives before.
    func step(_ batch: CommandBatch) -> Int64 {
        let now = self.clock.now(boot: SystemClock.boot)
        self.offset = WallOffset(wall: SystemClock.wall, now: now)
        self.stage.offset = self.offset
        guard self.failure == nil else {
            self.refuse(batch, wasPerformed: false)
            return 1000
        }
        let isDone = self.dispatcher.advance(to: now, devicesMax: Self.dueDevicesMax)
        batch.forEach(
            push: { self.push($0, $1) },
            command: { self.perform($0) }
        )
        do throws(StoreError) {
            try self.store.commit(self.engine.takeStep())
        } catch {
            self.failure = error
            self.stage.removeAll()
            self.refuse(batch, wasPerformed: true)
            return 1000
        }
        batch.removeAll()
        self.release()
        guard isDone else { return 0 }
        guard let next = self.engine.nextDue else { return 1000 }
        // A wait is never longer than a second, so that a suspended machine's wakes are late by no more than that.
        return max(0, min(1000, next.milliseconds - self.clock.now(boot: SystemClock.boot).milliseconds))
    }

    /// Answers every request of a batch that cannot be taken, and empties it.
    ///
    /// - Parameter wasPerformed: the batch was performed before its commit failed: what it counted is counted.
    private func refuse(_ batch: CommandBatch, wasPerformed: Bool) {
        batch.forEach(
            push: { self.refuse($0, .serviceUnavailable, topic: $1[0..<Int($0.topicCount)]) },
            command: { command in
                if wasPerformed, case .rejected = command { return }
                self.performAfterFailure(command)
            }
        )
        batch.removeAll()
        self.release()
    }

    private func release() {
        for loop in self.mailboxes.indices where !self.stage.batches[loop].isEmpty {
            self.mailboxes[loop].deliver(&self.stage.batches[loop])
        }
    }

    /// Answers with the JSON that `writer` holds, and empties it.
    func answer(_ address: StreamAddress, status: Int) {
        self.stage.batches[Int(address.loop)].appendAnswer(address, status: status, body: self.writer.buffer.view)
        self.writer.removeAll()
    }

    /// Answers with a reason and what to do.
    func answer(_ address: StreamAddress, _ error: APIError) {
        error.write(to: &self.writer)
        self.answer(address, status: error.status)
    }

    /// Launches nothing more, and has the loops say goodbye.
    func drain() {
        self.isDraining = true
        self.dispatcher.drain()
        for batch in self.stage.batches { batch.appendDraining() }
    }

    func answerSubscribed(_ address: StreamAddress) {
        self.stage.batches[Int(address.loop)].appendSubscribed(address)
    }
}

// MARK: - Pushes

extension EngineCore {
    private func push(_ push: PushCommand, _ bytes: ByteView) {
        let topic = bytes[0..<Int(push.topicCount)]
        guard !self.isDraining else { return self.refuse(push, .shutdown, topic: topic) }
        let collapseIDEnd = Int(push.topicCount) + Int(push.collapseIDCount)
        let incoming = IncomingPush(
            apnsID: push.apnsID,
            priority: Priority(rawValue: push.priority) ?? .immediate,
            expiration: self.expiration(push.expiration),
            collapseID: bytes[Int(push.topicCount)..<collapseIDEnd],
            payload: bytes.dropFirst(collapseIDEnd),
            wakes: push.wakes
        )
        switch self.dispatcher.push(incoming, token: push.token, topic: topic, isDryRun: push.isDryRun) {
        case .refused(let refusal): self.refuse(push, refusal, topic)
        case .answered(let answer):
            let reply = PushReply(
                address: push.reply,
                apnsID: push.apnsID,
                reason: PushReply.accepted,
                disposition: answer.disposition.rawValue,
                held: answer.held?.rawValue ?? PushReply.none,
                eligibleAt: answer.eligibleAt.map { self.offset.wallSecondsRoundedUp($0) } ?? PushReply.noMoment,
                timestamp: PushReply.noMoment
            )
            self.stage.batches[Int(push.reply.loop)].append(reply)
        }
    }

    private func expiration(_ seconds: Int64) -> ArrivingPush.Expiration {
        switch seconds {
        case PushCommand.expirationAbsent: .absent
        case 0: .nowOrNever
        default: .at(self.offset.instant(wallSeconds: UInt64(seconds)))
        }
    }

    private func refuse(_ push: PushCommand, _ refusal: Refusal, _ topic: ByteView) {
        let reason: APNSReason
        var timestamp = PushReply.noMoment
        switch refusal {
        case .unknown: reason = .badDeviceToken
        case .unregistered(let moment):
            reason = .unregistered
            timestamp = self.offset.wall(moment)
        case .otherTopic: reason = .deviceTokenNotForTopic
        case .full: reason = .tooManyRequests
        }
        self.refuse(push, reason, topic: topic, timestamp: timestamp)
    }

    private func refuse(
        _ push: PushCommand,
        _ reason: APNSReason,
        topic: ByteView,
        timestamp: Int64 = PushReply.noMoment
    ) {
        if !push.isDryRun { self.countRejected(reason.index, topic) }
        let reply = PushReply(
            address: push.reply,
            apnsID: push.apnsID,
            reason: UInt8(reason.index),
            disposition: PushReply.none,
            held: PushReply.none,
            eligibleAt: PushReply.noMoment,
            timestamp: timestamp
        )
        self.stage.batches[Int(push.reply.loop)].append(reply)
    }

    func countRejected(_ reason: Int, _ topic: ByteView) {
        self.rejected[reason] += 1
        guard let topic = self.engine.findTopic(topic) else { return }
        self.rejectedByTopic[topic, default: Array(repeating: 0, count: APNSReason.count)][reason] += 1
    }
}
