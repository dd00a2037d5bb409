import Engine
import Policy
import Wire

/// What a provider would be answered to a push of an operator's.
package struct PushedAnswer: Sendable {
    let apnsID: APNsID
    /// Why it would be refused; nil when it was taken.
    var reason: APNSReason?
    var disposition: Disposition?
    var held: Hold?
    /// When it may launch, in seconds since 1970.
    var eligibleAt: Int64?
    var warnings: PushWarnings = []

    /// Appends status, apns-id, how the push was taken or why it was not, and the warnings, if there are any.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("status")
        writer.integer(self.reason?.status ?? 200)
        writer.key("apnsID")
        writer.hex { self.apnsID.write(to: &$0) }
        if let reason = self.reason {
            writer.key("reason")
            writer.string(reason.rawValue)
        }
        if let disposition = self.disposition {
            writer.key("disposition")
            writer.string(disposition.name)
        }
        if let seconds = self.eligibleAt {
            writer.key("eligibleAt")
            writer.integer(seconds * 1000)
        }
        if let held = self.held {
            writer.key("held")
            writer.string(held.name)
        }
        if !self.warnings.isEmpty {
            writer.key("warnings")
            writer.beginArray()
            for text in self.warnings.texts { writer.string(text) }
            writer.endArray()
        }
        writer.endObject()
    }
}
