import Engine
import Policy
import Wire

/// A device as a list of devices shows it.
struct DeviceLine {
    private let device: DeviceSnapshot
    private let offset: WallOffset

    init(_ device: DeviceSnapshot, _ offset: WallOffset) {
        self.device = device
        self.offset = offset
    }

    /// Appends an object.
    func write(to writer: inout JSONWriter) {
        let state = self.device.state
        let push = state.inFlight?.push ?? state.pending
        writer.beginObject()
        writer.key("token")
        writer.hex { self.device.token.writeHex(to: &$0) }
        writer.key("topic")
        writer.string(self.device.topic)
        writer.key("state")
        writer.string(self.device.pushState.rawValue)
        writer.key("held")
        writer.beginArray()
        for code in self.device.held { writer.string(code.name) }
        writer.endArray()
        writer.key("eligibleAt")
        let isTimed = state.pending != nil && self.device.held.isEmpty
        writer.moment(isTimed ? self.eligibleAt : nil, self.offset)
        writer.key("lastLaunchAt")
        writer.moment(state.spacing.lastLaunch, self.offset)
        writer.key("coalesced")
        writer.integer(push?.coalesced ?? 0)
        writer.key("receivedAt")
        writer.moment(push?.receivedAt, self.offset)
        writer.endObject()
    }

    private var eligibleAt: Instant {
        let priority = self.device.state.pending?.priority ?? .considerate
        return self.device.state.eligibleAt(priority, self.device.parameters)
    }
}
