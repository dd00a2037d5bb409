/// Writes JSON text (RFC 8259) into a buffer. The writer adds commas and escapes. The caller must balance the brackets.
///
/// Strings are written as UTF-8 for any input bytes, without characters that end a line.
package struct JSONWriter: ~Copyable {
    /// The text written so far.
    package var buffer = ByteBuffer()
    private var needsComma = false

    package init() {}

    /// Empties the writer for another document. The buffer keeps its capacity.
    package mutating func removeAll() {
        self.buffer.removeAll()
        self.needsComma = false
    }

    package mutating func beginObject() { self.open(UInt8(ascii: "{")) }
    package mutating func endObject() { self.close(UInt8(ascii: "}")) }
    package mutating func beginArray() { self.open(UInt8(ascii: "[")) }
    package mutating func endArray() { self.close(UInt8(ascii: "]")) }

    /// Writes the name of a member. Its value must follow.
    package mutating func key(_ name: StaticString) {
        self.buffer.append(key: ByteView(name), afterComma: self.needsComma)
        self.needsComma = false
    }

    /// Writes the name of a member, with escapes. Its value must follow.
    @_disfavoredOverload
    package mutating func key(_ name: String) {
        self.string(name)
        self.buffer.append(UInt8(ascii: ":"))
        self.needsComma = false
    }

    package mutating func string(_ value: StaticString) { self.string(ByteView(value)) }
    @_disfavoredOverload
    package mutating func string(_ value: String) { value.withByteView { self.string($0) } }

    /// Writes a string with escapes. Each ill-formed UTF-8 sequence becomes U+FFFD.
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

    /// Writes an integer of another type. `Int64` is faster for large numbers of values.
    package mutating func integer(_ value: some BinaryInteger) {
        self.separate()
        if let small = Int64(exactly: value) {
            self.buffer.appendDecimal(small)
        } else {
            self.buffer.append(String(value))
        }
        self.needsComma = true
    }

    /// Writes a finite number as the shortest text that reads back as the same number, and any other number as null.
    package mutating func number(_ value: Double) {
        self.separate()
        self.buffer.append(value.isFinite ? String(value) : "null")
        self.needsComma = true
    }

    package mutating func bool(_ value: Bool) { self.raw(ByteView(value ? "true" : "false")) }
    package mutating func null() { self.raw(ByteView("null")) }

    /// Writes text that is already a JSON value.
    package mutating func raw(_ json: ByteView) {
        self.separate()
        self.buffer.append(json)
        self.needsComma = true
    }

    /// Writes the JSON value that `write` appends.
    package mutating func rawValue(_ write: (inout ByteBuffer) -> Void) {
        self.separate()
        write(&self.buffer)
        self.needsComma = true
    }

    /// Writes the string that `write` appends, without its quotation marks. Its characters must need no escaping.
    package mutating func hex(_ write: (inout ByteBuffer) -> Void) {
        self.separate()
        self.buffer.append(UInt8(ascii: "\""))
        write(&self.buffer)
        self.buffer.append(UInt8(ascii: "\""))
        self.needsComma = true
    }

    /// Writes JSON text as one line. Replaces every CR and LF with a space, and escapes U+2028, U+2029 and U+0085,
    /// which many readers treat as line ends. The text may become three times as long.
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

/// The context of a text, which determines the characters that must be escaped or replaced.
private enum JSONContext {
    /// Text between the quotation marks of a string.
    case string
    /// JSON text on one line.
    case line

    /// Returns a vector with the high bit set in each byte that must be examined individually, and in no other byte.
    @inline(__always)
    func special(_ bytes: SIMD16<UInt8>) -> SIMD16<UInt8> {
        switch self {
        case .string:
            bytes | (bytes &- SIMD16(repeating: 0x20)) | Self.places(of: UInt8(ascii: "\""), in: bytes)
                | Self.places(of: UInt8(ascii: "\\"), in: bytes) | Self.places(of: 0x7F, in: bytes)
        case .line: bytes | Self.places(of: 0x0A, in: bytes) | Self.places(of: 0x0D, in: bytes)
        }
    }

    @inline(__always)
    func isPlain(_ byte: UInt8) -> Bool {
        switch self {
        case .string: byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
        case .line: byte < 0x80 && byte != 0x0A && byte != 0x0D
        }
    }

    /// Returns a vector with the high bit set for each byte that equals `byte`, and for no other byte below 0x80.
    @inline(__always)
    private static func places(of byte: UInt8, in bytes: SIMD16<UInt8>) -> SIMD16<UInt8> {
        let difference = bytes ^ SIMD16(repeating: byte)
        return (difference &- SIMD16(repeating: 1)) & ~difference
    }
}

extension ByteBuffer {
    /// Appends text with the escapes of a JSON string (RFC 8259), without quotation marks.
    ///
    /// The output is UTF-8: each ill-formed sequence becomes U+FFFD. U+2028, U+2029 and U+0085 are escaped, because
    /// some line readers treat them as line ends.
    package mutating func appendJSONString(_ text: ByteView) {
        self.append(text, in: .string)
    }

    /// Appends JSON text as one line. Replaces each CR and LF with a space, and escapes U+2028, U+2029 and U+0085,
    /// which may also end a line. These three occur only in strings.
    ///
    /// Each ill-formed UTF-8 sequence becomes U+FFFD.
    package mutating func appendJSONLine(_ json: ByteView) {
        self.append(json, in: .line)
    }

    @inline(__always)
    private mutating func append(_ text: ByteView, in place: JSONContext) {
        /// The start of the bytes that are not yet appended.
        var start = 0
        var index = 0
        while index < text.count {
            let end = text[index] < 0x80 ? text.endOfPlain(from: index, place) : text.endOfLetters(from: index)
            guard end == index else {
                index = end
                continue
            }
            let (count, isCharacter) = text.sequence(at: index)
            let isASCII = text[index] < 0x80
            if !isASCII, isCharacter, !text.endsLine(at: index, count) {
                index += count
            } else {
                self.append(text[start..<index])
                if isASCII {
                    self.appendEscape(text[index], in: place)
                } else if isCharacter {
                    self.append(count == 2 ? "\\u0085" : text[index + 2] == 0xA8 ? "\\u2028" : "\\u2029")
                } else {
                    self.append("\u{FFFD}")
                }
                index += count
                start = index
            }
        }
        self.append(text[start..<text.count])
    }

    private mutating func appendEscape(_ byte: UInt8, in place: JSONContext) {
        guard place == .string else { return self.append(UInt8(ascii: " ")) }
        switch byte {
        case UInt8(ascii: "\""): self.append("\\\"")
        case UInt8(ascii: "\\"): self.append("\\\\")
        case 0x0A: self.append("\\n")
        case 0x0D: self.append("\\r")
        case 0x09: self.append("\\t")
        default:
            self.append("\\u00")
            self.append(byte >> 4 < 10 ? byte >> 4 + 0x30 : byte >> 4 + 0x57)
            self.append(byte & 15 < 10 ? byte & 15 + 0x30 : byte & 15 + 0x57)
        }
    }
}

extension ByteView {
    /// Returns the index of the first byte, at or after `start`, that must be examined; `count` if there is none.
    @inline(__always)
    fileprivate func endOfPlain(from start: Int, _ place: JSONContext) -> Int {
        var index = start
        while index + 16 <= self.count {
            let special = place.special(self.load(SIMD16<UInt8>.self, at: index))
            let halves = special.halves & SIMD2(repeating: 0x8080_8080_8080_8080)
            if halves[0] != 0 { return index + halves[0].trailingZeroBitCount >> 3 }
            if halves[1] != 0 { return index + 8 + halves[1].trailingZeroBitCount >> 3 }
            index += 16
        }
        while index < self.count, place.isPlain(self[index]) { index += 1 }
        return index
    }

    /// Returns the index of the first byte, at or after `start`, that ends a run of characters of two or three bytes. A
    /// character that must be examined ends the run, too.
    ///
    /// U+0085, U+2028 and U+2029 start with C2 or E2. After E0 and ED, fewer second bytes are valid.
    @inline(__always)
    fileprivate func endOfLetters(from start: Int) -> Int {
        var index = start
        while index + 4 <= self.count {
            let word = UInt32(littleEndian: self.load(UInt32.self, at: index))
            let first = word & 0xFF
            if word & 0xC0_C0F0 == 0x80_80E0, first != 0xE0, first != 0xE2, first != 0xED {
                index += 3
            } else if word & 0xC0E0 == 0x80C0, first >= 0xC3 {
                index += 2
            } else {
                break
            }
        }
        return index
    }

    /// Returns true if the character of `characterCount` bytes at `index` is U+0085, U+2028 or U+2029.
    @inline(__always)
    fileprivate func endsLine(at index: Int, _ characterCount: Int) -> Bool {
        switch self[index] {
        case 0xC2: characterCount == 2 && self[index + 1] == 0x85
        case 0xE2: characterCount == 3 && self[index + 1] == 0x80 && self[index + 2] & 0xFE == 0xA8
        default: false
        }
    }
}

// MARK: - Objects

extension JSONWriter {
    /// Returns the text of an object with the members that `write` appends.
    package static func object(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        write(&json)
        json.endObject()
        return json.buffer.view.array
    }

    /// Begins an object as the value of a member.
    package mutating func beginObject(_ name: StaticString) {
        self.key(name)
        self.beginObject()
    }

    /// Begins an array as the value of a member.
    package mutating func beginArray(_ name: StaticString) {
        self.key(name)
        self.beginArray()
    }

    /// Writes a member; null for nil.
    package mutating func member(_ name: StaticString, _ value: String?) {
        self.key(name)
        if let value { self.string(value) } else { self.null() }
    }

    package mutating func member(_ name: StaticString, _ value: StaticString?) {
        self.key(name)
        if let value { self.string(value) } else { self.null() }
    }

    @inline(__always)
    package mutating func member(_ name: StaticString, _ value: ByteView) {
        self.key(name)
        self.string(value)
    }

    /// Writes a member with the string that `write` appends. Its characters must need no escaping.
    @inline(__always)
    package mutating func hex(_ name: StaticString, _ write: (inout ByteBuffer) -> Void) {
        self.key(name)
        self.hex(write)
    }

    @inline(__always)
    package mutating func member(_ name: StaticString, _ value: Int64?) {
        self.key(name)
        if let value { self.integer(value) } else { self.null() }
    }

    package mutating func member(_ name: StaticString, _ value: (some BinaryInteger)?) {
        self.key(name)
        if let value { self.integer(value) } else { self.null() }
    }

    package mutating func member(_ name: StaticString, _ value: Double) {
        self.key(name)
        self.number(value)
    }

    package mutating func member(_ name: StaticString, _ value: Bool?) {
        self.key(name)
        if let value { self.bool(value) } else { self.null() }
    }

    /// Writes a member unless its value is nil.
    package mutating func member(_ name: StaticString, ifPresent value: String?) {
        if let value { self.member(name, value) }
    }

    /// Writes a member unless its value is nil.
    package mutating func member(_ name: StaticString, ifPresent value: Int64?) {
        if let value { self.member(name, value) }
    }

    /// Writes a member unless its value is nil.
    package mutating func member(_ name: StaticString, ifPresent value: StaticString?) {
        if let value { self.member(name, value) }
    }

    /// Writes a member unless its value is nil.
    package mutating func member(_ name: StaticString, ifPresent value: Bool?) {
        if let value { self.member(name, value) }
    }
}

/// JSON text without a writer.
package enum JSONText {
    /// Returns `text` as a JSON string.
    package static func quoted(_ text: String) -> String {
        var json = JSONWriter()
        json.string(text)
        return json.buffer.view.string
    }
}
