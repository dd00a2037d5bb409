package import Bytes

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
    /// - Returns: Whether the push wakes its device.
    /// - Throws: `payloadEmpty`, `payloadTooLarge`; and `payloadEmpty` for what is not a JSON object, as APNs has no
    ///   reason of its own for that.
    package static func wakes(_ body: ByteView, isCutShort: Bool, type: PushType?) throws(APNSReason) -> Bool {
        guard !isCutShort else { throw .payloadTooLarge }
        guard !body.isEmpty else { throw .payloadEmpty }
        guard body.count <= self.bytesMax(type: type) else { throw .payloadTooLarge }
        switch JSONGate.judge(body) {
        case .notJSON, .notAnObject: throw .payloadEmpty
        case .wakes: return true
        case .doesNotWake: return false
        }
    }
}
