/// Tells whether a document is JSON, and whether it asks for the device to be woken; it builds nothing.
///
/// The grammar is that of RFC 8259, all of it: numbers may be however large, an escape may name half a surrogate pair
/// and a name may come twice. Strings must be well-formed UTF-8. A byte order mark is not JSON. Containers may be
/// nested up to 512 deep; the gate does not recurse, so it needs the same stack for every document.
///
/// A document wakes when the member `content-available` of the member `aps` is the integer 1, written `1`: neither
/// `1.0` nor `1e0`, nor `true`, nor `"1"`. `0`, `false` and `null` ask for no wake; any other value is a mistake of its
/// sender, which the verdict tells. Of several members of one name the first counts, whatever it is. Names are compared
/// as they read without escapes.
package struct JSONGate {
    /// How deep objects and arrays may be nested, the outermost counted.
    package static let depthMax = 512

    /// What the scanner expects next.
    private enum Step {
        case value
        case key
        case endOfValue
        case endOfDocument
        case nothing
    }

    /// Which member's value comes next.
    private enum Member {
        case other
        case aps
        case contentAvailable
    }

    private var scanner: JSONScanner
    private var depth = 0
    /// Bit i of the whole says that the container at depth i is an object.
    private var isObject: InlineArray<9, UInt64> = InlineArray(repeating: 0)
    private var member = Member.other
    private var hasSeenAPS = false
    private var isInsideAPS = false
    private var hasSeenContentAvailable = false
    private var wakes = false
    /// True if `content-available` is one of the values that ask for no wake.
    private var asksForNoWake = false

    private init(_ document: ByteView) {
        self.scanner = JSONScanner(document)
    }

    /// Reads the whole document.
    package static func judge(_ document: ByteView) -> JSONVerdict {
        var gate = JSONGate(document)
        gate.scanner.skipSpace()
        let startsAsObject = gate.scanner.current == UInt8(ascii: "{")
        guard gate.isJSON() else { return .notJSON }
        guard startsAsObject else { return .notAnObject }
        if gate.wakes { return .wakes }
        return gate.hasSeenContentAvailable && !gate.asksForNoWake ? .wrongContentAvailable : .doesNotWake
    }

    private mutating func isJSON() -> Bool {
        var step = Step.value
        while true {
            switch step {
            case .value: step = self.value()
            case .key: step = self.key()
            case .endOfValue: step = self.endOfValue()
            case .endOfDocument: return self.scanner.isAtEnd
            case .nothing: return false
            }
        }
    }

    private mutating func value() -> Step {
        self.scanner.skipSpace()
        let member = self.member
        self.member = .other
        switch self.scanner.current {
        case UInt8(ascii: "\""):
            return self.scanner.string() == nil ? .nothing : .endOfValue
        case UInt8(ascii: "{"):
            guard self.open(isObject: true) else { return .nothing }
            if member == .aps { self.isInsideAPS = true }
            return self.closesAtOnce(UInt8(ascii: "}")) ? .endOfValue : .key
        case UInt8(ascii: "["):
            guard self.open(isObject: false) else { return .nothing }
            return self.closesAtOnce(UInt8(ascii: "]")) ? .endOfValue : .value
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            guard let number = self.scanner.number() else { return .nothing }
            if member == .contentAvailable {
                self.wakes = number == "1"
                self.asksForNoWake = number == "0"
            }
            return .endOfValue
        case UInt8(ascii: "t"): return self.scanner.skip("true") ? .endOfValue : .nothing
        case UInt8(ascii: "f"):
            if member == .contentAvailable { self.asksForNoWake = true }
            return self.scanner.skip("false") ? .endOfValue : .nothing
        case UInt8(ascii: "n"):
            if member == .contentAvailable { self.asksForNoWake = true }
            return self.scanner.skip("null") ? .endOfValue : .nothing
        default: return .nothing
        }
    }

    private mutating func key() -> Step {
        self.scanner.skipSpace()
        guard self.scanner.current == UInt8(ascii: "\""), let name = self.scanner.string() else { return .nothing }
        if self.depth == 1, !self.hasSeenAPS, name.reads("aps") {
            self.hasSeenAPS = true
            self.member = .aps
        } else if self.isInsideAPS, self.depth == 2, !self.hasSeenContentAvailable, name.reads("content-available") {
            self.hasSeenContentAvailable = true
            self.member = .contentAvailable
        }
        self.scanner.skipSpace()
        guard self.scanner.current == UInt8(ascii: ":") else { return .nothing }
        self.scanner.advance()
        return .value
    }

    private mutating func endOfValue() -> Step {
        self.scanner.skipSpace()
        guard self.depth > 0 else { return .endOfDocument }
        let isObject = self.isObject[self.depth >> 6] >> UInt64(self.depth & 63) & 1 == 1
        switch self.scanner.current {
        case UInt8(ascii: ","):
            self.scanner.advance()
            return isObject ? .key : .value
        case UInt8(ascii: "}") where isObject, UInt8(ascii: "]") where !isObject:
            self.close()
            return .endOfValue
        default: return .nothing
        }
    }

    /// Enters a container; false when it is nested too deep.
    private mutating func open(isObject: Bool) -> Bool {
        guard self.depth < JSONGate.depthMax else { return false }
        self.scanner.advance()
        self.depth += 1
        let bit = UInt64(1) << UInt64(self.depth & 63)
        if isObject {
            self.isObject[self.depth >> 6] |= bit
        } else {
            self.isObject[self.depth >> 6] &= ~bit
        }
        return true
    }

    /// Leaves the container if it ends right after its beginning.
    private mutating func closesAtOnce(_ bracket: UInt8) -> Bool {
        self.scanner.skipSpace()
        guard self.scanner.current == bracket else { return false }
        self.close()
        return true
    }

    private mutating func close() {
        self.scanner.advance()
        self.depth -= 1
        if self.depth == 1 { self.isInsideAPS = false }
    }
}

/// What `JSONGate` finds a document to be.
package enum JSONVerdict: Hashable, Sendable {
    /// Not a JSON text, or one nested deeper than the gate allows.
    case notJSON
    /// A JSON text, but not an object.
    case notAnObject
    /// An object that asks for the device to be woken.
    case wakes
    /// An object whose `content-available` is neither 1 nor a value that asks for no wake; it does not wake.
    case wrongContentAvailable
    /// Any other object.
    case doesNotWake
}
