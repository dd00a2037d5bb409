import FoundationEssentials
import Wire

extension JSONValue {
    /// Reads JSON5: JSON with comments, unquoted keys, single quotes and trailing commas.
    ///
    /// An object's members come in the order of their names.
    ///
    /// - Throws: the first fault, with its place.
    static func json5(_ text: Data) throws(JSON5Fault) -> JSONValue {
        try JSON5Reader.read(Array(text))
    }
}
