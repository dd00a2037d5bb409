/// A JSON value of a trace line.
enum JSONValue {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object([JSONMember])

    /// What it is, for messages.
    var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// A name and its value in an object, in the order of the text.
struct JSONMember {
    let name: String
    let value: JSONValue
}

/// Why a text is not JSON.
struct JSONFault: Error {
    /// The byte at which reading stopped, from 1.
    let column: Int
    let what: String
}
