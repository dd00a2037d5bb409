/// Reads one text of JSON5: JSON with comments, unquoted names, single quotes and trailing commas.
///
/// An object's members come in the order of their names, and the same name twice is a fault.
package struct JSON5Reader {
    /// Deeper nesting than any configuration has; more would only cost stack.
    static let depthMax = 64

    private let bytes: [UInt8]
    private var index = 0

    /// The value that `text`, which should be UTF-8, is.
    ///
    /// - Throws: the first fault.
    package static func read(_ text: [UInt8]) throws(JSON5Fault) -> JSONValue {
        if let line = self.firstLineOutsideUTF8(text) { throw JSON5Fault(line: line, kind: .notUTF8) }
        var reader = JSON5Reader(bytes: text)
        let value = try reader.value(depth: 0)
        guard try reader.next() == nil else { throw reader.fault("there is more after the end of the value") }
        return value
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The number of the first line, from 1, that is not UTF-8; nil when all are.
    private static func firstLineOutsideUTF8(_ text: [UInt8]) -> Int? {
        guard String(validating: text, as: UTF8.self) == nil else { return nil }
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
    }

    // MARK: Places

    private func fault(_ what: String, at place: Int? = nil) -> JSON5Fault {
        let (line, column) = self.place(of: place ?? self.index)
        return JSON5Fault(line: line, kind: .syntax(column: column, what: what))
    }

    /// The line and the column of a byte, both from 1; columns are characters of Unicode.
    private func place(of index: Int) -> (line: Int, column: Int) {
        let before = self.bytes[..<min(index, self.bytes.count)]
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        let line = 1 + before.count { $0 == UInt8(ascii: "\n") }
        // What begins with the bits 10 goes on with a character.
        return (line, 1 + before[lineStart...].count { $0 & 0xC0 != 0x80 })
    }

    // MARK: White space

    private var current: UInt8? { self.index < self.bytes.count ? self.bytes[self.index] : nil }

    /// The next byte that is neither white space nor part of a comment, which stays unread.
    private mutating func next() throws(JSON5Fault) -> UInt8? {
        while let byte = self.current {
            if byte == 0x20 || (0x09...0x0D).contains(byte) {
                self.index += 1
            } else if byte == UInt8(ascii: "/") {
                try self.skipComment()
            } else if let count = self.wideSpace() {
                self.index += count
            } else {
                return byte
            }
        }
        return nil
    }

    /// How many bytes the white space outside ASCII has that begins here; nil when none does.
    private func wideSpace() -> Int? {
        let spaces = ["\u{A0}", "\u{FEFF}", "\u{2028}", "\u{2029}", "\u{1680}", "\u{202F}", "\u{205F}", "\u{3000}"]
        if let byte = self.current, byte < 0x80 { return nil }
        let rest = self.bytes[self.index...]
        if let space = spaces.first(where: { rest.starts(with: $0.utf8) }) { return space.utf8.count }
        // U+2000 to U+200A
        guard rest.starts(with: [0xE2, 0x80]), rest.count > 2, (0x80...0x8A).contains(rest[self.index + 2]) else {
            return nil
        }
        return 3
    }

    private mutating func skipComment() throws(JSON5Fault) {
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

    private mutating func consume(_ byte: UInt8) throws(JSON5Fault) -> Bool {
        guard try self.next() == byte else { return false }
        self.index += 1
        return true
    }
}

// MARK: - Values

extension JSON5Reader {
    private mutating func value(depth: Int) throws(JSON5Fault) -> JSONValue {
        guard depth < Self.depthMax else { throw self.fault("values are nested more than \(Self.depthMax) deep") }
        guard let byte = try self.next() else { throw self.fault("the text ends where a value should be") }
        switch byte {
        case UInt8(ascii: "{"): return try self.object(depth: depth)
        case UInt8(ascii: "["): return try self.array(depth: depth)
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string(try self.string())
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return .number(JSONNumber(try self.number()))
        default: return try self.word()
        }
    }

    /// `true`, `false`, `null`, `Infinity` or `NaN`.
    private mutating func word() throws(JSON5Fault) -> JSONValue {
        let start = self.index
        let word = try self.identifier()
        switch word {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .null
        case "Infinity": return .number(JSONNumber(.infinity))
        case "NaN": return .number(JSONNumber(.nan))
        case nil: throw self.fault("a value should be here", at: start)
        case let word?: throw self.fault("\"\(word)\" is no value; text stands in quotes", at: start)
        }
    }

    private mutating func object(depth: Int) throws(JSON5Fault) -> JSONValue {
        let start = self.index
        var members: [JSONMember] = []
        var places: [String: Int] = [:]
        self.index += 1
        while try !self.consume(UInt8(ascii: "}")) {
            guard try self.next() != nil else { throw self.fault("the { that stands here is not closed", at: start) }
            let place = self.index
            let name = try self.name()
            if let first = places.updateValue(place, forKey: name) { throw self.duplicate(name, first, place) }
            guard try self.consume(UInt8(ascii: ":")) else {
                throw self.fault("a colon should be here, behind the name \"\(name)\"")
            }
            members.append(JSONMember(name: name, value: try self.value(depth: depth + 1)))
            if try self.consume(UInt8(ascii: ",")) { continue }
            guard try self.next() != nil else { throw self.fault("the { that stands here is not closed", at: start) }
            guard try self.next() == UInt8(ascii: "}") else { throw self.fault("a comma or } should be here") }
        }
        return .object(members.sorted { $0.name < $1.name })
    }
}

extension JSON5Reader {
    private func duplicate(_ name: String, _ first: Int, _ second: Int) -> JSON5Fault {
        let (firstLine, firstColumn) = self.place(of: first)
        let (line, column) = self.place(of: second)
        return JSON5Fault(
            line: line,
            kind: .duplicate(name: name, column: column, firstLine: firstLine, firstColumn: firstColumn)
        )
    }

    private mutating func array(depth: Int) throws(JSON5Fault) -> JSONValue {
        let start = self.index
        var elements: [JSONValue] = []
        self.index += 1
        while try !self.consume(UInt8(ascii: "]")) {
            guard try self.next() != nil else { throw self.fault("the [ that stands here is not closed", at: start) }
            elements.append(try self.value(depth: depth + 1))
            if try self.consume(UInt8(ascii: ",")) { continue }
            guard try self.next() != nil else { throw self.fault("the [ that stands here is not closed", at: start) }
            guard try self.next() == UInt8(ascii: "]") else { throw self.fault("a comma or ] should be here") }
        }
        return .array(elements)
    }

    /// A member's name, in quotes or not.
    private mutating func name() throws(JSON5Fault) -> String {
        let start = self.index
        if self.current == UInt8(ascii: "\"") || self.current == UInt8(ascii: "'") { return try self.string() }
        guard let byte = self.current, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte),
            let name = try self.identifier()
        else { throw self.fault("a name should be here", at: start) }
        return name
    }

    /// A word of letters, digits, `_` and `$`; nil when none begins here.
    private mutating func identifier() throws(JSON5Fault) -> String? {
        var scalars = String.UnicodeScalarView()
        var start = self.index
        func run(_ end: Int) -> String { String(decoding: self.bytes[start..<end], as: UTF8.self) }
        while let byte = self.current {
            if Self.isWordByte(byte), self.wideSpace() == nil {
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
        byte >= 0x80 || (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "$")
    }
}

// MARK: - Numbers

extension JSON5Reader {
    private mutating func number() throws(JSON5Fault) -> Double {
        let start = self.index
        var isNegative = false
        if let sign = self.current, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
            isNegative = sign == UInt8(ascii: "-")
            self.index += 1
        }
        let magnitude = try self.magnitude(start)
        return isNegative ? -magnitude : magnitude
    }

    /// A number without its sign.
    ///
    /// - Parameter start: where the number begins, for messages.
    private mutating func magnitude(_ start: Int) throws(JSON5Fault) -> Double {
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
            throw self.fault("\"\(written)\" is no number; text stands in quotes", at: start)
        }
        return number
    }

    /// Whether the byte at hand is the sign of an exponent, in a number that begins at `first` and is not hexadecimal.
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

    /// A decimal number, which may begin or end with its point.
    private static func decimal(_ text: String) -> Double? {
        let parts = text.split(omittingEmptySubsequences: false) { $0 == "e" || $0 == "E" }
        guard parts.count <= 2, let mantissa = parts.first else { return nil }
        let digits = mantissa.split(separator: ".", omittingEmptySubsequences: false)
        guard digits.count <= 2, digits.contains(where: { !$0.isEmpty }),
            digits.allSatisfy({ $0.utf8.allSatisfy { $0 &- 0x30 < 10 } }),
            // A zero before other digits means octal to some.
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

// MARK: - Strings

extension JSON5Reader {
    /// Reads a string from its opening to its closing quote.
    private mutating func string() throws(JSON5Fault) -> String {
        let opening = self.index
        let quote = self.bytes[self.index]
        self.index += 1
        var text = ""
        var start = self.index
        while let byte = self.current {
            guard byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") else { break }
            guard byte == quote || byte == UInt8(ascii: "\\") else {
                self.index += 1
                continue
            }
            text += String(decoding: self.bytes[start..<self.index], as: UTF8.self)
            self.index += 1
            if byte == quote { return text }
            if let scalar = try self.escaped() { text.unicodeScalars.append(scalar) }
            start = self.index
        }
        throw self.fault("the text that begins here is not closed with its quote", at: opening)
    }

    /// What stands behind a backslash; nil for the end of a line, which only goes on with the text in the next one.
    private mutating func escaped() throws(JSON5Fault) -> Unicode.Scalar? {
        guard let byte = self.current else { throw self.fault("the text ends behind a backslash") }
        self.index += 1
        switch byte {
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "v"): return "\u{B}"
        case UInt8(ascii: "0"): return "\0"
        case UInt8(ascii: "x"): return Unicode.Scalar(UInt8(try self.hexadecimal(digits: 2)))
        case UInt8(ascii: "u"): return try self.unicodeEscape()
        case UInt8(ascii: "\n"): return nil
        case UInt8(ascii: "\r"):
            if self.current == UInt8(ascii: "\n") { self.index += 1 }
            return nil
        case UInt8(ascii: "1")...UInt8(ascii: "9"):
            throw self.fault("a digit behind a backslash means nothing", at: self.index - 1)
        case 0x80...:
            // Any other character stands for itself; the rest of it follows as it is.
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

    /// The character of a `\u` and its four hexadecimal digits, or of a pair of them; begins behind the u.
    private mutating func unicodeEscape() throws(JSON5Fault) -> Unicode.Scalar {
        let start = self.index - 2
        let unit = try self.hexadecimal(digits: 4)
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard unit < 0xDC00, self.bytes[self.index...].starts(with: Array("\\u".utf8)) else {
            throw self.fault("a surrogate stands alone", at: start)
        }
        self.index += 2
        let low = try self.hexadecimal(digits: 4)
        let value = 0x10000 + ((unit - 0xD800) << 10) + (low & 0x3FF)
        guard low & 0xFC00 == 0xDC00, let scalar = Unicode.Scalar(value) else {
            throw self.fault("a surrogate stands alone", at: start)
        }
        return scalar
    }

    private mutating func hexadecimal(digits: Int) throws(JSON5Fault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let byte = self.current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw self.fault("\(digits) hexadecimal digits should be here")
            }
            value = value << 4 | UInt32(digit)
            self.index += 1
        }
        return value
    }
}

/// The first thing that keeps a text from being read as JSON5.
package struct JSON5Fault: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case notUTF8
        case syntax(column: Int, what: String)
        /// An object has a name twice; the place is that of the second.
        case duplicate(name: String, column: Int, firstLine: Int, firstColumn: Int)
    }

    /// From 1.
    package let line: Int
    package let kind: Kind

    /// What is wrong with the text, as a clause without its subject.
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
        case .notUTF8, .syntax: "mend the syntax there"
        case .duplicate: "leave one of the two"
        }
    }

    package var description: String { "\(self.problem); \(self.remedy)" }
}
