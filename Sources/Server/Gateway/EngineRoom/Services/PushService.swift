package import Engine
import Policy
package import Wire

/// A service that accepts or refuses pushes one by one, and returns the reply to each.
package final class PushService {
    /// The `retry-after` values, in seconds, of pushes refused at a limit. Places for devices and topics take longer,
    /// because an operator must free them; memory becomes free when wakes end.
    private static let retryAfterSeconds: (places: Int64, memory: Int64) = (300, 30)

    private let room: RoomState

    package init(_ room: RoomState) {
        self.room = room
    }

    /// Processes a push that arrived on `stream`.
    package func take(_ push: Push, from stream: StreamAddress, _ workspace: Workspace) -> PushReply {
        guard !self.room.isDraining else { return self.refuse(push, .shutdown, from: stream, workspace) }
        var expiration = Expiration(push.expiration, workspace.offset)
        if workspace.remote != nil { expiration = workspace.dispatcher.reachingElsewhere(push, expiration) }
        do throws(Refusal) {
            let answer = try workspace.dispatcher.push(push, expiration)
            var reply = PushReply(stream, push.apnsID)
            reply.eligibleAt = answer.eligibleAt.map { workspace.offset.wallSecondsRoundedUp($0) }
            reply.disposition = answer.disposition
            reply.held = answer.held
            reply.warnings = push.warnings
            return reply
        } catch {
            return self.refuse(push, error, from: stream, workspace)
        }
    }

    /// Processes an operator's push to a topic.
    func take(_ test: TestPush, to token: DeviceToken, of topic: [UInt8], _ workspace: Workspace) -> PushReply {
        test.kept.read { kept in
            topic.withByteView { topic in
                var push = kept
                push.token = token
                push.topic = topic
                let stream = test.kept.stream
                guard let reason = test.refusal else { return self.take(push, from: stream, workspace) }
                return self.refuse(push, reason, from: stream, workspace)
            }
        }
    }

    /// Refuses a push because the store has failed.
    package func refuseUnstored(_ push: Push, from stream: StreamAddress, _ workspace: Workspace) -> PushReply {
        self.refuse(push, .serviceUnavailable, from: stream, workspace)
    }

    /// Counts a refused push.
    func countRejected(_ reason: Int, _ topic: ByteView, _ workspace: Workspace) {
        self.room.records.countRejected(reason, workspace.engine.findTopic(topic))
    }

    private func refuse(
        _ push: Push,
        _ refusal: Refusal,
        from stream: StreamAddress,
        _ workspace: Workspace
    ) -> PushReply {
        if let limit = refusal.limit, !push.isDryRun { self.room.limits.met(limit) }
        func refuse(_ reason: APNSReason, retryAfter seconds: Int64 = 0) -> PushReply {
            var reply = self.refuse(push, reason, from: stream, workspace)
            reply.retryAfterSeconds = UInt32(clamping: seconds)
            return reply
        }
        switch refusal {
        case .unknown: return refuse(.badDeviceToken)
        case .unregistered(let moment):
            var reply = refuse(.unregistered)
            reply.timestamp = workspace.offset.wall(moment)
            return reply
        case .otherTopic: return refuse(.deviceTokenNotForTopic)
        case .tooManyDevices, .tooManyDevicesOfTopic, .tooManyTopics:
            return refuse(.tooManyRequests, retryAfter: Self.retryAfterSeconds.places)
        case .noMemoryForTopic: return refuse(.tooManyRequests, retryAfter: Self.retryAfterSeconds.memory)
        case .noMemory: return refuse(.serviceUnavailable, retryAfter: Self.retryAfterSeconds.memory)
        case .tooMany(let end):
            let milliseconds = end.milliseconds - workspace.engine.now.milliseconds
            return refuse(.tooManyRequests, retryAfter: max(1, (milliseconds + 999) / 1000))
        }
    }

    private func refuse(
        _ push: Push,
        _ reason: APNSReason,
        from stream: StreamAddress,
        _ workspace: Workspace
    ) -> PushReply {
        if !push.isDryRun {
            let index = reason.index
            self.countRejected(index, push.topic, workspace)
            workspace.engine.noteRefused(push.token, push.apnsID, topic: push.topic, reason: index)
        }
        return PushReply(stream, push.apnsID, refused: reason)
    }
}

extension Expiration {
    /// Converts the expiration of a push to policy time.
    fileprivate init(_ expiration: PushExpiration, _ offset: WallOffset) {
        self =
            switch expiration {
            case .absent: .absent
            case .zero: .nowOrNever
            case .seconds(let seconds): .at(offset.instant(wallSeconds: UInt64(seconds)))
            }
    }
}
