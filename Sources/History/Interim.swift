// For the helper "history": delete this file when yours lands; Gateway uses exactly what stands here:
// `HistoryEvent(device:_:)` from a RecentEvent, `.recent` back, `HistoryEvent.device(token)`, and HistoryFile below.
package import Bytes
package import DeviceEngine

package struct HistoryEvent: Hashable, Sendable {
    package let device: UInt64
    package let recent: RecentEvent

    package init(device: UInt64, _ recent: RecentEvent) {
        self.device = device
        self.recent = recent
    }

    package static func device(_ token: DeviceToken) -> UInt64 { token.hash64(seed: 0x5741_4B45_4741_5445) }
}

package struct HistoryLimits: Sendable {
    package init() {}
}

package final class HistoryFile {
    private var events: [HistoryEvent] = []

    package init(path: String?, limits: HistoryLimits, onTrouble: @escaping (String) -> Void) {}

    package func append(_ events: [HistoryEvent]) { self.events.append(contentsOf: events) }
    package func flush() {}
    package func tidy() -> Bool { false }
    package func recent(device: UInt64, count: Int) -> [HistoryEvent] {
        Array(self.events.filter { $0.device == device }.reversed().prefix(count))
    }
}
