/// Finds the first syntax fault in a JSON text (RFC 8259) of any depth, and its position.
///
/// It builds no values and does not check the range of numbers or the contents of strings.
package struct JSONSyntax {
    private let bytes: [UInt8]
    private var index = 0
    /// The start positions of the open objects and arrays.
    private var open: [Int] = []

    /// Returns the first fault of `text`; nil if it is JSON.
    package static func fault(in text: [UInt8]) -> JSONSyntaxFault? {
        var syntax = JSONSyntax(bytes: text)
        do throws(JSONSyntaxFault) {
            try syntax.check()
            return nil
        } catch {
            return error
        }
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private var current: UInt8? { self.index < self.bytes.count ? self.bytes[self.index] : nil }

    private func fault(_ what: String, at place: Int? = nil) -> JSONSyntaxFault {
        let (line, column) = JSON5Reader.place(of: place ?? self.index, in: self.bytes)
        return JSONSyntaxFault(what: "line \(line), column \(column): \(what)", isCutShort: false)
    }

    /// Returns a fault for a text that ends too early, which names the innermost open part.
    private func cutShort(_ what: String, at place: Int) -> JSONSyntaxFault {
        let (line, column) = JSON5Reader.place(of: place, in: self.bytes)
        return JSONSyntaxFault(what: "\(what) that begins at line \(line), column \(column)", isCutShort: true)
    }

    private mutating func skipSpace() {
        while let byte = self.current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { self.index += 1 }
    }

    private mutating func check() throws(JSONSyntaxFault) {
        guard String(validating: self.bytes, as: UTF8.self) != nil else {
            throw JSONSyntaxFault(what: "it is not UTF-8", isCutShort: false)
        }
        self.skipSpace()
        guard self.current != nil else { throw JSONSyntaxFault(what: "it is empty", isCutShort: false) }
        repeat {
            // A nonempty container opens a level. The loop continues with its first value.
            if try self.value() { continue }
            try self.close()
        } while !self.open.isEmpty
        self.skipSpace()
        guard self.current == nil else { throw self.fault("there is more after the end of the value") }
    }

    /// Consumes the ends of levels after a value, up to the next value of an open level.
    private mutating func close() throws(JSONSyntaxFault) {
        while let start = self.open.last {
            let isObject = self.bytes[start] == UInt8(ascii: "{")
            self.skipSpace()
            switch self.current {
            case UInt8(ascii: ","):
                self.index += 1
                return isObject ? try self.name() : ()
            case isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"):
                self.index += 1
                self.open.removeLast()
            case nil: throw self.cutShort(isObject ? "in the object" : "in the list", at: start)
            default: throw self.fault("a comma or \(isObject ? "}" : "]") should be here")
            }
        }
    }

    /// Consumes a value, or the start of a container.
    ///
    /// - Returns: true if a nonempty level was opened.
    private mutating func value() throws(JSONSyntaxFault) -> Bool {
        self.skipSpace()
        guard let byte = self.current else { throw self.endsInLevel() }
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            self.open.append(self.index)
            self.index += 1
            self.skipSpace()
            guard self.current == (byte == UInt8(ascii: "{") ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                if byte == UInt8(ascii: "{") { try self.name() }
                return true
            }
            self.index += 1
            self.open.removeLast()
        case UInt8(ascii: "\""): try self.string()
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try self.number()
        default: try self.word()
        }
        return false
    }

    private func endsInLevel() -> JSONSyntaxFault {
        guard let start = self.open.last else { return JSONSyntaxFault(what: "it is empty", isCutShort: false) }
        return self.cutShort(self.bytes[start] == UInt8(ascii: "{") ? "in the object" : "in the list", at: start)
    }

    /// Consumes a member's name and its colon.
    private mutating func name() throws(JSONSyntaxFault) {
        self.skipSpace()
        guard let byte = self.current else { throw self.endsInLevel() }
        guard byte == UInt8(ascii: "\"") else { throw self.fault("a name in double quotes should be here") }
        try self.string()
        self.skipSpace()
        guard let byte = self.current else { throw self.endsInLevel() }
        guard byte == UInt8(ascii: ":") else { throw self.fault("a colon should be here") }
        self.index += 1
    }

    private mutating func string() throws(JSONSyntaxFault) {
        let start = self.index
        self.index += 1
        while let byte = self.current {
            guard byte >= 0x20 else { throw self.fault("a control character in a string must be escaped") }
            self.index += 1
            if byte == UInt8(ascii: "\"") { return }
            if byte == UInt8(ascii: "\\") { try self.escape() }
        }
        throw self.cutShort("in the string", at: start)
    }

    private mutating func escape() throws(JSONSyntaxFault) {
        guard let byte = self.current else { return }
        guard "\"\\/bfnrtu".utf8.contains(byte) else {
            throw self.fault("a backslash must be followed by one of \" \\ / b f n r t u")
        }
        self.index += 1
        guard byte == UInt8(ascii: "u") else { return }
        for _ in 0..<4 {
            guard let digit = self.current else { return }
            guard Character(Unicode.Scalar(digit)).isHexDigit else {
                throw self.fault("four hexadecimal digits should be here")
            }
            self.index += 1
        }
    }

    private mutating func number() throws(JSONSyntaxFault) {
        if self.current == UInt8(ascii: "-") { self.index += 1 }
        if self.current == UInt8(ascii: "0") {
            self.index += 1
        } else {
            try self.digits()
        }
        if self.current == UInt8(ascii: ".") {
            self.index += 1
            try self.digits()
        }
        guard let byte = self.current, byte | 0x20 == UInt8(ascii: "e") else { return }
        self.index += 1
        if self.current == UInt8(ascii: "+") || self.current == UInt8(ascii: "-") { self.index += 1 }
        try self.digits()
    }

    private mutating func digits() throws(JSONSyntaxFault) {
        let start = self.index
        while let byte = self.current, byte &- 0x30 < 10 { self.index += 1 }
        guard self.index > start else { throw self.fault("a digit should be here") }
    }

    private mutating func word() throws(JSONSyntaxFault) {
        for word in ["true", "false", "null"] where self.bytes[self.index...].starts(with: word.utf8) {
            self.index += word.utf8.count
            return
        }
        throw self.fault("a value should be here; text stands in double quotes")
    }
}

/// The reason why a text is not JSON.
package struct JSONSyntaxFault: Error, Hashable, Sendable {
    /// The fault and its position, as a clause.
    package let what: String
    /// True if the text ends too early, as a truncated text does.
    package let isCutShort: Bool

    package init(what: String, isCutShort: Bool) {
        self.what = what
        self.isCutShort = isCutShort
    }
}
