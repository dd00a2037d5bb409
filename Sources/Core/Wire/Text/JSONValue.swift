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
