import Engine

/// Which records of events were taken: all up to the newest, but those that a journal gave behind the place where
/// another one took over.
///
/// A journal that goes on beside another one begins its numbers anew, far beyond the others. Whoever returns to the
/// other journal finds in it records whose numbers lie between those that were taken of the two.
package struct RecordPositions: Hashable, Sendable {
    /// As many places are remembered where numbers that began anew left off; of more the oldest are forgotten.
    private static let leftOffMax = 32

    /// The newest record that was taken; 0 when there is none.
    package private(set) var newest: UInt64
    /// Of earlier numbers that went on when others began anew: the last record of each that was taken, in ascending
    /// order.
    package private(set) var leftOff: [UInt64]

    package init(newest: UInt64 = 0, leftOff: [UInt64] = []) {
        self.newest = newest
        self.leftOff = leftOff
    }

    /// Whether record `sequence` was taken, as far as is known.
    package func holds(_ sequence: UInt64) -> Bool {
        sequence <= self.newest && self.placeBefore(sequence) == nil
    }

    /// Whether record `sequence` is one of those that go on where others began anew.
    package func knowsNumbers(of sequence: UInt64) -> Bool {
        self.follows(self.newest, sequence) || self.leftOff.contains { self.follows($0, sequence) }
    }

    /// Notes that a record was taken.
    ///
    /// - Returns: how many numbers were passed over since the record that was taken before it.
    @discardableResult
    package mutating func take(_ sequence: UInt64) -> UInt64 {
        if sequence > self.newest {
            let last = self.newest
            self.newest = sequence
            guard EventRecord.isBeginning(sequence, after: last) else { return sequence - last - 1 }
            guard last > 0 else { return 0 }
            self.leftOff.append(last)
            if self.leftOff.count > Self.leftOffMax { self.leftOff.removeFirst() }
            return 0
        }
        guard let place = self.placeBefore(sequence) else { return 0 }
        defer { self.leftOff[place] = sequence }
        return sequence - self.leftOff[place] - 1
    }

    /// Counts all records up to `sequence` as taken that are not known to be missing.
    mutating func raise(to sequence: UInt64) {
        self.newest = max(self.newest, sequence)
    }

    /// The place that a record which was not taken goes on from, of those in `leftOff`; nil when there is none.
    private func placeBefore(_ sequence: UInt64) -> Int? {
        guard let place = self.leftOff.lastIndex(where: { $0 < sequence }),
            !EventRecord.isBeginning(sequence, after: self.leftOff[place])
        else { return nil }
        let next = place + 1 < self.leftOff.count ? self.leftOff[place + 1] : self.newest
        return EventRecord.isBeginning(next, after: sequence) ? place : nil
    }

    /// Whether two numbers were given without a beginning in between.
    private func follows(_ one: UInt64, _ other: UInt64) -> Bool {
        one > 0 && !EventRecord.isBeginning(max(one, other), after: min(one, other))
    }
}
