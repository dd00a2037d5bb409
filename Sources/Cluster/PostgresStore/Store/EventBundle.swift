package import Engine
import Policy
import Wire

/// What happened at one moment to many devices, as one row of `EventTables.bundles`.
package struct EventBundle {
    /// The fewest events that are bundled: fewer are rows of their own, which indexes find.
    package static let eventsMin = 16
    /// The most bytes of a body: of pushes, two rows fill a page with their filters.
    private static let bodyBytesMax = 3_500

    /// A filter of the devices and pushes that it tells of.
    package let keys: [UInt8]
    /// The events as `EventRecord` writes them.
    package let body: [UInt8]

    /// Whether these are better kept as bundles: there are enough, and all of one moment, as those of one transaction
    /// are.
    package static func isWorthwhile(_ events: [HistoryEvent]) -> Bool {
        guard events.count >= self.eventsMin else { return false }
        let moment = events[0].at
        return events.allSatisfy { $0.at == moment }
    }

    /// All of the events, in their order.
    package static func bundles(_ events: [HistoryEvent]) -> [EventBundle] {
        var bundles: [EventBundle] = []
        var body = ByteBuffer()
        var filter = EventFilter()
        var place = 0
        while place < events.count {
            let start = place
            body.removeAll()
            place = EventRecord.write(
                events,
                from: start,
                sequence: 1,
                keyMark: 0,
                bytesMax: self.bodyBytesMax,
                to: &body
            )
            filter.removeAll()
            for event in events[start..<place] { filter.append(event) }
            bundles.append(EventBundle(keys: filter.bytes(), body: body.view.array))
        }
        return bundles
    }
}

/// A filter of keys: it holds each that was put into it, and of others one in some hundred.
///
/// Its bits are a power of two, of which a key has four; PostgreSQL tests them, so what a key's bits are never changes.
package struct EventFilter {
    /// How many bits a key has.
    static let bitsPerKey = 4
    /// How many bits the filter has for each key, at least.
    private static let roomPerKey = 16
    private static let bytesMin = 8

    private var keys: [UInt64] = []
    private var lastDevice: UInt64?

    /// Holds nothing.
    init() {}

    /// Drops every key and keeps the memory.
    mutating func removeAll() {
        self.keys.removeAll(keepingCapacity: true)
        self.lastDevice = nil
    }

    /// Appends what an event is looked for by: its device, and the push that came with it.
    mutating func append(_ event: HistoryEvent) {
        if event.device != self.lastDevice {
            self.keys.append(Self.key(device: event.device))
            self.lastDevice = event.device
        }
        if case .push = event.kind, let apns = event.apnsID { self.keys.append(Self.key(push: apns)) }
    }

    /// The filter as it is stored.
    func bytes() -> [UInt8] {
        var count = Self.bytesMin
        while count * 8 < self.keys.count * Self.roomPerKey { count *= 2 }
        var bytes = [UInt8](repeating: 0, count: count)
        let mask = Int64(count * 8 - 1)
        for key in self.keys {
            for number in 0..<Self.bitsPerKey {
                let place = Int(Self.place(number, of: key) & mask)
                bytes[place >> 3] |= 1 << UInt8(place & 7)
            }
        }
        return bytes
    }

    /// Where a key's bits are: in a filter of so many bits the remainders.
    static func places(_ key: UInt64) -> [Int64] { (0..<self.bitsPerKey).map { self.place($0, of: key) } }

    @inline(__always)
    private static func place(_ number: Int, of key: UInt64) -> Int64 {
        let step = key >> 32 | 1
        return Int64((key &+ UInt64(number) &* step) & 0x7FFF_FFFF)
    }

    /// The key of a device, by the number that events know it by.
    static func key(device: UInt64) -> UInt64 { SplitMix64.scattered(device &+ SplitMix64.step) }

    /// The key of a push, without the case of its letters.
    static func key(push: APNsID) -> UInt64 { self.key(device: self.key(device: push.first) ^ push.second) }
}
