import Engine
import Wire

/// The last pushes to one device, made of what happened to it last.
struct PushList {
    /// The most pushes that are listed.
    static let pushesMax = 32
    /// How far the list looks back: a push that is launched as often as may be has eight events.
    static let eventsMax = 256
    /// How far it looks back when most of what happened befell tasks.
    static let examinedMax = 2048

    /// The newest first.
    private(set) var pushes: [PushWay] = []

    /// - Parameter recent: what happened to the device and its pushes last, the newest first.
    init(recent: [HistoryEvent]) {
        var places: [APNsID: Int] = [:]
        var ways: [PushWay] = []
        for event in recent.reversed() {
            // A push whose beginning lies farther back is not among the last.
            if let apnsID = event.apnsID, case .push = event.kind {
                places[apnsID] = ways.count
                ways.append(PushWay(apnsID))
            }
            for named in Set([event.apnsID, event.related].compactMap(\.self)) {
                if let place = places[named] { ways[place].append(event) }
            }
        }
        self.pushes = ways.suffix(Self.pushesMax).reversed()
    }

    /// Appends the pushes as an array.
    func write(to writer: inout JSONWriter, _ offset: WallOffset) {
        writer.beginArray()
        for push in self.pushes {
            writer.beginObject()
            push.writeSummary(to: &writer, offset)
            writer.endObject()
        }
        writer.endArray()
    }
}
