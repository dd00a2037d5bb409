import Foundation
import Gateway
import Wire

/// The gate for payloads, compared with Foundation's parser and with the reader of small bodies.
enum PayloadClassifierTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        let verdict = PayloadClassifier.classify(input)
        try self.compareWithFoundation(input, verdict)
        try self.compareWithSyntax(input.array, verdict)
        // The reader takes a string, so invalid UTF-8 would already be repaired.
        guard let text = String(validating: input.array, as: UTF8.self) else {
            return try promise(verdict == .notJSON, "invalid UTF-8 was accepted")
        }
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONReader.read(text)
        } catch {
            let isMeant = error.what.contains("nested") || error.what.contains("surrogate")
            return try promise(verdict == .notJSON || isMeant, "the gate accepts invalid text: \(error.what)")
        }
        try promise(verdict == Self.verdict(value), "the gate finds it \(verdict), the reader \(Self.verdict(value))")
        let written = value.written
        try promise((try? JSONReader.read(written)) == value, "a value changed when it was rewritten: \(written)")
    }

    /// Compares the gate with the check that `wakegate push` makes before it sends. That check has no limit for
    /// nesting.
    private static func compareWithSyntax(_ bytes: [UInt8], _ verdict: JSONVerdict) throws(BrokenPromise) {
        let fault = JSONSyntax.fault(in: bytes)
        let opening = bytes.count { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") }
        guard fault != nil || opening <= PayloadClassifier.depthMax else { return }
        try promise(
            (fault == nil) == (verdict != .notJSON),
            "the gate finds it \(verdict), the syntax \(fault?.what ?? "good")"
        )
    }

    private static func verdict(_ value: JSONValue) -> JSONVerdict {
        guard case .object(let members) = value else { return .notAnObject }
        guard case .object(let aps)? = members.first(where: { $0.name == "aps" })?.value,
            let value = aps.first(where: { $0.name == "content-available" })?.value
        else { return .doesNotWake }
        switch value {
        case .number(let number) where number.text == "1": return .wakes
        case .number(let number) where number.text == "0": return .doesNotWake
        case .null, .bool(false): return .doesNotWake
        case .bool, .number, .string, .array, .object: return .wrongContentAvailable
        }
    }

    private static func compareWithFoundation(_ input: ByteView, _ verdict: JSONVerdict) throws(BrokenPromise) {
        let bytes = input.array
        guard !bytes.isEmpty, !self.differsOnPurpose(bytes) else { return }
        let tree = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
        try promise((verdict != .notJSON) == (tree != nil), "the gate finds it \(verdict), Foundation otherwise")
        guard let tree else { return }
        try promise((verdict != .notAnObject) == (tree is [String: Any]), "the gate and Foundation see other values")
    }

    /// Foundation guesses UTF-16 and UTF-32 from zero bytes and from byte order marks, and accepts a comma after the
    /// last element. It rejects numbers that do not fit in a Double, and escapes that contain half a surrogate pair.
    private static func differsOnPurpose(_ bytes: [UInt8]) -> Bool {
        if bytes.prefix(4).contains(0) || bytes[0] >= 0xEF { return true }
        var digits = 0
        var isAfterComma = false
        for (index, byte) in bytes.enumerated() {
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            let isSpace = [0x20, 0x0A, 0x0D, 0x09].contains(byte)
            if isAfterComma, byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}") { return true }
            if !isSpace { isAfterComma = byte == UInt8(ascii: ",") }
            if byte | 0x20 == UInt8(ascii: "u"), index + 1 < bytes.count, next | 0x20 == UInt8(ascii: "d") {
                return true
            }
            digits = byte &- 0x30 <= 9 ? digits + 1 : 0
            if digits >= 18 { return true }
            if byte | 0x20 == UInt8(ascii: "e"), self.hasLongExponent(bytes[(index + 1)...]) { return true }
        }
        return false
    }

    /// Three digits or more, with or without a sign.
    private static func hasLongExponent(_ rest: ArraySlice<UInt8>) -> Bool {
        var rest = rest
        if let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { rest = rest.dropFirst() }
        return rest.prefix(3).count == 3 && rest.prefix(3).allSatisfy { $0 &- 0x30 <= 9 }
    }
}
