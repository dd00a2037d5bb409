import Text

/// What a wake is for, as its event names it.
package struct WakeKind: Hashable, Sendable {
    /// The longest name that is believed.
    package static let lengthMax = 32

    package static let push = WakeKind(known: "push")

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

/// A `wake` event, by what its wake is for.
package enum WakeEvent: Hashable, Sendable {
    case push(WakeMessage)
    /// The wake is for something else; what else its data holds is not looked at.
    case other(wake: String, WakeKind)

    /// Reads the data of a `wake` event, which is of a push when it names no kind; nil when something is missing.
    package init?(_ data: [UInt8]) {
        guard let members = JSONMembers(data), let kind = Self.kind(members) else { return nil }
        if kind == .push {
            guard let message = WakeMessage(members) else { return nil }
            self = .push(message)
        } else {
            guard let wake = WakeMessage.text("wake", in: members) else { return nil }
            self = .other(wake: wake, kind)
        }
    }

    /// Nil for a kind that is none.
    private static func kind(_ members: JSONMembers) -> WakeKind? {
        guard members.raw("kind") != nil else { return .push }
        return WakeMessage.text("kind", in: members).flatMap { WakeKind($0) }
    }
}
