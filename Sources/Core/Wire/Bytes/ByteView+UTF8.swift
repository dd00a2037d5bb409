extension ByteView {
    /// The bytes at `index` that belong together: those of one character, or of a beginning of one that nothing
    /// completes, for which one U+FFFD stands (Unicode 16, 3.9: Substitution of Maximal Subparts).
    ///
    /// - Returns: how many there are, 1...4; and whether they are a character in UTF-8 (RFC 3629).
    @inlinable
    package func sequence(at index: Int) -> (count: Int, isCharacter: Bool) {
        let first = self[index]
        // The bounds of the second byte rule out overlong forms, surrogates and numbers past U+10FFFF.
        var low: UInt8 = 0x80
        var high: UInt8 = 0xBF
        let count: Int
        switch first {
        case 0..<0x80: return (1, true)
        case 0xC2...0xDF: count = 2
        case 0xE0...0xEF:
            count = 3
            if first == 0xE0 { low = 0xA0 }
            if first == 0xED { high = 0x9F }
        case 0xF0...0xF4:
            count = 4
            if first == 0xF0 { low = 0x90 }
            if first == 0xF4 { high = 0x8F }
        default: return (1, false)
        }
        for place in 1..<count {
            guard index + place < self.count, low...high ~= self[index + place] else { return (place, false) }
            low = 0x80
            high = 0xBF
        }
        return (count, true)
    }

    /// Whether the bytes are well-formed UTF-8.
    package var isUTF8: Bool {
        var index = 0
        while index < self.count {
            if index + 8 <= self.count, self.load(UInt64.self, at: index) & 0x8080_8080_8080_8080 == 0 {
                index += 8
                continue
            }
            let (count, isCharacter) = self.sequence(at: index)
            guard isCharacter else { return false }
            index += count
        }
        return true
    }
}
