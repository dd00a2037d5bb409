import Foundation
import Text

extension JSONValue {
    /// Reads JSON5: JSON with comments, unquoted keys, single quotes and trailing commas.
    ///
    /// An object's members come in the order of their names.
    ///
    /// - Throws: `DecodingError` with the place of the first fault.
    static func json5(_ text: Data) throws -> JSONValue {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        return try decoder.decode(Decoded.self, from: text).value
    }

    /// Foundation's way to any value.
    private struct Decoded: Decodable {
        let value: JSONValue

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self.value = .null
            } else if let value = try? container.decode(Bool.self) {
                self.value = .bool(value)
            } else if let value = try? container.decode(Double.self) {
                self.value = .number(JSONNumber(value))
            } else if let value = try? container.decode(String.self) {
                self.value = .string(value)
            } else if let values = try? container.decode([Decoded].self) {
                self.value = .array(values.map(\.value))
            } else {
                let members = try container.decode([String: Decoded].self)
                self.value = .object(
                    members.sorted { $0.key < $1.key }.map { JSONMember(name: $0.key, value: $0.value.value) }
                )
            }
        }
    }
}
