package import Foundation

/// Any JSON value, for input whose keys are checked by hand so that every fault can be named.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Reads JSON5: JSON with comments, unquoted keys, single quotes and trailing commas.
    ///
    /// - Throws: `DecodingError` with the place of the first fault.
    package static func json5(_ text: Data) throws -> JSONValue {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        return try decoder.decode(JSONValue.self, from: text)
    }

    /// The value as it stands in messages: short values as they are, others by their kind.
    package var described: String {
        switch self {
        case .null: "null"
        case .bool(let value): String(value)
        case .number(let value): JSONValue.text(of: value)
        case .string(let value): "\"\(value)\""
        case .array: "a list"
        case .object: "an object"
        }
    }

    /// A number without a fraction that says nothing.
    package static func text(of number: Double) -> String {
        let text = String(number)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

extension JSONValue: Decodable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}
