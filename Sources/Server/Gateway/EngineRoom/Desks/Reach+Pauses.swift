import Engine
import Policy
import Wire

/// What operators do to what waits.
extension Reach {
    func pause(_ name: [UInt8], _ isPaused: Bool) throws(APIError) -> Outcome {
        let topic = try self.topic(name)
        self.workspace.dispatcher.setPaused(topic, isPaused)
        return .paused(topic: self.workspace.engine.topicName(topic), isPaused)
    }

    /// The topic that a push names, or else that of its device.
    func topic(of push: TestPush) throws(APIError) -> [UInt8] {
        if let topic = push.topic {
            guard self.caller.reaches(topic.withByteView { $0.string }) else { throw .unknownTopic }
            return topic
        }
        let engine = self.workspace.engine
        return engine.topicName(engine.topic(of: try self.device(push.device).index)).withByteView { $0.array }
    }

    /// The push that waits, as whoever sent it would know it again.
    func pendingPush(_ name: Named<DeviceToken>) throws(APIError) -> Outcome {
        let device = try self.device(name).index
        let offset = self.workspace.offset
        guard let (push, content) = self.workspace.engine.pendingPush(device) else { throw .nothingPending }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("apnsID")
        writer.hex { content.apnsID.write(to: &$0) }
        writer.key("priority")
        writer.integer(push.priority.rawValue)
        writer.key("receivedAt")
        writer.moment(push.receivedAt, offset)
        writer.key("expiresAt")
        writer.moment(push.expiry, offset)
        writer.key("collapseID")
        writer.optional(content.collapseID.isEmpty ? nil : content.collapseID) { $0.string($1) }
        writer.key("payload")
        writer.raw(content.payload)
        writer.endObject()
        return .json(writer)
    }

    func cancelPending(_ name: Named<DeviceToken>) throws(APIError) -> Outcome {
        let device = try self.device(name).index
        return .dropped(self.workspace.dispatcher.cancelPending(device) ? 1 : 0)
    }
}
