/// Writes JSON text (RFC 8259) into a buffer: commas and escapes are its business, nesting is the caller's.
///
/// Strings come out as UTF-8 whatever bytes they are given as, and hold no character that ends a line anywhere.
package struct JSONWriter: ~Copyable {
    /// What has been written so far.
    package var buffer = ByteBuffer()
    private var needsComma = false

    package init() {}

    /// Empties the writer for another document; the buffer keeps its capacity.
    package mutating func removeAll() {
        self.buffer.removeAll()
        self.needsComma = false
    }

    package mutating func beginObject() { self.open(UInt8(ascii: "{")) }
    package mutating func endObject() { self.close(UInt8(ascii: "}")) }
    package mutating func beginArray() { self.open(UInt8(ascii: "[")) }
    package mutating func endArray() { self.close(UInt8(ascii: "]")) }

    /// A member's name; its value comes next.
    package mutating func key(_ name: StaticString) {
        self.buffer.append(key: ByteView(name), afterComma: self.needsComma)
        self.needsComma = false
    }

    /// A literal is none of these: it is written as it stands.
    @_disfavoredOverload
    package mutating func key(_ name: String) {
        self.string(name)
        self.buffer.append(UInt8(ascii: ":"))
        self.needsComma = false
    }

    package mutating func string(_ value: StaticString) { self.string(ByteView(value)) }
    @_disfavoredOverload
    package mutating func string(_ value: String) { value.withByteView { self.string($0) } }

    /// A string, escaped; of bytes that are not UTF-8 each part that is none becomes U+FFFD.
    package mutating func string(_ value: ByteView) {
        self.separate()
        self.buffer.append(UInt8(ascii: "\""))
        self.buffer.appendJSONString(value)
        self.buffer.append(UInt8(ascii: "\""))
        self.needsComma = true
    }

    package mutating func integer(_ value: Int64) {
        self.separate()
        self.buffer.appendDecimal(value)
        self.needsComma = true
    }

    /// An integer of any other type. Where there are very many, `Int64` is quicker.
    package mutating func integer(_ value: some BinaryInteger) {
        self.separate()
        if let small = Int64(exactly: value) {
            self.buffer.appendDecimal(small)
        } else {
            self.buffer.append(String(value))
        }
        self.needsComma = true
    }

    /// A finite number; the shortest text that reads back the same.
    package mutating func number(_ value: Double) {
        self.separate()
        self.buffer.append(value.isFinite ? String(value) : "null")
        self.needsComma = true
    }

    package mutating func bool(_ value: Bool) { self.raw(ByteView(value ? "true" : "false")) }
    package mutating func null() { self.raw(ByteView("null")) }

    /// Text that is a JSON value already.
    package mutating func raw(_ json: ByteView) {
        self.separate()
        self.buffer.append(json)
        self.needsComma = true
    }

    /// A JSON value that `write` appends.
    package mutating func rawValue(_ write: (inout ByteBuffer) -> Void) {
        self.separate()
        write(&self.buffer)
        self.needsComma = true
    }

    /// A string of characters that need no escaping, as `write` appends them.
    package mutating func hex(_ write: (inout ByteBuffer) -> Void) {
        self.separate()
        self.buffer.append(UInt8(ascii: "\""))
        write(&self.buffer)
        self.buffer.append(UInt8(ascii: "\""))
        self.needsComma = true
    }

    /// JSON text that cannot end a line: with a space for every CR and LF, and escapes for U+2028, U+2029 and U+0085,
    /// at which many readers of lines split, too. It may be three times as long as it was.
    package mutating func line(_ json: ByteView) {
        self.separate()
        self.buffer.appendJSONLine(json)
        self.needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        self.separate()
        self.buffer.append(bracket)
        self.needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        self.buffer.append(bracket)
        self.needsComma = true
    }

    private mutating func separate() {
        if self.needsComma { self.buffer.append(UInt8(ascii: ",")) }
    }
}
