import Engine
import Policy
import Wire

extension SubscriptionRequest {
    /// Appends an object of the wakes that a stream accepts. It contains only the number of devices, because tokens are
    /// secret.
    func writeTakes(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("pushes")
        writer.bool(self.takesPushes)
        let names = [("tasks", self.tasks.map(\.text)), ("sessions", self.sessions.map(\.text))]
        for (key, names) in names + [("resources", self.resources)] {
            writer.key(key)
            writer.beginArray()
            for name in names { writer.string(name) }
            writer.endArray()
        }
        writer.key("devices")
        writer.optional(self.devices.isEmpty ? nil : self.devices.count) { writer, count in writer.integer(count) }
        writer.endObject()
    }
}

extension StreamSnapshot {
    /// Appends a stream as an object for a list of topics.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("name")
        writer.string(self.label)
        writer.key("slots")
        writer.integer(self.slots)
        writer.key("busy")
        writer.integer(self.busy)
        writer.key("state")
        writer.string(self.state.rawValue)
        writer.key("takes")
        self.request.writeTakes(to: &writer)
        writer.endObject()
    }
}
