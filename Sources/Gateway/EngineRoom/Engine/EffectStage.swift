import Bytes
import DeviceEngine
import LaunchPolicy
import WakeDispatch

/// Collects what steps have for the loops until it is durable; writes wakes as server-sent events.
final class EffectStage: DispatchOutput {
    /// What the next commit will let out.
    var group: StepGroup
    /// Wall clock minus policy time.
    var offset: WallOffset
    private var writer = JSONWriter()
    private var event = ByteBuffer()

    init(group: StepGroup, offset: WallOffset) {
        self.group = group
        self.offset = offset
    }

    func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        self.event.append("event: wake\nid: ")
        wake.id.write(to: &self.event)
        self.event.append("\ndata: ")
        self.write(wake)
        self.event.append(self.writer.buffer.view)
        self.event.append("\n\n")
        self.group.effects[stream].appendWake(stream, event: self.event.view)
        self.event.removeAll()
    }

    func expire(_ wake: WakeID, on stream: StreamAddress) {
        self.event.append("event: expired\ndata: {\"wake\":\"")
        wake.write(to: &self.event)
        self.event.append("\"}\n\n")
        self.group.effects[stream].appendExpired(stream, event: self.event.view)
        self.event.removeAll()
    }

    func released(_ wake: WakeID, on stream: StreamAddress) {
        self.group.effects[stream].appendReleased(stream, wake)
    }

    func drained(_ stream: StreamAddress) {
        self.group.effects[stream].appendDrained(stream)
    }

    private func write(_ wake: borrowing LaunchedWake) {
        self.writer.removeAll()
        self.writer.beginObject()
        self.writer.key("wake")
        self.writer.hex { wake.id.write(to: &$0) }
        self.writer.key("kind")
        self.writer.string("push")
        self.writer.key("device")
        self.writer.hex { wake.token.writeHex(to: &$0) }
        self.writer.key("topic")
        self.writer.string(wake.topic)
        self.writer.key("apnsID")
        self.writer.optional(wake.content) { writer, content in writer.hex { content.apnsID.write(to: &$0) } }
        self.writer.key("priority")
        self.writer.integer(wake.push.priority.rawValue)
        self.writer.key("attempt")
        self.writer.integer(wake.push.attempts)
        self.writer.key("coalesced")
        self.writer.integer(wake.push.coalesced)
        self.writer.key("receivedAt")
        self.writer.integer(self.offset.wall(wake.push.receivedAt))
        self.writer.key("firstReceivedAt")
        self.writer.integer(self.offset.wall(wake.push.firstReceivedAt))
        self.writer.key("deadline")
        self.writer.integer(self.offset.wall(wake.deadline))
        self.writer.key("timeLeft")
        self.writer.integer(wake.timeLeft)
        if let trace = wake.content.flatMap({ PushTrace($0.trace) }) { self.writer.members(of: trace) }
        self.writer.key("collapseID")
        self.writer.optional(wake.content.flatMap { $0.collapseID.isEmpty ? nil : $0 }) { writer, content in
            writer.string(content.collapseID)
        }
        self.writer.key("payload")
        self.writer.optional(wake.content) { writer, content in writer.line(content.payload) }
        self.writer.endObject()
    }
}

extension JSONWriter {
    /// A string of characters that need no escaping, as `write` appends them.
    mutating func hex(_ write: (inout ByteBuffer) -> Void) {
        self.rawValue { buffer in
            buffer.append(UInt8(ascii: "\""))
            write(&buffer)
            buffer.append(UInt8(ascii: "\""))
        }
    }

    /// JSON text that cannot end an event's line: with a space for every CR and LF, and escapes for U+2028, U+2029 and
    /// U+0085, at which many readers of lines split, too. It may be three times as long as it was.
    mutating func line(_ json: ByteView) {
        self.rawValue { $0.appendJSONLine(json) }
    }

    /// `write` for a value, null for none.
    mutating func optional<Value>(_ value: Value?, _ write: (inout JSONWriter, Value) -> Void) {
        if let value { write(&self, value) } else { self.null() }
    }

    /// A moment in milliseconds since 1970; null for minus infinity.
    mutating func moment(_ instant: Instant?, _ offset: WallOffset) {
        if let instant, instant != .distantPast { self.integer(offset.wall(instant)) } else { self.null() }
    }
}
