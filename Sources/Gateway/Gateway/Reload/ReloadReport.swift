import Bytes
import Settings

/// What a reload came to.
struct ReloadReport: Sendable {
    /// The number of the launch policy that is in force.
    let policyVersion: UInt32
    let changed: [ConfigurationChange]
    let needsRestart: [ConfigurationChange]

    /// Appends the report as `POST /v1/reload` answers it.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("policyVersion")
        writer.integer(self.policyVersion)
        for (name, changes) in [("changed", self.changed), ("needsRestart", self.needsRestart)] {
            writer.key(name)
            writer.beginArray()
            for change in changes { change.write(to: &writer) }
            writer.endArray()
        }
        writer.endObject()
    }
}
