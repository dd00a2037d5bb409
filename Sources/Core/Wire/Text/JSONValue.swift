/// A JSON value, for input whose members are checked one by one.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object([JSONMember])

    /// The kind of the value, for messages.
    package var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// The value for messages: the text of a simple value, or the kind of an array or object.
    package var described: String {
        switch self {
        case .null: "null"
        case .bool(let value): String(value)
        case .number(let value): value.text
        case .string(let value): "\"\(value)\""
        case .array: "a list"
        case .object: "an object"
        }
    }

    /// Parses UTF-8 bytes; nil if they are not JSON.
    package init?(_ bytes: some Collection<UInt8>) {
        guard let value = try? JSONReader.read(String(decoding: bytes, as: UTF8.self)) else { return nil }
        self = value
    }

    /// Parses the bytes of a JSON object; nil for any other bytes.
    package init?(object bytes: some Collection<UInt8>) {
        self.init(bytes)
        guard case .object = self else { return nil }
    }

    package var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    package var bool: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    package var number: Double? {
        if case .number(let number) = self { number.double } else { nil }
    }

    /// The value of a number without fraction and exponent; nil if it does not fit in `Int64`.
    package var integer: Int64? {
        if case .number(let number) = self { Int64(number.text) } else { nil }
    }

    /// The elements of an array; empty for other values.
    package var elements: [JSONValue] {
        if case .array(let elements) = self { elements } else { [] }
    }

    /// The last member with this name; nil if there is none, or the value is not an object.
    package subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { return members.last { $0.name == name }?.value }
        return nil
    }

    /// The members of an object, sorted by name; empty for other values.
    package var members: [JSONMember] {
        guard case .object(let members) = self else { return [] }
        return members.sorted { $0.name < $1.name }
    }
}

/// A member of an object.
package struct JSONMember: Hashable, Sendable {
    package let name: String
    package let value: JSONValue

    package init(name: String, value: JSONValue) {
        self.name = name
        self.value = value
    }
}

/// A JSON number, stored as its original text to preserve all decimals.
package struct JSONNumber: Hashable, Sendable {
    /// The number's text in the form of RFC 8259. A number from JSON5 may also be `inf`, `-inf` or `nan`.
    package let text: String

    /// - Parameter text: a number in the form of RFC 8259.
    init(text: String) {
        self.text = text
    }

    package init(_ double: Double) {
        self.text = Self.text(of: double)
    }

    /// Returns the text of a number, without a fraction of zero.
    package static func text(of double: Double) -> String {
        let text = String(double)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// The nearest double; infinite if the number is too large for a double.
    package var double: Double { Double(self.text) ?? .infinity }

    /// A number of seconds, converted to whole milliseconds.
    package enum Milliseconds: Hashable, Sendable {
        case exact(Int64)
        /// The number has more than three significant decimals.
        case tooFine
        case tooLarge
    }

    /// The number as seconds, converted to milliseconds. The conversion uses the digits, because a double would round.
    package var milliseconds: Milliseconds {
        var digits: [UInt8] = []
        var shift = 3
        var isNegative = false
        var isFraction = false
        var bytes = self.text.utf8[...]
        while let byte = bytes.popFirst() {
            if byte == UInt8(ascii: "-") {
                isNegative = true
            } else if byte == UInt8(ascii: ".") {
                isFraction = true
            } else if byte | 0x20 == UInt8(ascii: "e") {
                let exponent = Int(String(Substring(bytes)))
                // Clamps an exponent that does not fit in an integer.
                let saturated = bytes.first == UInt8(ascii: "-") ? -1_000_000 : 1_000_000
                shift += max(-1_000_000, min(exponent ?? saturated, 1_000_000))
                break
            } else {
                // The texts of JSON5's Infinity and NaN.
                guard byte &- 0x30 < 10 else { return .tooLarge }
                if isFraction { shift -= 1 }
                if byte != UInt8(ascii: "0") || !digits.isEmpty { digits.append(byte - UInt8(ascii: "0")) }
            }
        }
        while digits.last == 0 {
            digits.removeLast()
            shift += 1
        }
        guard !digits.isEmpty else { return .exact(0) }
        guard shift >= 0 else { return .tooFine }
        guard digits.count + shift <= 18 else { return .tooLarge }
        var value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1) }
        for _ in 0..<shift { value *= 10 }
        return .exact(isNegative ? -value : value)
    }
}
