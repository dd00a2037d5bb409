/// Reads a JSON text (RFC 8259). Preserves the text of numbers and the order of members.
package enum JSONReader {
    /// Parses `text`. The value may have white space around it.
    ///
    /// - `refusingRepeatedNames`: true to throw if a name is repeated in an object; otherwise the last member counts.
    package static func read(
        _ text: String,
        refusingRepeatedNames refusesRepeatedNames: Bool = false
    ) throws(JSONFault) -> JSONValue {
        do throws(JSONParser.Fault) {
            return try JSONParser.read(Array(text.utf8), refusesRepeatedNames ? .strictWithoutRepeatedNames : .strict)
        } catch {
            throw JSONFault(
                column: error.place + 1,
                what: error.what,
                kind: error.repeated == nil ? .unreadable : .repeatedName,
                member: error.member
            )
        }
    }
}

/// The reason why a text is not JSON.
package struct JSONFault: Error, Hashable {
    package enum Kind: Hashable, Sendable {
        /// The text is not JSON, or exceeds the limits of the reader.
        case unreadable
        /// A name is repeated in an object.
        case repeatedName
    }

    /// The number of the byte at which reading stopped, counted from 1.
    package let column: Int
    package let what: String
    package var kind = Kind.unreadable
    /// The member of the outermost object whose value contains the fault; nil if the fault is not in a member's value.
    package var member: String?
}

/// A parser for a JSON or JSON5 text.
struct JSONParser {
    enum Dialect {
        case strict, strictWithoutRepeatedNames
        /// The payload of a push. It may have escapes of unpaired surrogates.
        case payload
        /// JSON5. Repeated names are a fault.
        case json5
    }

    /// The first fault of a text.
    struct Fault: Error {
        /// The index of the byte at which the fault is.
        let place: Int
        let what: String
        /// The repeated name, and the position of its first occurrence.
        var repeated: (name: String, first: Int)?
        /// The member of the outermost object that contains the fault.
        var member: String?
    }

    let bytes: [UInt8]
    let dialect: Dialect
    let isStrict: Bool
    /// The maximum nesting depth. It limits the use of the stack.
    private let depthMax: Int
    var index = 0
    /// The start positions of the open objects, arrays and strings of a payload.
    private(set) var open: [Int] = []

    init(_ bytes: [UInt8], _ dialect: Dialect, depthMax: Int? = nil) {
        self.bytes = bytes
        self.dialect = dialect
        self.isStrict = dialect != .json5
        // Strict texts are trace lines, requests and answers; JSON5 texts are configurations.
        self.depthMax = depthMax ?? (self.isStrict ? 16 : 64)
    }

    /// Parses `bytes`. The value may have white space around it.
    static func read(_ bytes: [UInt8], _ dialect: Dialect) throws(Fault) -> JSONValue {
        var text = JSONParser(bytes, dialect)
        return try text.value()
    }

    /// Reads the value of the text, and checks that nothing follows it.
    mutating func value() throws(Fault) -> JSONValue {
        let value = try self.value(depth: 0)
        guard try self.next() == nil else { throw self.fault("there is more after the end of the value") }
        return value
    }

    func fault(_ what: String, at place: Int? = nil) -> Fault { Fault(place: place ?? self.index, what: what) }

    var current: UInt8? { self.index < self.bytes.count ? self.bytes[self.index] : nil }

    /// Skips white space and comments, and returns the next byte without consuming it.
    mutating func next() throws(Fault) -> UInt8? {
        while let byte = self.current {
            if byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
                self.index += 1
            } else if self.isStrict {
                return byte
            } else if byte == UInt8(ascii: "/") {
                try self.skipComment()
            } else if let count = self.furtherSpace() {
                self.index += count
            } else {
                return byte
            }
        }
        return nil
    }

    private mutating func consume(_ byte: UInt8) throws(Fault) -> Bool {
        guard try self.next() == byte else { return false }
        self.index += 1
        return true
    }

    /// Consumes the first byte of an object, an array or a string.
    private mutating func begin() {
        if self.dialect == .payload { self.open.append(self.index) }
        self.index += 1
    }

    /// Consumes the end of an object or an array if it comes next. Returns true if it does.
    private mutating func ends(_ byte: UInt8) throws(Fault) -> Bool {
        guard try self.consume(byte) else { return false }
        _ = self.open.popLast()
        return true
    }
}

// MARK: - Values

extension JSONParser {
    private mutating func value(depth: Int) throws(Fault) -> JSONValue {
        guard let byte = try self.next() else { throw self.fault("the text ends where a value should be") }
        if depth >= self.depthMax, byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
            throw self.fault("objects and arrays are nested more than \(self.depthMax) deep")
        }
        switch byte {
        case UInt8(ascii: "{"): return try self.object(depth: depth)
        case UInt8(ascii: "["): return try self.array(depth: depth)
        case UInt8(ascii: "\""): return .string(try self.string())
        case _ where !self.isStrict: return try self.furtherValue(byte)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try self.strictNumber())
        case UInt8(ascii: "t") where self.word("true"): return .bool(true)
        case UInt8(ascii: "f") where self.word("false"): return .bool(false)
        case UInt8(ascii: "n") where self.word("null"): return .null
        case _ where self.dialect == .payload:
            throw self.fault("a value should be here; text stands in double quotes")
        default: throw self.fault("this is not the start of a JSON value")
        }
    }

    private mutating func word(_ word: String) -> Bool {
        guard self.bytes[self.index...].starts(with: word.utf8) else { return false }
        self.index += word.utf8.count
        return true
    }

    private mutating func object(depth: Int) throws(Fault) -> JSONValue {
        let start = self.index
        var members: [JSONMember] = []
        var names = SeenNames()
        self.begin()
        if try self.ends(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            try self.checkEnd(start)
            let name = try self.name(depth: depth, &names)
            guard try self.consume(UInt8(ascii: ":")) else {
                throw self.fault("a colon should be here" + (self.isStrict ? "" : ", behind the name \"\(name)\""))
            }
            members.append(JSONMember(name: name, value: try self.value(of: name, depth: depth + 1)))
        } while try self.goesOn(start)
        return .object(self.isStrict ? members : members.sorted { $0.name < $1.name })
    }

    private mutating func array(depth: Int) throws(Fault) -> JSONValue {
        let start = self.index
        var elements: [JSONValue] = []
        self.begin()
        if try self.ends(UInt8(ascii: "]")) { return .array(elements) }
        repeat {
            try self.checkEnd(start)
            elements.append(try self.value(depth: depth + 1))
        } while try self.goesOn(start)
        return .array(elements)
    }

    /// Consumes the comma after an element, or the end of the object or array that starts at `start`.
    ///
    /// - Returns: true if another element follows.
    private mutating func goesOn(_ start: Int) throws(Fault) -> Bool {
        // The code of a closing bracket is the code of its opening bracket plus two.
        let end = self.bytes[start] + 2
        if try self.consume(UInt8(ascii: ",")) { return self.isStrict ? true : try !self.ends(end) }
        try self.checkEnd(start)
        guard try self.ends(end) else {
            throw self.fault("a comma or \(Character(Unicode.Scalar(end))) should be here")
        }
        return false
    }

    /// Throws if a JSON5 text ends within the object or array that starts at `start`.
    private mutating func checkEnd(_ start: Int) throws(Fault) {
        guard !self.isStrict, try self.next() == nil else { return }
        let opening = Character(Unicode.Scalar(self.bytes[start]))
        throw self.fault("the \(opening) that stands here is not closed", at: start)
    }

    /// The names of the members read so far; in JSON5, with their positions.
    private struct SeenNames {
        /// Names are stored as bytes. Strings compare by canonical equivalence, but names in JSON do not.
        var strict = Set<[UInt8]>()
        var json5: [String: Int] = [:]
    }

    private mutating func name(depth: Int, _ seen: inout SeenNames) throws(Fault) -> String {
        guard self.isStrict else {
            _ = try self.next()
            let place = self.index
            let name = try self.furtherName()
            guard let first = seen.json5.updateValue(place, forKey: name) else { return name }
            throw Fault(place: place, what: "it appears twice", repeated: (name, first))
        }
        guard try self.next() == UInt8(ascii: "\"") else {
            throw self.fault("a name in \(self.dialect == .payload ? "double " : "")quotes should be here")
        }
        let place = self.index
        let name = try self.string()
        if self.dialect == .strictWithoutRepeatedNames, !seen.strict.insert(Array(name.utf8)).inserted {
            let what = depth == 0 ? "it appears twice" : "\"\(name.prefix(64))\" appears twice in an object"
            let member = depth == 0 ? String(name.prefix(64)) : nil
            throw Fault(place: self.index, what: what, repeated: (name, place), member: member)
        }
        return name
    }

    /// Reads the value of a member, and adds the member's name to a fault in the value.
    private mutating func value(of name: String, depth: Int) throws(Fault) -> JSONValue {
        do throws(Fault) {
            return try self.value(depth: depth)
        } catch {
            var fault = error
            fault.member = name
            throw fault
        }
    }
}

// MARK: - Numbers

extension JSONParser {
    private mutating func strictNumber() throws(Fault) -> JSONNumber {
        let start = self.index
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
        if let byte = self.current, byte | 0x20 == UInt8(ascii: "e") {
            self.index += 1
            if let sign = self.current, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { self.index += 1 }
            try self.digits()
        }
        return JSONNumber(text: String(decoding: self.bytes[start..<self.index], as: UTF8.self))
    }

    private mutating func digits() throws(Fault) {
        let start = self.index
        while let byte = self.current, byte &- 0x30 <= 9 { self.index += 1 }
        guard self.index > start else { throw self.fault("a digit should be here") }
    }
}

// MARK: - Strings

extension JSONParser {
    /// Reads a string from its opening to its closing quote.
    mutating func string() throws(Fault) -> String {
        let opening = self.index
        let quote = self.bytes[opening]
        self.begin()
        var text = ""
        var start = self.index
        while let byte = self.current {
            if self.isStrict, byte < 0x20 { throw self.fault("control characters in a string must be escaped") }
            if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") { break }
            guard byte == quote || byte == UInt8(ascii: "\\") else {
                self.index += 1
                continue
            }
            let run = String(decoding: self.bytes[start..<self.index], as: UTF8.self)
            self.index += 1
            if byte == quote {
                _ = self.open.popLast()
                return text.isEmpty ? run : text + run
            }
            text += run
            if let scalar = try self.escaped() { text.unicodeScalars.append(scalar) }
            start = self.index
        }
        throw self.isStrict
            ? self.fault("a string is not closed")
            : self.fault("the text that begins here is not closed with its quote", at: opening)
    }

    /// Returns the character of an escape. Returns nil for an escaped line end, which joins two lines.
    private mutating func escaped() throws(Fault) -> Unicode.Scalar? {
        guard let byte = self.current else {
            throw self.fault(self.isStrict ? "a string is not closed" : "the text ends behind a backslash")
        }
        self.index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try self.unicodeEscape()
        case _ where !self.isStrict: return try self.furtherEscape(byte)
        default:
            let place = self.dialect == .payload ? self.index - 1 : self.index
            throw self.fault("a backslash must be followed by one of \" \\ / b f n r t u", at: place)
        }
    }

    /// Reads the character of one or two `\u` escapes, each with four hexadecimal digits. The first `\u` has been read.
    mutating func unicodeEscape() throws(Fault) -> Unicode.Scalar {
        let start = self.isStrict ? nil : self.index - 2
        let unit = try self.hexadecimal(digits: 4)
        if let scalar = Unicode.Scalar(unit) ?? (self.dialect == .payload ? "\u{FFFD}" : nil) { return scalar }
        let alone = "a surrogate stands alone"
        guard unit < 0xDC00, self.current == UInt8(ascii: "\\") else { throw self.fault(alone, at: start) }
        self.index += 1
        guard self.current == UInt8(ascii: "u") else { throw self.fault(alone, at: start) }
        self.index += 1
        let low = try self.hexadecimal(digits: 4)
        let value = 0x10000 + ((unit - 0xD800) << 10) + (low & 0x3FF)
        guard low & 0xFC00 == 0xDC00, let scalar = Unicode.Scalar(value) else { throw self.fault(alone, at: start) }
        return scalar
    }

    mutating func hexadecimal(digits: Int) throws(Fault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let byte = self.current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw self.fault("\(self.isStrict ? "four" : "\(digits)") hexadecimal digits should be here")
            }
            value = value << 4 | UInt32(digit)
            self.index += 1
        }
        return value
    }
}
