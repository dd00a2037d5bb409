package import Wire

/// Checks the fields of one header block of a request (RFC 9113 §8.2 and §8.3), one after the other.
///
/// libnghttp2 would check each byte in every push. These rules check sixteen bytes at a time, and check only the
/// properties on which the server depends.
package struct FieldRules: Equatable {
    fileprivate struct Seen: OptionSet {
        let rawValue: UInt16

        static let method = Seen(rawValue: 1)
        static let scheme = Seen(rawValue: 2)
        static let path = Seen(rawValue: 4)
        static let authority = Seen(rawValue: 8)
        static let host = Seen(rawValue: 16)
        static let contentLength = Seen(rawValue: 32)
        /// A field that is not a pseudo-header field.
        static let regular = Seen(rawValue: 64)
        static let isConnect = Seen(rawValue: 128)
        static let isOptions = Seen(rawValue: 256)
        static let hasWebScheme = Seen(rawValue: 512)
        static let pathBeginsWithSlash = Seen(rawValue: 1024)
        static let pathIsAsterisk = Seen(rawValue: 2048)
        static let isHead = Seen(rawValue: 4096)
        static let expectsContinue = Seen(rawValue: 8192)
    }

    /// The kind of a field, which determines where the request stores it.
    package enum Kind {
        case method
        case path
        case authority
        case host
        case regular
        /// A pseudo-header field that the server does not use.
        case other
    }

    private var seen: Seen = []
    /// The value of `content-length`; nil without one.
    private(set) var contentLength: UInt64?

    /// The rules for the block that begins a request.
    package static let head = FieldRules()
    /// The rules for the block that ends a request, which must have no pseudo-header fields.
    static let trailers = FieldRules(seen: .regular)

    /// Checks the next field.
    ///
    /// - `note`: 0, or the note that an earlier call stored for a field with the same name and value. With a note, most
    ///   of the work is omitted.
    /// - Returns: the kind of the field; nil if the field makes its request malformed.
    @inline(__always)
    package mutating func admit(_ name: ByteView, _ value: ByteView, _ note: inout UInt32) -> Kind? {
        if note == 0 {
            guard let judged = Judgement(name, value) else { return nil }
            note = judged.note
        }
        let judged = Judgement(note: note)
        let isPseudo = judged.seen.isDisjoint(with: .regular)
        guard self.seen.isDisjoint(with: judged.once), !isPseudo || !self.seen.contains(.regular) else { return nil }
        self.seen.formUnion(judged.seen)
        if judged.seen == .regular { return .regular }
        if judged.seen.contains(.contentLength) {
            self.contentLength = value.decimal
            return self.contentLength == nil ? nil : .regular
        }
        return judged.kind
    }

    /// True if the method is HEAD.
    var hasHeadMethod: Bool { self.seen.contains(.isHead) }

    /// True if the client waits for `100 Continue` before it sends content (RFC 9110 section 10.1.1).
    var expectsContinue: Bool { self.seen.contains(.expectsContinue) }

    /// True if the first block of a request has all required fields.
    var isWholeHead: Bool {
        if self.seen.contains(.isConnect) {
            return self.seen.contains(.authority) && self.seen.isDisjoint(with: [.scheme, .path])
        }
        guard self.seen.isSuperset(of: [.method, .scheme, .path]), !self.seen.isDisjoint(with: [.authority, .host])
        else { return false }
        return !self.seen.contains(.hasWebScheme) || self.seen.contains(.pathBeginsWithSlash)
            || self.seen.isSuperset(of: [.isOptions, .pathIsAsterisk])
    }
}

/// The effect of one field on the request, independent of other fields.
private struct Judgement {
    /// The properties that the field adds to the request.
    let seen: FieldRules.Seen
    /// The properties that the field adds and that must not have been added before.
    let once: FieldRules.Seen

    /// - Parameter note: a value of `note`, which is never 0.
    @inline(__always)
    init(note: UInt32) {
        self.seen = FieldRules.Seen(rawValue: UInt16(truncatingIfNeeded: note))
        self.once = FieldRules.Seen(rawValue: UInt16(truncatingIfNeeded: note >> 16))
    }

    /// The judgment as a number. It is never 0, because each field adds a property.
    @inline(__always)
    var note: UInt32 { UInt32(self.once.rawValue) << 16 | UInt32(self.seen.rawValue) }

    var kind: FieldRules.Kind {
        if self.seen.contains(.path) { return .path }
        if self.seen.contains(.method) { return .method }
        if self.seen.contains(.authority) { return .authority }
        if self.seen.contains(.host) { return .host }
        return self.seen.contains(.regular) ? .regular : .other
    }

    private init(_ seen: FieldRules.Seen, once: FieldRules.Seen = []) {
        self.seen = seen
        self.once = once
    }

    /// - Returns: nil if the field makes its request malformed.
    init?(_ name: ByteView, _ value: ByteView) {
        guard let judged = name.starts(with: ":") ? Self.pseudo(name, value) : Self.regular(name, value) else {
            return nil
        }
        self = judged
    }

    private static func regular(_ name: ByteView, _ value: ByteView) -> Judgement? {
        // The value is checked when it is parsed as a number.
        if name == "content-length" { return Judgement([.regular, .contentLength], once: .contentLength) }
        guard name.isFieldName, value.isFieldValue else { return nil }
        switch name.count {
        case 2 where name == "te":
            return value.equalsIgnoringCase("trailers") ? Judgement(.regular) : nil
        case 4 where name == "host":
            return value.isAuthority ? Judgement([.regular, .host], once: .host) : nil
        case 6 where name == "expect" && value.equalsIgnoringCase("100-continue"):
            return Judgement([.regular, .expectsContinue])
        case 7 where name == "upgrade": return nil
        case 10 where name == "connection" || name == "keep-alive": return nil
        case 16 where name == "proxy-connection": return nil
        case 17 where name == "transfer-encoding": return nil
        default: return Judgement(.regular)
        }
    }

    private static func pseudo(_ name: ByteView, _ value: ByteView) -> Judgement? {
        switch name.count {
        case 5 where name == ":path":
            guard value.isVisible else { return nil }
            let isAsterisk: FieldRules.Seen = value == "*" ? .pathIsAsterisk : []
            let beginsWithSlash: FieldRules.Seen = value.starts(with: "/") ? .pathBeginsWithSlash : []
            return Judgement([.path, isAsterisk, beginsWithSlash], once: .path)
        case 7 where name == ":method":
            guard value.isToken else { return nil }
            let isConnect: FieldRules.Seen = value == "CONNECT" ? .isConnect : []
            let isOptions: FieldRules.Seen = value == "OPTIONS" ? .isOptions : []
            let isHead: FieldRules.Seen = value == "HEAD" ? .isHead : []
            return Judgement([.method, isConnect, isOptions, isHead], once: .method)
        case 7 where name == ":scheme":
            let isWeb = value == "https" || value == "http"
            guard isWeb || value.isScheme else { return nil }
            return Judgement(isWeb ? [.scheme, .hasWebScheme] : .scheme, once: .scheme)
        case 10 where name == ":authority":
            return value.isAuthority ? Judgement(.authority, once: .authority) : nil
        default: return nil
        }
    }
}

// MARK: - Characters

/// A set of ASCII characters.
private struct Characters {
    private let low: UInt64
    private let high: UInt64

    init(_ text: StaticString) {
        var (low, high): (UInt64, UInt64) = (0, 0)
        let text = ByteView(text)
        for index in 0..<text.count {
            let bit: UInt64 = 1 << UInt64(text[index] & 63)
            if text[index] < 64 { low |= bit } else { high |= bit }
        }
        self.low = low
        self.high = high
    }

    func contains(_ byte: UInt8) -> Bool {
        byte < 128 && ((byte < 64 ? self.low : self.high) >> UInt64(byte & 63)) & 1 == 1
    }

    /// RFC 9110 §5.6.2, `token`.
    static let token = Characters(
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    )
    /// The characters that HTTP/2 allows in a name: those of a token, without uppercase letters.
    static let name = Characters("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
    /// The characters of an authority (RFC 3986 §3.2) and of a scheme (§3.1). The server makes no further check of
    /// either.
    static let authority = Characters(
        "!$%&'()*+,-.0123456789:;=@[]_~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    )
    static let scheme = Characters("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

extension ByteView {
    /// True if this is a valid field name in HTTP/2.
    fileprivate var isFieldName: Bool {
        self.count > 0 && (self.isEveryWord { $0.isLowerCaseOrDash } || self.isMadeOf(Characters.name))
    }

    var isToken: Bool { self.count > 0 && self.isMadeOf(Characters.token) }

    fileprivate var isAuthority: Bool { self.isMadeOf(Characters.authority) }

    fileprivate var isScheme: Bool {
        self.count > 0 && self[0] | 0x20 >= UInt8(ascii: "a") && self.isMadeOf(Characters.scheme)
    }

    /// True if this is a valid field value. It must have no control character except tab, and no space or tab at either
    /// end.
    fileprivate var isFieldValue: Bool {
        guard self.count > 0 else { return true }
        guard !self[0].isBlank, !self[self.count - 1].isBlank else { return false }
        return self.hasNoControl(below: 0x20, but: UInt8(ascii: "\t"))
    }

    /// True if no byte is a control character or a space.
    fileprivate var isVisible: Bool { self.hasNoControl(below: 0x21, but: nil) }

    private func isMadeOf(_ characters: Characters) -> Bool {
        for index in 0..<self.count where !characters.contains(self[index]) { return false }
        return true
    }

    /// Returns true if every byte equals `exception`, or is at least `limit` and not DEL.
    @inline(__always)
    private func hasNoControl(below limit: UInt8, but exception: UInt8?) -> Bool {
        if self.count >= 16, !self.hasControlInSixteens(below: limit) { return true }
        if self.count < 16, self.isEveryWord({ !$0.hasControl(below: limit) }) { return true }
        for index in 0..<self.count {
            let byte = self[index]
            if byte < limit || byte == 0x7F, byte != exception { return false }
        }
        return true
    }

    /// Returns true if a byte is DEL or below `limit`, which is at most 0x80. The view must have at least sixteen
    /// bytes; some bytes may be checked twice.
    @inline(__always)
    private func hasControlInSixteens(below limit: UInt8) -> Bool {
        let (limits, ones) = (SIMD16(repeating: limit), SIMD16<UInt8>(repeating: 1))
        let last = self.count - 16
        // The high bit of each byte in `found` marks a control character.
        var found = SIMD16<UInt8>(repeating: 0)
        var index = 0
        while true {
            let bytes = self.load(SIMD16<UInt8>.self, at: min(index, last))
            let deleted = bytes ^ SIMD16(repeating: 0x7F)
            found |= ((bytes &- limits) & ~bytes) | ((deleted &- ones) & ~deleted)
            guard index < last else { break }
            index += 16
        }
        let halves = found.halves
        return (halves[0] | halves[1]) & 0x8080_8080_8080_8080 != 0
    }

    /// Returns true if `holds` is true for each group of eight bytes; some bytes may be checked twice. Returns false
    /// for fewer than eight bytes.
    @inline(__always)
    private func isEveryWord(_ holds: (UInt64) -> Bool) -> Bool {
        guard self.count >= 8 else { return false }
        let last = self.count - 8
        var index = 0
        while index < last {
            guard holds(self.load(UInt64.self, at: index)) else { return false }
            index += 8
        }
        return holds(self.load(UInt64.self, at: last))
    }
}

extension UInt8 {
    var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}

extension UInt64 {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highBits: UInt64 = 0x8080_8080_8080_8080

    /// Returns true if one of the eight bytes is below `limit`, which is at most 0x80, or is DEL.
    fileprivate func hasControl(below limit: UInt8) -> Bool {
        let below = (self &- Self.ones &* UInt64(limit)) & ~self
        let deleted = self ^ (Self.ones &* 0x7F)
        return (below | ((deleted &- Self.ones) & ~deleted)) & Self.highBits != 0
    }

    /// True if each of the eight bytes is a lowercase letter or a dash, as in most names.
    fileprivate var isLowerCaseOrDash: Bool {
        let low = self & ~Self.highBits
        // In each result, the high bit of a byte is a flag: at least "a"; greater than "z"; not a dash.
        let isLetterOrMore = low &+ Self.ones &* (0x80 - 0x61)
        let isMore = low &+ Self.ones &* (0x80 - 0x7B)
        let isNoDash = (low ^ Self.ones &* 0x2D) &+ Self.ones &* 0x7F
        return (isLetterOrMore & ~isMore | ~isNoDash) & ~self & Self.highBits == Self.highBits
    }
}
