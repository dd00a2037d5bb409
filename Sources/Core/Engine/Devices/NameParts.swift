package import Policy
import Wire

/// An identifier, or a session's name, as the history keeps it: as parts of 32 bytes, which are events of the same
/// device and moment right before the event that it belongs to.
package enum NameParts {
    /// The bytes of every part but the last.
    private static let partBytes = 32
    /// The most bytes of a name.
    package static let bytesMax = 255

    /// How many parts a name of so many bytes has.
    package static func count(ofBytes bytes: Int) -> Int { (bytes + self.partBytes - 1) / self.partBytes }

    /// Appends the parts of a name; none of one that has not 1...255 bytes.
    package static func append(_ name: String, device: UInt64, at: Instant, to events: inout [HistoryEvent]) {
        guard let length = UInt8(exactly: name.utf8.count) else { return }
        var bytes = name.utf8.makeIterator()
        for place in 0..<self.count(ofBytes: Int(length)) {
            let isLong = Int(length) - place * self.partBytes > 16
            events.append(
                HistoryEvent(
                    device: device,
                    at: at,
                    kind: .namePart(length: length, place: UInt8(truncatingIfNeeded: place)),
                    apnsID: self.nextBytes(&bytes),
                    related: isLong ? self.nextBytes(&bytes) : nil
                )
            )
        }
    }

    private static func nextBytes(_ bytes: inout String.UTF8View.Iterator) -> APNsID {
        APNsID(first: self.nextWord(&bytes), second: self.nextWord(&bytes), upperCase: 0)
    }

    /// The next eight bytes, the first lowest; zeros behind the last.
    private static func nextWord(_ bytes: inout String.UTF8View.Iterator) -> UInt64 {
        var word: UInt64 = 0
        for shift in stride(from: 0, to: UInt64.bitWidth, by: 8) {
            guard let byte = bytes.next() else { break }
            word |= UInt64(byte) << UInt64(shift)
        }
        return word
    }

    /// The bytes of a part of a name of `length` bytes; nil when some are missing.
    static func bytes(of part: HistoryEvent, length: Int, place: Int) -> [UInt8]? {
        let count = min(length - place * self.partBytes, self.partBytes)
        guard let apnsID = part.apnsID else { return nil }
        var words = [apnsID.first, apnsID.second]
        if let related = part.related { words += [related.first, related.second] }
        guard count <= words.count * 8 else { return nil }
        return (0..<count).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> UInt64($0 % 8 * 8)) }
    }
}

extension HistoryEvent {
    /// Whether it is a part of a name, and nothing that happened.
    package var isNamePart: Bool { self.code == 13 }

    /// How many events right behind this one are not to be cut off from it: of a name's part the parts that follow, and
    /// the event that has the name.
    package var followers: Int {
        guard self.isNamePart, case .namePart(let length, let place) = self.kind else { return 0 }
        return NameParts.count(ofBytes: Int(length)) - Int(place)
    }
}
