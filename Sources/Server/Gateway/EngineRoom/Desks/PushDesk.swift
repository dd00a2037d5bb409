import Engine
import Policy
package import Wire

/// Has pushes taken one by one, and says what each is answered.
package final class PushDesk {
    /// When to send a push again that found no room: for devices and topics somebody has to make it, memory is free
    /// again when wakes have ended.
    private static let retryAfterSeconds: (places: Int64, memory: Int64) = (300, 30)

    private let records: GatewayRecords
    private let limits: LimitCounts
    private var isDraining = false

    package init(_ records: GatewayRecords, _ limits: LimitCounts) {
        self.records = records
        self.limits = limits
    }

    /// Every push is refused from now on: the gateway is shutting down.
    package func drain() { self.isDraining = true }

    /// Takes a push, whose topic, collapse id, payload and trace `bytes` holds.
    package func take(_ push: PushCommand, _ bytes: ByteView, _ workspace: Workspace) -> PushReply {
        let topic = bytes[0..<Int(push.topicCount)]
        guard !self.isDraining else { return self.refuse(push, .shutdown, topic, workspace) }
        let collapseIDEnd = Int(push.topicCount) + Int(push.collapseIDCount)
        let payloadEnd = collapseIDEnd + Int(push.payloadCount)
        var incoming = IncomingPush(
            apnsID: push.apnsID,
            isNamedByClient: push.isNamedByClient,
            priority: Priority(rawValue: push.priority) ?? .immediate,
            expiration: Self.expiration(push.expiration, workspace.offset),
            collapseID: bytes[Int(push.topicCount)..<collapseIDEnd],
            payload: bytes[collapseIDEnd..<payloadEnd],
            wakes: push.wakes,
            trace: bytes.dropFirst(payloadEnd)
        )
        if workspace.remote != nil {
            incoming = workspace.dispatcher.reachingElsewhere(incoming, token: push.token, topic: topic)
        }
        switch workspace.dispatcher.push(incoming, token: push.token, topic: topic, isDryRun: push.isDryRun) {
        case .refused(let refusal): return self.refuse(push, refusal, topic, workspace)
        case .answered(let answer):
            return PushReply(
                address: push.reply,
                apnsID: push.apnsID,
                reason: PushReply.accepted,
                disposition: answer.disposition.rawValue,
                held: answer.held?.rawValue ?? PushReply.none,
                warnings: push.warnings,
                eligibleAt: answer.eligibleAt.map { workspace.offset.wallSecondsRoundedUp($0) } ?? PushReply.noMoment,
                timestamp: PushReply.noMoment
            )
        }
    }

    /// Takes a push of an operator's, of this topic.
    func take(_ push: TestPush, to token: DeviceToken, of topic: [UInt8], _ workspace: Workspace) -> PushedAnswer {
        let (command, bytes) = push.command(to: token, of: topic)
        let answer = bytes.withByteView { bytes in
            guard let reason = push.refusal else { return self.take(command, bytes, workspace) }
            return self.refuse(command, reason, bytes[0..<topic.count], workspace)
        }
        return PushedAnswer(answer)
    }

    /// Refuses a push because the store has failed.
    package func refuseUnstored(_ push: PushCommand, _ bytes: ByteView, _ workspace: Workspace) -> PushReply {
        self.refuse(push, .serviceUnavailable, bytes[0..<Int(push.topicCount)], workspace)
    }

    /// Counts a push that was refused.
    func countRejected(_ reason: Int, _ topic: ByteView, _ workspace: Workspace) {
        self.records.countRejected(reason, workspace.engine.findTopic(topic))
    }

    private static func expiration(_ seconds: Int64, _ offset: WallOffset) -> ArrivingPush.Expiration {
        switch seconds {
        case PushCommand.expirationAbsent: .absent
        case 0: .nowOrNever
        default: .at(offset.instant(wallSeconds: UInt64(seconds)))
        }
    }

    private func refuse(
        _ push: PushCommand,
        _ refusal: Refusal,
        _ topic: ByteView,
        _ workspace: Workspace
    ) -> PushReply {
        let reason: APNSReason
        var timestamp = PushReply.noMoment
        var retryAfterSeconds: Int64 = 0
        if let limit = refusal.limit, !push.isDryRun { self.limits.met(limit) }
        switch refusal {
        case .unknown: reason = .badDeviceToken
        case .unregistered(let moment):
            reason = .unregistered
            timestamp = workspace.offset.wall(moment)
        case .otherTopic: reason = .deviceTokenNotForTopic
        case .tooManyDevices, .tooManyDevicesOfTopic, .tooManyTopics:
            reason = .tooManyRequests
            retryAfterSeconds = Self.retryAfterSeconds.places
        case .noMemoryForTopic:
            reason = .tooManyRequests
            retryAfterSeconds = Self.retryAfterSeconds.memory
        case .noMemory:
            reason = .serviceUnavailable
            retryAfterSeconds = Self.retryAfterSeconds.memory
        case .tooMany(let end):
            reason = .tooManyRequests
            retryAfterSeconds = max(1, (end.milliseconds - workspace.engine.now.milliseconds + 999) / 1000)
        }
        return self.refuse(
            push,
            reason,
            topic,
            workspace,
            timestamp: timestamp,
            retryAfterSeconds: retryAfterSeconds
        )
    }

    private func refuse(
        _ push: PushCommand,
        _ reason: APNSReason,
        _ topic: ByteView,
        _ workspace: Workspace,
        timestamp: Int64 = PushReply.noMoment,
        retryAfterSeconds: Int64 = 0
    ) -> PushReply {
        if !push.isDryRun {
            self.countRejected(reason.index, topic, workspace)
            workspace.engine.noteRefused(push.token, push.apnsID, topic: topic, reason: reason.index)
        }
        return PushReply(
            address: push.reply,
            apnsID: push.apnsID,
            reason: UInt8(reason.index),
            disposition: PushReply.none,
            held: PushReply.none,
            retryAfterSeconds: UInt32(clamping: retryAfterSeconds),
            eligibleAt: PushReply.noMoment,
            timestamp: timestamp
        )
    }
}

extension PushedAnswer {
    /// What a provider would be answered so.
    init(_ reply: PushReply) {
        guard reply.reason == PushReply.accepted else {
            self.init(apnsID: reply.apnsID, reason: APNSReason.allCases[Int(reply.reason)])
            return
        }
        self.init(
            apnsID: reply.apnsID,
            disposition: Disposition(rawValue: reply.disposition),
            held: Hold(rawValue: reply.held),
            eligibleAt: reply.eligibleAt == PushReply.noMoment ? nil : reply.eligibleAt,
            warnings: reply.warnings
        )
    }
}
