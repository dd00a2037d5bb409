import Engine
import Glibc
import Platform
import Policy
import Storage
import Wire

/// What the history costs, and beside it the same in ordinary tables of SQLite: processor time an event, bytes an
/// event, and how long a question takes.
///
/// A push of two events (it came, and launched), one in eight with a third that follows, goes to a device drawn at
/// random; every lot, of 65,536 events as a rule, is flushed, and then all is tidied.
@main
struct Measurement {
    /// What all lots of one store took.
    private struct Costs {
        /// Of the processor.
        var nanoseconds: Int64 = 0
        var longest = Pieces(flush: 0, tidying: 0)
    }

    static let questions = 2000

    private var random = SplitMix64(seed: 1)
    private let folder: String
    private let lot: Int

    static func main() {
        let arguments = CommandLine.arguments
        let numbers = arguments.dropFirst(2).compactMap { Int($0) }.filter { $0 > 0 }
        guard numbers.count >= 2, numbers.count <= 3, arguments.count == numbers.count + 2 else {
            Self.write("usage: wakegate-history FOLDER EVENTS DEVICES [EVENTS A LOT]\n", to: STDERR_FILENO)
            exit(64)
        }
        var measurement = Measurement(folder: arguments[1], lot: numbers.count == 3 ? numbers[2] : 65_536)
        do {
            try measurement.run(events: numbers[0], devices: numbers[1])
        } catch {
            Self.write("wakegate-history: \(error)\n", to: STDERR_FILENO)
            exit(1)
        }
    }

    private init(folder: String, lot: Int) {
        self.lot = lot
        self.folder = folder
    }

    private mutating func run(events: Int, devices: Int) throws {
        let stores: [any EventStore] = [
            SortedRuns(path: self.folder + "/history.sqlite"),
            try OrdinaryTables(path: self.folder + "/tables.sqlite"),
        ]
        var costs = stores.map { _ in Costs() }
        var written = 0
        var last: [HistoryEvent] = []
        while written < events {
            last = self.makeLot(devices: devices, from: written)
            for (index, store) in stores.enumerated() {
                let start = SystemClock.processorNanoseconds
                let pieces = try store.write(last)
                costs[index].nanoseconds += SystemClock.processorNanoseconds - start
                costs[index].longest.rise(to: pieces)
            }
            written += last.count
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("events")
        writer.integer(written)
        writer.key("devices")
        writer.integer(devices)
        for (store, cost) in zip(stores, costs) {
            writer.key(store.name)
            writer.beginObject()
            writer.key("nanosecondsAnEvent")
            writer.integer(Int(cost.nanoseconds) / written)
            writer.key("bytesAnEvent")
            writer.integer(Self.fileBytes(store.path) / written)
            writer.key("longestFlushMicroseconds")
            writer.integer(Int(cost.longest.flush))
            writer.key("longestPieceMicroseconds")
            writer.integer(Int(cost.longest.tidying))
            try self.ask(store, devices: devices, last, &writer)
            writer.endObject()
        }
        writer.endObject()
        Self.write(writer.buffer.view.string + "\n", to: STDOUT_FILENO)
    }

    private mutating func ask(
        _ store: any EventStore,
        devices: Int,
        _ events: [HistoryEvent],
        _ writer: inout JSONWriter
    ) throws {
        var recent: [Int64] = []
        var push: [Int64] = []
        for _ in 0..<Self.questions {
            let device = self.device(devices)
            var start = SystemClock.monotonicMicroseconds
            _ = try store.recent(device: device, count: 32)
            recent.append(SystemClock.monotonicMicroseconds - start)
            guard let apnsID = events[Int(self.random.next() % UInt64(events.count))].apnsID else { continue }
            start = SystemClock.monotonicMicroseconds
            let found = try store.push(apnsID)
            push.append(SystemClock.monotonicMicroseconds - start)
            precondition(found > 0, "a push is missing")
        }
        recent.sort()
        push.sort()
        for (name, times) in [("recent", recent), ("push", push)] {
            writer.key("\(name)Microseconds")
            writer.beginObject()
            writer.key("p50")
            writer.integer(Int(times[times.count / 2]))
            writer.key("p99")
            writer.integer(Int(times[times.count * 99 / 100]))
            writer.endObject()
        }
    }

    private mutating func makeLot(devices: Int, from number: Int) -> [HistoryEvent] {
        var events: [HistoryEvent] = []
        events.reserveCapacity(self.lot + 3)
        while events.count < self.lot {
            let device = self.device(devices)
            // 200,000 events a second.
            let at = Instant(milliseconds: 1_700_000_000_000 + Int64(number + events.count) / 200)
            let apnsID = APNsID(random: (self.random.next(), self.random.next()))
            events.append(HistoryEvent(device: device, at: at, kind: .push(.launched), apnsID: apnsID))
            events.append(
                HistoryEvent(device: device, at: at, kind: .launch(attempt: 1, coalesced: 0), apnsID: apnsID)
            )
            guard self.random.next() & 7 == 0 else { continue }
            events.append(HistoryEvent(device: device, at: at + 5, kind: .result(.newData), apnsID: apnsID))
        }
        return events
    }

    private mutating func device(_ count: Int) -> UInt64 {
        (self.random.next() % UInt64(count) + 1) &* SplitMix64.step
    }

    private static func fileBytes(_ path: String) -> Int {
        var bytes = 0
        for name in [path, path + "-wal"] {
            bytes += (try? FileSystem.status(name))?.size ?? 0
        }
        return bytes
    }

    static func write(_ text: String, to file: Int32) {
        text.withByteView { _ = Descriptor.writeAll(file, $0) }
    }
}
