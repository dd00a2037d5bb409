import Foundation
import Text

extension JSONValue {
    /// Reads JSON5: JSON with comments, unquoted keys, single quotes and trailing commas.
    ///
    /// An object's members come in the order of their names.
    ///
    /// - Throws: `DecodingError` with the place of the first fault.
    static func json5(_ text: Data) throws -> JSONValue {
        // Foundation's reader of JSON5 traps on what is not UTF-8.
        guard String(validating: text, as: UTF8.self) != nil else {
            let line = self.firstLineOutsideUTF8(text)
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: [], debugDescription: "line \(line) is not UTF-8")
            )
        }
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        return try decoder.decode(Decoded.self, from: text).value
    }

    /// The number of the first line, from 1, that is not UTF-8.
    private static func firstLineOutsideUTF8(_ text: Data) -> Int {
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
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
