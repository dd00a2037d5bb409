/// The body of a push.
package enum PushPayload {
    /// The greatest payload of a push of any type, in bytes.
    package static let bytesMax = 5120

    /// The greatest payload of a push of `type`, in bytes: 5120 for voip, else 4096.
    package static func bytesMax(type: PushType?) -> Int {
        type.map(\.payloadBytesMax) ?? 4096
    }

    /// Checks a body, in this order: empty, size, JSON object.
    ///
    /// - `isCutShort`: The body was longer than `bytesMax(type:)` and is therefore not all there.
    /// - `warnings`: Grows by what is wrong with a payload that is accepted nevertheless.
    /// - Returns: Whether the push wakes its device.
    /// - Throws: `payloadEmpty`, `payloadTooLarge`; and `payloadEmpty` for what is not a JSON object, as APNs has no
    ///   reason of its own for that.
    package static func wakes(
        _ body: ByteView,
        isCutShort: Bool,
        type: PushType?,
        warnings: inout PushWarnings
    ) throws(APNSReason) -> Bool {
        guard !isCutShort else { throw .payloadTooLarge }
        guard !body.isEmpty else { throw .payloadEmpty }
        guard body.count <= self.bytesMax(type: type) else { throw .payloadTooLarge }
        switch JSONGate.judge(body) {
        case .notJSON, .notAnObject: throw .payloadEmpty
        case .wakes: return true
        case .wrongContentAvailable:
            warnings.insert(.contentAvailable)
            return false
        case .doesNotWake: return false
        }
    }
}

/// Likely mistakes of the provider in a push that is accepted.
package struct PushWarnings: OptionSet, BitwiseCopyable, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// `aps.content-available` has a value other than the number 1, so the push does not wake the device.
    package static let contentAvailable = PushWarnings(rawValue: 1)

    /// The push is of type background and has priority 10, which Apple's documentation calls an error.
    package static let backgroundPriority = PushWarnings(rawValue: 2)

    /// The values of the `wakegate-warning` headers, one for each warning: a name that never changes, a semicolon, the
    /// fault, another semicolon, and the remedy.
    package var texts: [StaticString] {
        var texts: [StaticString] = []
        if self.contains(.contentAvailable) {
            texts.append(
                "content-available; aps.content-available is not the number 1, so the push wakes no device; send 1"
            )
        }
        if self.contains(.backgroundPriority) {
            texts.append(
                "background-priority; Apple calls priority 10 an error for push type background; send apns-priority: 5"
            )
        }
        return texts
    }
}
