import Engine
import Policy
import Wire

extension JSONWriter {
    /// `write` for a value, null for none.
    mutating func optional<Value>(_ value: Value?, _ write: (inout JSONWriter, Value) -> Void) {
        if let value { write(&self, value) } else { self.null() }
    }

    /// A moment in milliseconds since 1970; null for minus infinity.
    mutating func moment(_ instant: Instant?, _ offset: WallOffset) {
        if let instant, instant != .distantPast { self.integer(offset.wall(instant)) } else { self.null() }
    }

    /// An object of counts.
    mutating func counts(_ counts: [(name: String, count: Int64)]) {
        self.beginObject()
        for (name, count) in counts {
            self.key(name)
            self.integer(count)
        }
        self.endObject()
    }
}
