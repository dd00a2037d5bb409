package import Bytes
package import DeviceEngine

/// What `EffectStage` wrote for a worker's stream, for a worker that is none.
package enum WorkerEvent {
    /// A wake and its JSON object; the view is valid as long as that of the event.
    case wake(WakeID, ByteView)
    case expired(WakeID)
    case other

    private static let wakeStart: StaticString = "event: wake\nid: "
    private static let expiredStart: StaticString = "event: expired\ndata: {\"wake\":\""
    private static let idCount = 32

    package init(_ bytes: ByteView) {
        if bytes.starts(with: Self.wakeStart) {
            // The id is followed by "\ndata: ", and the object by two newlines; the object itself holds none.
            let idStart = Self.wakeStart.utf8CodeUnitCount
            let objectStart = idStart + Self.idCount + 7
            guard objectStart + 2 <= bytes.count, let id = WakeID(bytes[idStart..<idStart + Self.idCount]) else {
                self = .other
                return
            }
            self = .wake(id, bytes[objectStart..<bytes.count - 2])
        } else if bytes.starts(with: Self.expiredStart) {
            let idStart = Self.expiredStart.utf8CodeUnitCount
            guard idStart + Self.idCount <= bytes.count, let id = WakeID(bytes[idStart..<idStart + Self.idCount])
            else {
                self = .other
                return
            }
            self = .expired(id)
        } else {
            self = .other
        }
    }
}
