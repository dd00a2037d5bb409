/// Finds the first syntax fault in the payload of a push, and its position.
package enum JSONSyntax {
    /// Returns the first fault of `text`; nil if it is JSON (RFC 8259).
    package static func fault(in text: [UInt8]) -> JSONSyntaxFault? {
        guard String(validating: text, as: UTF8.self) != nil else {
            return JSONSyntaxFault(what: "it is not UTF-8", isCutShort: false)
        }
        var parser = JSONParser(text, .payload, depthMax: PayloadClassifier.depthMax)
        do throws(JSONParser.Fault) {
            guard try parser.next() != nil else { return JSONSyntaxFault(what: "it is empty", isCutShort: false) }
            _ = try parser.value()
            return nil
        } catch {
            guard parser.current == nil, let start = parser.open.last else {
                let (line, column) = JSON5Reader.place(of: error.place, in: text)
                return JSONSyntaxFault(what: "line \(line), column \(column): \(error.what)", isCutShort: false)
            }
            let (line, column) = JSON5Reader.place(of: start, in: text)
            let parts = [UInt8(ascii: "{"): "object", UInt8(ascii: "["): "list"]
            let what = "in the \(parts[text[start]] ?? "string") that begins at line \(line), column \(column)"
            return JSONSyntaxFault(what: what, isCutShort: true)
        }
    }
}

/// The reason why a text is not JSON.
package struct JSONSyntaxFault: Error, Hashable, Sendable {
    /// The fault and its position, written as a clause.
    package let what: String
    /// True if the text ends too early. `what` then names the innermost open part.
    package let isCutShort: Bool

    package init(what: String, isCutShort: Bool) {
        self.what = what
        self.isCutShort = isCutShort
    }
}
