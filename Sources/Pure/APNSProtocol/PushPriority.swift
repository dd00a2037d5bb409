package import Bytes

/// How urgent a push says it is; the raw value is the number on the wire.
package enum PushPriority: UInt8, CaseIterable, Sendable {
    /// Send at once; what a push without the header has.
    case immediate = 10
    /// Send with regard to the device's power.
    case considerate = 5
    /// Put power before everything else, and do not wake the device.
    case low = 1

    /// The priority that `text` spells: exactly `10`, `5` or `1`; nil for anything else.
    package init?(_ text: ByteView) {
        switch text.count {
        case 1 where text[0] == UInt8(ascii: "5"): self = .considerate
        case 1 where text[0] == UInt8(ascii: "1"): self = .low
        case 2 where text == "10": self = .immediate
        default: return nil
        }
    }
}
