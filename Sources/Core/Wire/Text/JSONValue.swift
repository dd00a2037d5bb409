/// Any JSON value, for input whose names are checked by hand so that every fault can be named.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object([JSONMember])

    /// What it is, for messages.
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

    /// The value as it stands in messages: short values as they are, others by their kind.
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

    /// The value that bytes of UTF-8 are; nil when they are not JSON.
    package init?(_ bytes: some Collection<UInt8>) {
        guard let value = try? JSONReader.read(String(decoding: bytes, as: UTF8.self)) else { return nil }
        self = value
    }

    /// The JSON object that bytes are; nil for any other bytes.
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

    /// A number without a fraction; nil for one that is too large.
    package var integer: Int64? {
        if case .number(let number) = self { Int64(number.text) } else { nil }
    }

    /// An array's elements; none when it is none.
    package var elements: [JSONValue] {
        if case .array(let elements) = self { elements } else { [] }
    }

    /// The last member of an object by that name; nil when there is none, or the value is no object.
    package subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { return members.last { $0.name == name }?.value }
        return nil
    }

    /// An object's members in the order of their names; none when the value is no object.
    package var members: [JSONMember] {
        guard case .object(let members) = self else { return [] }
        return members.sorted { $0.name < $1.name }
    }
}

/// A name and its value in an object, in the order of the text.
package struct JSONMember: Hashable, Sendable {
    package let name: String
    package let value: JSONValue

    package init(name: String, value: JSONValue) {
        self.name = name
        self.value = value
    }
}

/// The members of a JSON object as they are written, so that a payload reaches its worker byte for byte.
///
/// It finds where values begin and end and does not judge them: that a value is well-formed is the gateway's promise.
package struct JSONMembers: Sendable {
    private let text: [UInt8]
    private var ranges: [String: Range<Int>] = [:]

    /// Finds the members of the object in `text`; nil when it is no object, or ends early.
    package init?(_ text: [UInt8]) {
        self.text = text
        var index = self.skipSpace(0)
        guard index < text.count, text[index] == UInt8(ascii: "{") else { return nil }
        index = self.skipSpace(index + 1)
        if index < text.count, text[index] == UInt8(ascii: "}") { return }
        while true {
            guard let nameEnd = self.stringEnd(index) else { return nil }
            let name = String(decoding: text[(index + 1)..<(nameEnd - 1)], as: UTF8.self)
            index = self.skipSpace(nameEnd)
            guard index < text.count, text[index] == UInt8(ascii: ":") else { return nil }
            let start = self.skipSpace(index + 1)
            guard let end = self.valueEnd(start) else { return nil }
            self.ranges[name] = start..<end
            index = self.skipSpace(end)
            guard index < text.count else { return nil }
            if text[index] == UInt8(ascii: "}") { return }
            guard text[index] == UInt8(ascii: ",") else { return nil }
            index = self.skipSpace(index + 1)
        }
    }

    /// The value's text as it is written; nil when there is no such member.
    package func raw(_ name: String) -> [UInt8]? {
        self.ranges[name].map { Array(self.text[$0]) }
    }

    private func skipSpace(_ start: Int) -> Int {
        var index = start
        while index < self.text.count, [0x20, 0x09, 0x0A, 0x0D].contains(self.text[index]) { index += 1 }
        return index
    }

    /// The index after the string that begins at `start`.
    private func stringEnd(_ start: Int) -> Int? {
        guard start < self.text.count, self.text[start] == UInt8(ascii: "\"") else { return nil }
        var index = start + 1
        while index < self.text.count {
            switch self.text[index] {
            case UInt8(ascii: "\\"): index += 2
            case UInt8(ascii: "\""): return index + 1
            default: index += 1
            }
        }
        return nil
    }

    /// The index after the value that begins at `start`.
    private func valueEnd(_ start: Int) -> Int? {
        var index = start
        var depth = 0
        while index < self.text.count {
            switch self.text[index] {
            case UInt8(ascii: "\""):
                guard let end = self.stringEnd(index) else { return nil }
                index = end
                if depth == 0 { return index }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                // A number or a word ends where its object does.
                if depth == 0 { return index > start ? index : nil }
                depth -= 1
                if depth == 0 { return index + 1 }
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D:
                if depth == 0 { return index > start ? index : nil }
            default: break
            }
            index += 1
        }
        return nil
    }
}

/// A JSON number as it was written, so that no decimal is lost.
package struct JSONNumber: Hashable, Sendable {
    /// The number's text, as RFC 8259 allows it; JSON5 has infinities and NaN besides.
    package let text: String

    /// - Parameter text: a number as RFC 8259 allows it.
    init(text: String) {
        self.text = text
    }

    package init(_ double: Double) {
        self.text = Self.text(of: double)
    }

    /// A number without a fraction that says nothing.
    package static func text(of double: Double) -> String {
        let text = String(double)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// The nearest double; infinite when it is too large for one.
    package var double: Double { Double(self.text) ?? .infinity }

    /// A number of seconds in whole milliseconds.
    package enum Milliseconds: Hashable, Sendable {
        case exact(Int64)
        /// There are more than three decimals that are not zero.
        case tooFine
        case tooLarge
    }

    /// The number, taken as seconds, in milliseconds. Computed from the digits: a double would round.
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
                // An exponent past any integer keeps its sign: far too large, or far too fine.
                let saturated = bytes.first == UInt8(ascii: "-") ? -1_000_000 : 1_000_000
                shift += max(-1_000_000, min(exponent ?? saturated, 1_000_000))
                break
            } else {
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
