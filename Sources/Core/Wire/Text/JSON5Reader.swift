/// Reads a JSON5 text: JSON with comments, unquoted names, single quotes and trailing commas.
///
/// The members of an object are sorted by name. A repeated name is a fault.
package enum JSON5Reader {
    /// Parses `text`. Text that is not UTF-8 is a fault.
    ///
    /// - Throws: the first fault in the text.
    package static func read(_ text: [UInt8]) throws(JSON5Fault) -> JSONValue {
        if let line = self.firstLineOutsideUTF8(text) { throw JSON5Fault(line: line, kind: .notUTF8) }
        do throws(JSONParser.Fault) {
            return try JSONParser.read(text, .json5)
        } catch {
            let (line, column) = self.place(of: error.place, in: text)
            guard let (name, first) = error.repeated else {
                throw JSON5Fault(line: line, kind: .syntax(column: column, what: error.what))
            }
            let (firstLine, firstColumn) = self.place(of: first, in: text)
            throw JSON5Fault(
                line: line,
                kind: .duplicate(name: name, column: column, firstLine: firstLine, firstColumn: firstColumn)
            )
        }
    }

    /// Returns the number of the first line, counted from 1, that is not UTF-8; nil if all lines are.
    private static func firstLineOutsideUTF8(_ text: [UInt8]) -> Int? {
        guard String(validating: text, as: UTF8.self) == nil else { return nil }
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
    }

    /// Returns the line and the column of a byte, both counted from 1. Columns count Unicode scalars.
    static func place(of index: Int, in bytes: [UInt8]) -> (line: Int, column: Int) {
        let before = bytes[..<min(index, bytes.count)]
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        let line = 1 + before.count { $0 == UInt8(ascii: "\n") }
        // A byte that starts with the bits 10 continues a character, so it does not count.
        return (line, 1 + before[lineStart...].count { $0 & 0xC0 != 0x80 })
    }
}

/// The first fault of a JSON5 text.
package struct JSON5Fault: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case notUTF8
        case syntax(column: Int, what: String)
        /// A name is repeated in an object. The fault's position is the second occurrence.
        case duplicate(name: String, column: Int, firstLine: Int, firstColumn: Int)
    }

    /// The line of the fault, counted from 1.
    package let line: Int
    package let kind: Kind

    /// The fault, as a clause without a subject.
    package var problem: String {
        switch self.kind {
        case .notUTF8: "is not JSON5 (line \(self.line) is not UTF-8)"
        case .syntax(let column, let what): "is not JSON5 (line \(self.line), column \(column): \(what))"
        case .duplicate(let name, let column, let firstLine, let firstColumn):
            "has \"\(name)\" twice (line \(firstLine), column \(firstColumn); line \(self.line), column \(column))"
        }
    }

    package var remedy: String {
        switch self.kind {
        case .notUTF8, .syntax: "correct the syntax there"
        case .duplicate: "leave one of the two"
        }
    }

    package var description: String { "\(self.problem); \(self.remedy)" }
}

// MARK: - JSON5 extensions

extension JSONParser {
    /// Returns the size in bytes of the JSON5 white space character at the current position; nil if there is none.
    /// White space that is also JSON is not included.
    func furtherSpace() -> Int? {
        let spaces = ["\u{A0}", "\u{FEFF}", "\u{2028}", "\u{2029}", "\u{1680}", "\u{202F}", "\u{205F}", "\u{3000}"]
        if let byte = self.current, byte < 0x80 { return byte == 0x0B || byte == 0x0C ? 1 : nil }
        let rest = self.bytes[self.index...]
        if let space = spaces.first(where: { rest.starts(with: $0.utf8) }) { return space.utf8.count }
        // U+2000 to U+200A
        guard rest.starts(with: [0xE2, 0x80]), rest.count > 2, (0x80...0x8A).contains(rest[self.index + 2]) else {
            return nil
        }
        return 3
    }

    mutating func skipComment() throws(Fault) {
        let start = self.index
        self.index += 1
        switch self.current {
        case UInt8(ascii: "/"):
            while let byte = self.current, byte != UInt8(ascii: "\n") { self.index += 1 }
        case UInt8(ascii: "*"):
            self.index += 1
            while self.index + 1 < self.bytes.count {
                if self.bytes[self.index] == UInt8(ascii: "*"), self.bytes[self.index + 1] == UInt8(ascii: "/") {
                    self.index += 2
                    return
                }
                self.index += 1
            }
            throw self.fault("the comment that begins here is not closed with */", at: start)
        default: throw self.fault("a comment begins with // or /*", at: start)
        }
    }

    /// Reads a value that is not an object, an array or a string in double quotes.
    mutating func furtherValue(_ first: UInt8) throws(Fault) -> JSONValue {
        switch first {
        case UInt8(ascii: "'"): .string(try self.string())
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "0")...UInt8(ascii: "9"):
            .number(JSONNumber(try self.number()))
        default: try self.word()
        }
    }

    /// Reads `true`, `false`, `null`, `Infinity` or `NaN`.
    private mutating func word() throws(Fault) -> JSONValue {
        let start = self.index
        let word = try self.identifier()
        switch word {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .null
        case "Infinity": return .number(JSONNumber(.infinity))
        case "NaN": return .number(JSONNumber(.nan))
        case nil: throw self.fault("a value should be here", at: start)
        case let word?: throw self.fault("\"\(word)\" is not a value; write text in quotes", at: start)
        }
    }

    /// Reads the name of a member, with or without quotes.
    mutating func furtherName() throws(Fault) -> String {
        let start = self.index
        if self.current == UInt8(ascii: "\"") || self.current == UInt8(ascii: "'") { return try self.string() }
        guard let byte = self.current, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte),
            let name = try self.identifier()
        else { throw self.fault("a name should be here", at: start) }
        return name
    }

    /// Reads a name of letters, digits, `_` and `$`; nil if there is none.
    private mutating func identifier() throws(Fault) -> String? {
        var scalars = String.UnicodeScalarView()
        var start = self.index
        func run(_ end: Int) -> String { String(decoding: self.bytes[start..<end], as: UTF8.self) }
        while let byte = self.current {
            if Self.isWordByte(byte), self.furtherSpace() == nil {
                self.index += 1
            } else if byte == UInt8(ascii: "\\"), self.bytes[self.index...].dropFirst().first == UInt8(ascii: "u") {
                scalars += run(self.index).unicodeScalars
                self.index += 2
                scalars.append(try self.unicodeEscape())
                start = self.index
            } else {
                break
            }
        }
        scalars += run(self.index).unicodeScalars
        return scalars.isEmpty ? nil : String(scalars)
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        byte >= 0x80 || byte.isLetterOrDigit(or: "_$")
    }

    /// Returns the character of an escape that exists only in JSON5, after its first byte was consumed. Returns nil if
    /// the escape itself adds no character.
    mutating func furtherEscape(_ byte: UInt8) throws(Fault) -> Unicode.Scalar? {
        switch byte {
        case UInt8(ascii: "v"): return "\u{B}"
        case UInt8(ascii: "0"): return "\0"
        case UInt8(ascii: "x"): return Unicode.Scalar(UInt8(try self.hexadecimal(digits: 2)))
        case UInt8(ascii: "\n"): return nil
        case UInt8(ascii: "\r"):
            if self.current == UInt8(ascii: "\n") { self.index += 1 }
            return nil
        case UInt8(ascii: "1")...UInt8(ascii: "9"):
            throw self.fault("a digit behind a backslash means nothing", at: self.index - 1)
        case 0x80...:
            // Any other character represents itself. Its bytes are read again as ordinary text.
            self.index -= 1
            if self.bytes[self.index...].starts(with: [0xE2, 0x80, 0xA8])
                || self.bytes[self.index...].starts(with: [0xE2, 0x80, 0xA9])
            {
                self.index += 3
            }
            return nil
        default: return Unicode.Scalar(byte)
        }
    }
}

// MARK: - Numbers

extension JSONParser {
    private mutating func number() throws(Fault) -> Double {
        let start = self.index
        var isNegative = false
        if let sign = self.current, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
            isNegative = sign == UInt8(ascii: "-")
            self.index += 1
        }
        let magnitude = try self.magnitude(start)
        return isNegative ? -magnitude : magnitude
    }

    /// Reads a number after its sign.
    ///
    /// - Parameter start: the start of the number, for messages, including its sign.
    private mutating func magnitude(_ start: Int) throws(Fault) -> Double {
        let first = self.index
        while let byte = self.current, Self.isWordByte(byte) || byte == UInt8(ascii: ".") || self.isExponentSign(first)
        {
            self.index += 1
        }
        let text = String(decoding: self.bytes[first..<self.index], as: UTF8.self)
        if text == "Infinity" { return .infinity }
        if text == "NaN" { return .nan }
        let isHexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
        guard let number = isHexadecimal ? Self.hexadecimal(text.dropFirst(2)) : Self.decimal(text) else {
            let written = String(decoding: self.bytes[start..<self.index], as: UTF8.self)
            throw self.fault("\"\(written)\" is not a number; write text in quotes", at: start)
        }
        return number
    }

    /// Returns true if the current byte is the sign of the exponent in the decimal number that starts at `first`.
    private func isExponentSign(_ first: Int) -> Bool {
        guard self.index > first, self.current == UInt8(ascii: "+") || self.current == UInt8(ascii: "-") else {
            return false
        }
        let isHexadecimal = self.index > first + 1 && self.bytes[first + 1] | 0x20 == UInt8(ascii: "x")
        return !isHexadecimal && self.bytes[self.index - 1] | 0x20 == UInt8(ascii: "e")
    }

    private static func hexadecimal(_ digits: Substring) -> Double? {
        guard !digits.isEmpty else { return nil }
        var value = 0.0
        for digit in digits {
            guard digit.isASCII, let number = digit.hexDigitValue else { return nil }
            value = value * 16 + Double(number)
        }
        return value
    }

    /// Parses a decimal number, which may start or end with the decimal point.
    private static func decimal(_ text: String) -> Double? {
        let parts = text.split(omittingEmptySubsequences: false) { $0 == "e" || $0 == "E" }
        guard parts.count <= 2, let mantissa = parts.first else { return nil }
        let digits = mantissa.split(separator: ".", omittingEmptySubsequences: false)
        guard digits.count <= 2, digits.contains(where: { !$0.isEmpty }),
            digits.allSatisfy({ $0.utf8.allSatisfy { $0 &- 0x30 < 10 } }),
            // Rejects leading zeros, which some readers interpret as octal.
            digits[0].count <= 1 || !digits[0].hasPrefix("0")
        else { return nil }
        var number = (digits[0].isEmpty ? "0" : digits[0]) + (digits.count == 2 && !digits[1].isEmpty ? "." : "")
        if digits.count == 2 { number += digits[1] }
        guard parts.count == 2 else { return Double(String(number)) ?? .infinity }
        let exponent = parts[1].first == "+" || parts[1].first == "-" ? parts[1].dropFirst() : parts[1]
        guard !exponent.isEmpty, exponent.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        return Double("\(number)e\(parts[1])") ?? .infinity
    }
}
