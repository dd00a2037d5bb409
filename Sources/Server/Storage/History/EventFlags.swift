import Engine
import Wire

/// What stands first in a written event, and says what follows.
///
/// The lower five bits of the first byte are the code, bit 5 says that two numbers follow. Bits 6 and 7 say how the
/// push is named; the value 3 says that a second byte does: bits 0 and 1 for the push, bits 2 and 3 for the related
/// one, bit 4 for four bytes of upper-case bits behind every identifier that is written.
struct EventFlags {
    /// How an event names a push.
    enum Identifier: UInt8 {
        case none = 0
        /// Sixteen bytes follow.
        case written = 1
        /// The push that the device's last event with a push named.
        case named = 2

        init(_ apnsID: APNsID?, named: APNsID?) {
            guard let apnsID else {
                self = .none
                return
            }
            self = named.map { apnsID.isSpelled(as: $0) } ?? false ? .named : .written
        }
    }

    private static let extended: UInt8 = 3

    let code: UInt8
    let hasNumbers: Bool
    let identifier: Identifier
    let related: Identifier
    let hasUpperCase: Bool

    func write(to buffer: inout ByteBuffer) {
        let isExtended = self.related != .none || self.hasUpperCase
        let mode = isExtended ? Self.extended : self.identifier.rawValue
        buffer.append(self.code | (self.hasNumbers ? 1 << 5 : 0) | mode << 6)
        guard isExtended else { return }
        let upperCase: UInt8 = self.hasUpperCase ? 1 << 4 : 0
        buffer.append(self.identifier.rawValue | self.related.rawValue << 2 | upperCase)
    }
}

extension EventFlags {
    /// nil for what no writer writes.
    init?(_ reader: inout ByteReader) {
        let first = reader.byte()
        var modes = first >> 6
        if modes == Self.extended { modes = reader.byte() }
        guard modes < 1 << 5, let identifier = Identifier(rawValue: modes & 3),
            let related = Identifier(rawValue: modes >> 2 & 3)
        else { return nil }
        self.init(
            code: first & 31,
            hasNumbers: first & 1 << 5 != 0,
            identifier: identifier,
            related: related,
            hasUpperCase: modes & 1 << 4 != 0
        )
    }
}
