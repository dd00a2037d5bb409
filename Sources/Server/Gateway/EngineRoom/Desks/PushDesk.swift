package import Engine
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

    /// Takes a push that came from `stream`.
    package func take(_ push: Push, from stream: StreamAddress, _ workspace: Workspace) -> PushReply {
        guard !self.isDraining else { return self.refuse(push, .shutdown, from: stream, workspace) }
        var expiration = ArrivingPush.Expiration(push.expiration, workspace.offset)
        if workspace.remote != nil { expiration = workspace.dispatcher.reachingElsewhere(push, expiration) }
        do throws(Refusal) {
            let answer = try workspace.dispatcher.push(push, expiration)
            return PushReply(
                address: stream,
                apnsID: push.apnsID,
                reason: PushReply.accepted,
                disposition: answer.disposition.rawValue,
                held: answer.held?.rawValue ?? PushReply.none,
                warnings: push.warnings,
                eligibleAt: answer.eligibleAt.map { workspace.offset.wallSecondsRoundedUp($0) } ?? PushReply.noMoment,
                timestamp: PushReply.noMoment
            )
        } catch {
            return self.refuse(push, error, from: stream, workspace)
        }
    }

    /// Takes a push of an operator's, of this topic.
    func take(_ test: TestPush, to token: DeviceToken, of topic: [UInt8], _ workspace: Workspace) -> PushedAnswer {
        test.kept.read { kept in
            topic.withByteView { topic in
                var push = kept
                push.token = token
                push.topic = topic
                let stream = test.kept.stream
                guard let reason = test.refusal else { return PushedAnswer(self.take(push, from: stream, workspace)) }
                return PushedAnswer(self.refuse(push, reason, from: stream, workspace))
            }
        }
    }

    /// Refuses a push because the store has failed.
    package func refuseUnstored(_ push: Push, from stream: StreamAddress, _ workspace: Workspace) -> PushReply {
        self.refuse(push, .serviceUnavailable, from: stream, workspace)
    }

    /// Counts a push that was refused.
    func countRejected(_ reason: Int, _ topic: ByteView, _ workspace: Workspace) {
        self.records.countRejected(reason, workspace.engine.findTopic(topic))
    }

    private func refuse(
        _ push: Push,
        _ refusal: Refusal,
        from stream: StreamAddress,
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
            from: stream,
            workspace,
            timestamp: timestamp,
            retryAfterSeconds: retryAfterSeconds
        )
    }

    private func refuse(
        _ push: Push,
        _ reason: APNSReason,
        from stream: StreamAddress,
        _ workspace: Workspace,
        timestamp: Int64 = PushReply.noMoment,
        retryAfterSeconds: Int64 = 0
    ) -> PushReply {
        if !push.isDryRun {
            self.countRejected(reason.index, push.topic, workspace)
            workspace.engine.noteRefused(push.token, push.apnsID, topic: push.topic, reason: reason.index)
        }
        return PushReply(
            address: stream,
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

extension ArrivingPush.Expiration {
    /// What a push says, in policy time.
    fileprivate init(_ expiration: PushExpiration, _ offset: WallOffset) {
        self =
            switch expiration {
            case .absent: .absent
            case .zero: .nowOrNever
            case .seconds(let seconds): .at(offset.instant(wallSeconds: UInt64(seconds)))
            }
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
