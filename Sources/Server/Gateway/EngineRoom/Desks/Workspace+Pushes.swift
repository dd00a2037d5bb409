import Engine
import Storage
import Wire

extension Workspace {
    /// A page of pushes with the devices that are in memory.
    func pushes(_ listing: PushListing) -> Outcome {
        var writer = JSONWriter()
        listing.write(to: &writer, self.offset) { number in
            guard let device = self.engine.find(number: number) else { return nil }
            let identity = self.engine.identity(device)
            return LoggedDevice(token: identity.token, topic: self.engine.topicName(identity.topic))
        }
        return .json(writer)
    }
}
