/// What a wake is for, as its event names it.
package struct WakeKind: Hashable, Sendable {
    /// The longest name that is believed.
    package static let lengthMax = 32

    package static let push = WakeKind(known: "push")
    package static let appRefresh = WakeKind(known: "appRefresh")
    package static let processing = WakeKind(known: "processing")
    package static let continued = WakeKind(known: "continued")
    package static let urlSession = WakeKind(known: "urlSession")

    package let name: String

    private init(known name: String) {
        self.name = name
    }

    /// The kind of this name, which this program need not know; nil for a name that no gateway gives.
    package init?(_ name: String) {
        guard 1...Self.lengthMax ~= name.utf8.count, name.utf8.allSatisfy({ Self.isLetter($0) }) else { return nil }
        self.name = name
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        default: false
        }
    }
}
