import Bytes
import DeviceEngine
import Glibc
import History
import LaunchPolicy

/// What the history costs: processor time an event, bytes an event, and how long a question takes.
///
/// A push of two events (it came, and launched), one in eight with a third that follows, goes to a device drawn at
/// random; every lot, of 65,536 events as a rule, is flushed, and then all is tidied.
@main
struct Measurement {
    static let questions = 2000

    private var state: UInt64 = 1
    private let history: HistoryFile
    private let path: String
    private let lot: Int

    static func main() {
        let arguments = CommandLine.arguments
        let numbers = arguments.dropFirst(2).compactMap { Int($0) }.filter { $0 > 0 }
        guard numbers.count >= 2, numbers.count <= 3, arguments.count == numbers.count + 2 else {
            Self.write("usage: wakegate-history FOLDER EVENTS DEVICES [EVENTS A LOT]\n", to: STDERR_FILENO)
            exit(64)
        }
        var measurement = Measurement(folder: arguments[1], lot: numbers.count == 3 ? numbers[2] : 65_536)
        measurement.run(events: numbers[0], devices: numbers[1])
    }

    private init(folder: String, lot: Int) {
        self.lot = lot
        self.path = folder + "/history.sqlite"
        self.history = HistoryFile(path: self.path, key: HashKey((1, 2))) { Self.write("\($0)\n", to: STDERR_FILENO) }
    }

    private mutating func run(events: Int, devices: Int) {
        var written = 0
        var microseconds = 0.0
        var longestFlush = 0.0
        var longestTidy = 0.0
        var pieces = 0
        var last: [HistoryEvent] = []
        while written < events {
            last = self.makeLot(devices: devices, from: written)
            let start = Self.clock(CLOCK_PROCESS_CPUTIME_ID)
            self.history.append(last)
            let flush = Self.clock(CLOCK_MONOTONIC)
            self.history.flush()
            longestFlush = max(longestFlush, Self.clock(CLOCK_MONOTONIC) - flush)
            var isDone = false
            while !isDone {
                let piece = Self.clock(CLOCK_MONOTONIC)
                isDone = !self.history.tidy()
                longestTidy = max(longestTidy, Self.clock(CLOCK_MONOTONIC) - piece)
                pieces += 1
            }
            microseconds += Self.clock(CLOCK_PROCESS_CPUTIME_ID) - start
            written += last.count
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("events")
        writer.integer(written)
        writer.key("devices")
        writer.integer(devices)
        writer.key("nanosecondsAnEvent")
        writer.integer(Int(microseconds * 1000 / Double(written)))
        writer.key("bytesAnEvent")
        writer.integer(self.fileBytes() / written)
        writer.key("fileMiB")
        writer.integer(self.fileBytes() >> 20)
        writer.key("runs")
        writer.integer(self.history.runCount)
        writer.key("longestFlushMicroseconds")
        writer.integer(Int(longestFlush))
        writer.key("longestPieceMicroseconds")
        writer.integer(Int(longestTidy))
        self.ask(devices: devices, last, &writer)
        writer.endObject()
        Self.write(writer.buffer.view.string + "\n", to: STDOUT_FILENO)
    }

    private mutating func ask(devices: Int, _ events: [HistoryEvent], _ writer: inout JSONWriter) {
        var recent: [Double] = []
        var push: [Double] = []
        for _ in 0..<Self.questions {
            let device = self.device(devices)
            var start = Self.clock(CLOCK_MONOTONIC)
            let answer = self.history.recent(device: device, count: 32)
            recent.append(Self.clock(CLOCK_MONOTONIC) - start)
            precondition(answer.allSatisfy { $0.device == device }, "events of another device")
            guard let apnsID = events[Int(self.next() % UInt64(events.count))].apnsID else { continue }
            start = Self.clock(CLOCK_MONOTONIC)
            precondition(!self.history.push(apnsID).isEmpty, "a push is missing")
            push.append(Self.clock(CLOCK_MONOTONIC) - start)
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
            let apnsID = APNsID(random: (self.next(), self.next()))
            events.append(HistoryEvent(device: device, at: at, kind: .push(.launched), apnsID: apnsID))
            events.append(
                HistoryEvent(device: device, at: at, kind: .launch(attempt: 1, coalesced: 0), apnsID: apnsID)
            )
            guard self.next() & 7 == 0 else { continue }
            events.append(HistoryEvent(device: device, at: at + 5, kind: .result(.newData), apnsID: apnsID))
        }
        return events
    }

    private mutating func device(_ count: Int) -> UInt64 {
        (self.next() % UInt64(count) + 1) &* 0x9E37_79B9_7F4A_7C15
    }

    private mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    private func fileBytes() -> Int {
        var bytes = 0
        for name in [self.path, self.path + "-wal"] {
            var status = stat()
            if unsafe stat(name, &status) == 0 { bytes += Int(status.st_size) }
        }
        return bytes
    }

    /// Microseconds.
    private static func clock(_ clock: clockid_t) -> Double {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }

    private static func write(_ text: String, to file: Int32) {
        text.withByteView { view in _ = unsafe Glibc.write(file, view.buffer.baseAddress, view.count) }
    }
}
