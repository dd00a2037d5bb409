/// What kind of notification a push says it is.
///
/// Whether the topic ends in the suffix that APNs wants for the type is not checked: APNs gives no reason for a
/// mismatch, and a token belongs to one topic anyway.
package enum PushType: UInt8, CaseIterable, Sendable {
    case alert
    case background
    case location
    case voip
    case complication
    case fileprovider
    case mdm
    case liveactivity
    case pushtotalk
    case widgets
    case controls

    /// The type of that name; nil for any other text, also one that differs in case alone.
    package init?(_ text: ByteView) {
        // The length leaves at most three names to compare.
        switch text.count {
        case 3 where text == "mdm": self = .mdm
        case 4 where text == "voip": self = .voip
        case 5 where text == "alert": self = .alert
        case 7 where text == "widgets": self = .widgets
        case 8 where text == "location": self = .location
        case 8 where text == "controls": self = .controls
        case 10 where text == "background": self = .background
        case 10 where text == "pushtotalk": self = .pushtotalk
        case 12 where text == "complication": self = .complication
        case 12 where text == "fileprovider": self = .fileprovider
        case 12 where text == "liveactivity": self = .liveactivity
        default: return nil
        }
    }

    /// The name in `apns-push-type`.
    package var name: StaticString {
        switch self {
        case .alert: "alert"
        case .background: "background"
        case .location: "location"
        case .voip: "voip"
        case .complication: "complication"
        case .fileprovider: "fileprovider"
        case .mdm: "mdm"
        case .liveactivity: "liveactivity"
        case .pushtotalk: "pushtotalk"
        case .widgets: "widgets"
        case .controls: "controls"
        }
    }

    /// The greatest payload of the type, in bytes.
    package var payloadBytesMax: Int {
        switch self {
        case .voip: 5120
        case .alert, .background, .location, .complication, .fileprovider, .mdm, .liveactivity, .pushtotalk, .widgets,
            .controls:
            4096
        }
    }
}
