import FoundationEssentials
import Wire

extension JSONValue {
    var text: String? {
        if case .string(let text) = self { return text }
        return nil
    }

    var integer: Int64? {
        if case .number(let number) = self { return Int64(number.text) }
        return nil
    }

    /// A number of seconds.
    var seconds: Duration? {
        guard case .number(let number) = self, case .exact(let milliseconds) = number.milliseconds else { return nil }
        return .milliseconds(milliseconds)
    }

    /// An instant in milliseconds since 1970.
    var instant: Date? { self.integer.map { Date(timeIntervalSince1970: Double($0) / 1000) } }

    var bool: Bool? {
        if case .bool(let flag) = self { return flag }
        return nil
    }

    /// An array's elements; none when it is none.
    var elements: [JSONValue] {
        if case .array(let elements) = self { return elements }
        return []
    }

    /// The JSON object of a body; nil when it is none.
    static func object(_ body: some Collection<UInt8>) -> JSONValue? {
        guard let value = try? JSONReader.read(String(decoding: body, as: UTF8.self)), case .object = value else {
            return nil
        }
        return value
    }
}

/// A JSON object that is written member by member; what has no value is left out.
struct JSONObject {
    private var members: [String] = []

    var text: String { "{\(self.members.joined(separator: ","))}" }
    var bytes: [UInt8] { Array(self.text.utf8) }

    mutating func add(_ name: String, _ value: String?) {
        if let value { self.members.append("\(Self.string(name)):\(Self.string(value))") }
    }

    mutating func add(_ name: String, _ value: Int64?) {
        if let value { self.members.append("\(Self.string(name)):\(value)") }
    }

    mutating func add(_ name: String, _ value: Bool?) {
        if let value { self.members.append("\(Self.string(name)):\(value)") }
    }

    /// In seconds, to the millisecond.
    mutating func add(_ name: String, _ value: Duration?) {
        guard let value else { return }
        let milliseconds = value.components.seconds * 1000 + value.components.attoseconds / 1_000_000_000_000_000
        let rest = String(milliseconds % 1000)
        let decimals = rest == "0" ? "" : "." + String(repeating: "0", count: 3 - rest.count) + rest
        self.members.append("\(Self.string(name)):\(milliseconds / 1000)\(decimals)")
    }

    mutating func add(_ name: String, _ value: JSONObject) {
        self.members.append("\(Self.string(name)):\(value.text)")
    }

    /// A string, with its quotation marks.
    private static func string(_ text: String) -> String {
        var written = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": written += "\\\(scalar)"
            case "\0"..."\u{1F}":
                let digits = String(scalar.value, radix: 16)
                written += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: written.unicodeScalars.append(scalar)
            }
        }
        return written + "\""
    }
}
