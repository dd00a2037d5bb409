import Engine

/// The set of stored event records: all records up to the newest, except the later ones of the numberings in `leftOff`.
///
/// A journal that forks from another journal begins a new numbering with far greater numbers. After the fork, a start
/// may return to the old journal. Its new records have numbers between its last record and the first record of the
/// fork.
package struct RecordPositions: Hashable, Sendable {
    /// The maximum number of earlier numberings that are remembered. Older ones are forgotten.
    private static let leftOffMax = 32

    /// The newest record of the set; 0 if the set is empty.
    package private(set) var newest: UInt64
    /// The last record of each earlier numbering in the set, in ascending order.
    package private(set) var leftOff: [UInt64]

    package init(newest: UInt64 = 0, leftOff: [UInt64] = []) {
        self.newest = newest
        self.leftOff = leftOff
    }

    /// Returns true if record `sequence` is in the set, according to the remembered numberings.
    package func holds(_ sequence: UInt64) -> Bool {
        sequence <= self.newest && self.placeBefore(sequence) == nil
    }

    /// Returns true if record `sequence` belongs to a known numbering.
    package func knowsNumbers(of sequence: UInt64) -> Bool {
        self.follows(self.newest, sequence) || self.leftOff.contains { self.follows($0, sequence) }
    }

    /// Adds a record to the set.
    ///
    /// - Returns: the number of missing records between this one and the previous one of its numbering.
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

    /// Adds all records up to `sequence`, except the records that are known to be missing.
    mutating func raise(to sequence: UInt64) {
        self.newest = max(self.newest, sequence)
    }

    /// Returns the index in `leftOff` of the numbering that a record continues. Returns nil if the record is in the set
    /// or does not continue an earlier numbering.
    private func placeBefore(_ sequence: UInt64) -> Int? {
        guard let place = self.leftOff.lastIndex(where: { $0 < sequence }),
            !EventRecord.isBeginning(sequence, after: self.leftOff[place])
        else { return nil }
        let next = place + 1 < self.leftOff.count ? self.leftOff[place + 1] : self.newest
        return EventRecord.isBeginning(next, after: sequence) ? place : nil
    }

    /// Returns true if two numbers belong to the same numbering.
    private func follows(_ one: UInt64, _ other: UInt64) -> Bool {
        one > 0 && !EventRecord.isBeginning(max(one, other), after: min(one, other))
    }
}
