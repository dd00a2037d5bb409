/// Sorts words by their upper 32 bits; words that are equal there keep their order.
///
/// The lower halves must ascend where the upper halves are equal, as numbers given in order do.
struct HalfWordSorter {
    private static let digitBits: UInt64 = 11
    private static let digits = 1 << 11
    /// Below this many, three passes over 2,048 counters cost more than comparing.
    private static let radixMin = 1024

    private var scratch: [UInt64] = []

    mutating func sort(_ words: inout [UInt64]) {
        guard words.count >= Self.radixMin else {
            words.sort()
            return
        }
        if self.scratch.count < words.count { self.scratch = [UInt64](repeating: 0, count: words.count) }
        let count = words.count
        unsafe words.withUnsafeMutableBufferPointer { words in
            unsafe self.scratch.withUnsafeMutableBufferPointer { scratch in
                // An odd number of passes ends in the scratch memory; the copy back costs a third of a pass.
                unsafe Self.pass(from: words, to: scratch, count, shift: 32)
                unsafe Self.pass(from: scratch, to: words, count, shift: 32 + Self.digitBits)
                unsafe Self.pass(from: words, to: scratch, count, shift: 32 + 2 * Self.digitBits)
                for index in 0..<count { unsafe words[index] = scratch[index] }
            }
        }
    }

    private static func pass(
        from source: UnsafeMutableBufferPointer<UInt64>,
        to target: UnsafeMutableBufferPointer<UInt64>,
        _ count: Int,
        shift: UInt64
    ) {
        unsafe withUnsafeTemporaryAllocation(of: Int32.self, capacity: Self.digits) { places in
            unsafe places.initialize(repeating: 0)
            let mask = UInt64(Self.digits - 1)
            for index in 0..<count { unsafe places[Int(source[index] >> shift & mask)] += 1 }
            var place: Int32 = 0
            for digit in 0..<Self.digits {
                let size = unsafe places[digit]
                unsafe places[digit] = place
                place += size
            }
            for index in 0..<count {
                let word = unsafe source[index]
                let digit = Int(word >> shift & mask)
                unsafe target[Int(places[digit])] = word
                unsafe places[digit] += 1
            }
        }
    }
}
