import Engine
import Policy
import Wire

extension SubscriptionRequest {
    /// Writes the wakes that the stream accepts as an object. The object contains the number of devices instead of
    /// their tokens, because tokens are secret.
    func writeTakes(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("pushes", self.takesPushes)
        writer.array("tasks", self.tasks) { $0.string($1.text) }
        writer.array("sessions", self.sessions) { $0.string($1.text) }
        writer.array("resources", self.resources) { $0.string($1) }
        writer.member("devices", self.devices.isEmpty ? nil : self.devices.count)
        writer.endObject()
    }
}

extension StreamSnapshot {
    /// Writes the stream as an object, for a list of topics.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("name", self.label)
        writer.member("slots", self.slots)
        writer.member("busy", self.busy)
        writer.member("state", self.state.rawValue)
        writer.key("takes")
        self.request.writeTakes(to: &writer)
        writer.endObject()
    }
}
