import Engine
import Foundation
import Glibc
import Platform
import Policy
import Storage
import Wire

/// What the journal costs: devices are written once, then random ones again and again, then all are loaded.
@main
struct Measurement: ~Copyable {
    private let options: MeasurementOptions
    private var random = SplitMix64(seed: 1)
    /// The number that the batch was made with.
    private var number: UInt64 = 0
    private var batch = RecordBatch()
    private let content: [UInt8]
    private var events: [HistoryEvent] = []
    /// The number of the last record of events.
    private var sequence: UInt64 = 0
    /// A history that makes everything durable at once.
    private let retention = EventRetention()
    /// CPU that went into making the batches, which an engine would spend, not the journal.
    private var batchNanoseconds: Int64 = 0

    static func main() {
        guard let options = MeasurementOptions(CommandLine.arguments.dropFirst()) else {
            Self.write("usage: wakegate-journal \(MeasurementOptions.usage)\n", to: STDERR_FILENO)
            exit(64)
        }
        let folder = URL(filePath: options.folder).appending(path: "wakegate-journal-\(getpid())")
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            var measurement = Measurement(options: options)
            try measurement.run(folder.appending(path: "journal.sqlite").path)
        } catch {
            Self.write("\((error as? StoreError)?.message ?? "\(error)")\n", to: STDERR_FILENO)
            exit(1)
        }
    }

    private init(options: MeasurementOptions) {
        self.options = options
        self.content = Array(repeating: 0x61, count: options.recordBytes - RecordBatch.headerCount)
    }

    private mutating func run(_ path: String) throws(StoreError) {
        var latencies: [Int64] = []
        latencies.reserveCapacity(self.options.commits)
        var seconds = 0.0
        var cpuNanoseconds: Int64 = 0
        var sizes = (all: 0, live: 0)
        do {
            let journal = try Journal(path: path)
            try journal.begin()
            journal.retention = self.retention
            let thread = try CheckpointThread(journal)
            defer { thread.stop() }
            try self.fill(journal)
            // The log of the first writing is copied, and rows of every age are there, before anything is measured.
            for _ in 0..<self.options.commits / 4 {
                self.makeBatch()
                try self.commit(to: journal)
            }
            let start = SystemClock.monotonicNanoseconds
            let startCPU = SystemClock.processorNanoseconds
            self.batchNanoseconds = 0
            for _ in 0..<self.options.commits {
                self.makeBatch()
                let begin = SystemClock.monotonicNanoseconds
                try self.commit(to: journal)
                latencies.append(SystemClock.monotonicNanoseconds - begin)
            }
            cpuNanoseconds = SystemClock.processorNanoseconds - startCPU - self.batchNanoseconds
            seconds = Double(SystemClock.monotonicNanoseconds - start) / 1e9
            sizes = journal.bytes
        }
        let beginLoad = SystemClock.monotonicNanoseconds
        let journal = try Journal(path: path)
        let opened = SystemClock.monotonicNanoseconds
        var found = 0
        try journal.load { key, _ in found += key.kind == .device ? 1 : 0 }
        try journal.begin()
        let loaded = SystemClock.monotonicNanoseconds
        precondition(found == self.options.devices, "every device is loaded")
        latencies.sort()
        self.report(
            path,
            latencies,
            seconds: seconds,
            cpuNanoseconds: cpuNanoseconds,
            sizes,
            load: (Double(opened - beginLoad) / 1e9, Double(loaded - opened) / 1e9)
        )
    }

    /// Writes each device once.
    private mutating func fill(_ journal: Journal) throws(StoreError) {
        var device = 0
        while device < self.options.devices {
            self.batch.removeAll()
            for index in device..<min(device + 4096, self.options.devices) { self.append(UInt32(index)) }
            self.appendEvents()
            try self.commit(to: journal)
            device += 4096
        }
    }

    private mutating func makeBatch() {
        let begin = SystemClock.threadNanoseconds
        self.batch.removeAll()
        self.number = self.random.next()
        let first = self.number >> 33
        // Scattered devices, none of them twice: the step is a prime.
        for number in 0..<UInt64(min(self.options.batch, self.options.devices)) {
            self.append(UInt32((first + number * 2_147_483_647) % UInt64(self.options.devices)))
        }
        self.appendEvents()
        self.batchNanoseconds += SystemClock.threadNanoseconds - begin
    }

    private mutating func commit(to journal: Journal) throws(StoreError) {
        try journal.commit(self.batch)
        self.retention.advance(to: self.sequence)
    }

    /// What happened to the devices of the batch, as the gateway keeps it for the history.
    private mutating func appendEvents() {
        var start = 0
        while start < self.events.count {
            self.sequence += 1
            let (events, sequence) = (self.events, self.sequence)
            self.batch.append(EventRecord.key(sequence)) {
                start = EventRecord.write(events, from: start, sequence: sequence, keyMark: 1, to: &$0)
            }
        }
        self.events.removeAll(keepingCapacity: true)
    }

    private mutating func append(_ device: UInt32) {
        let content = self.content
        self.batch.append(RecordKey(.device, device)) { $0.append(content) }
        let apnsID = APNsID(random: (UInt64(device), self.number))
        for number in 0..<self.options.events {
            let kind: HistoryEvent.Kind =
                number == 0 ? .push(.scheduled) : .launch(attempt: UInt16(number), coalesced: 0)
            self.events.append(
                HistoryEvent(device: UInt64(device), at: Instant(milliseconds: 1), kind: kind, apnsID: apnsID)
            )
        }
    }

    private func report(
        _ path: String,
        _ latencies: [Int64],
        seconds: Double,
        cpuNanoseconds: Int64,
        _ bytes: (all: Int, live: Int),
        load: (open: Double, read: Double)
    ) {
        let records = Double(self.options.commits * self.options.batch)
        let figures: [(String, Double)] = [
            ("devices", Double(self.options.devices)),
            ("batch", Double(self.options.batch)),
            ("recordBytes", Double(self.options.recordBytes)),
            ("events", Double(self.options.events)),
            ("recordsPerSecond", records / seconds),
            ("cpuMicrosecondsPerRecord", Double(cpuNanoseconds) / 1000 / records),
            ("commitMicrosecondsP50", Double(latencies[latencies.count / 2]) / 1000),
            ("commitMicrosecondsP99", Double(latencies[latencies.count * 99 / 100]) / 1000),
            ("commitMicrosecondsP999", Double(latencies[latencies.count * 999 / 1000]) / 1000),
            ("commitMicrosecondsMax", Double(latencies[latencies.count - 1]) / 1000),
            ("fileBytes", Double(Self.size(path))),
            ("logBytes", Double(Self.size(path + "-wal"))),
            ("rowBytes", Double(bytes.all)),
            ("liveBytes", Double(bytes.live)),
            ("openSeconds", load.open),
            ("loadSeconds", load.read),
        ]
        let members = figures.map { name, value in
            "\"\(name)\":" + (value >= 100 ? "\(Int(value))" : String(format: "%.3f", value))
        }
        Self.write("{\(members.joined(separator: ","))}\n", to: STDOUT_FILENO)
    }

    private static func size(_ path: String) -> Int64 {
        Int64((try? FileSystem.status(path))?.size ?? 0)
    }

    private static func write(_ text: String, to file: Int32) {
        text.withByteView { _ = Descriptor.writeAll(file, $0) }
    }
}
