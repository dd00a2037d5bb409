import Glibc

extension CommandDefinition {
    package static let size = CommandDefinition(
        "size",
        "estimate database and gateway sizes for a load",
        options: [
            OptionDefinition(
                "--devices N",
                "the number of devices",
                value: .integer(1...10_000_000_000),
                isRequired: true
            ),
            OptionDefinition(
                "--rate R",
                "the peak rate of pushes a second",
                value: .integer(1...100_000_000),
                isRequired: true
            ),
            OptionDefinition("--payload B", "bytes of a payload; default: 200", value: .integer(0...4096)),
            OptionDefinition("--history DAYS", "days of the delivery log; default: 7", value: .integer(0...3650)),
        ],
        example: "wakegate size --devices 10000000 --rate 5000",
        notes: """
            For gateways that share a PostgreSQL database. The estimate is based on measurements; the article "Sizing a
            cluster" explains each line. The plan keeps cores half busy and a third of each disk free. No gateway is
            contacted.
            """,
        run: { parsed throws(CommandFailure) in
            var load = ClusterSize.Load(
                devices: Double(parsed.integer("--devices") ?? 0),
                rate: Double(parsed.integer("--rate") ?? 0)
            )
            if let payload = parsed.integer("--payload") { load.payload = Double(payload) }
            if let days = parsed.integer("--history") { load.history = Double(days) }
            Console.out(SizeText.text(ClusterSize(load)))
            return 0
        }
    )
}

/// Formats the output of `wakegate size`.
package enum SizeText {
    /// Returns the sizes as lines with a name and a value.
    package static func text(_ size: ClusterSize) -> String {
        let databases = size.databases
        var lines = [
            ("load", self.load(size.load, launches: size.launches)),
            ("gateways", "\(size.gateways) with \(ClusterSize.gatewayCores) cores each; one gateway may fail"),
        ]
        if databases > 1 {
            let limits = size.limits.map(\.rawValue).joined(separator: ", ")
            lines.append(("one primary", "is not enough: \(limits)"))
            lines.append(("databases", "\(databases), each with the devices of a part of all tokens; each of them:"))
        }
        let part = size.part(of: databases)
        lines += [
            ("nodes", "3 with \(part.cores) cores and \(self.bytes(part.memoryBytes)) of memory each"),
            (
                "connections",
                "max_connections = \(size.connections); each gateway uses \(ClusterSize.connectionsPerGateway)"
            ),
            ("devices", self.bytes(part.deviceBytes)),
            ("delivery log", self.bytes(part.historyBytes)),
            (
                "WAL",
                "\(self.bytes(part.logBytes)) a second, \(self.bytes(part.logBytes * 86_400)) a day; up to "
                    + "\(self.bytes(part.logDiskBytes)) on the disk"
            ),
            ("disk", "\(self.bytes(part.diskBytes)) a node, a third of which stays free"),
        ]
        return TableText.lines(lines.map { [$0.0, $0.1] })
    }

    private static func load(_ load: ClusterSize.Load, launches: Double) -> String {
        "\(self.count(load.devices)) devices, \(self.count(load.rate)) pushes of \(self.count(load.payload)) bytes and "
            + "at most \(self.count(launches)) launches a second, history of \(self.count(load.history)) d"
    }

    /// Formats a whole number with thousands separators.
    package static func count(_ number: Double) -> String { self.grouped(Int(number.rounded())) }

    static func grouped(_ number: Int) -> String {
        var digits = Array(String(number.magnitude))
        for place in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: place) }
        return (number < 0 ? "-" : "") + String(digits)
    }

    /// Formats a number of bytes in decimal units, with at least two significant digits.
    package static func bytes(_ bytes: Double) -> String {
        var value = bytes
        var unit = 0
        let units = ["B", "KB", "MB", "GB", "TB", "PB"]
        while value >= 1000, unit + 1 < units.count {
            value /= 1000
            unit += 1
        }
        let tenths = Int((value * 10).rounded())
        guard value < 10, tenths % 10 != 0, unit > 0 else { return "\(Int(value.rounded())) \(units[unit])" }
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}

/// The estimated sizes of a database and its gateways for a number of devices and pushes. The estimate uses
/// `MeasuredCosts`.
package struct ClusterSize: Hashable, Sendable {
    /// The expected load.
    package struct Load: Hashable, Sendable {
        package var devices: Double
        /// The number of pushes per second at the peak.
        package var rate: Double
        /// The number of bytes per payload.
        package var payload: Double
        /// The number of days that the delivery log covers.
        package var history: Double

        package init(devices: Double, rate: Double, payload: Double = 200, history: Double = 7) {
            self.devices = devices
            self.rate = rate
            self.payload = payload
            self.history = history
        }
    }

    /// A resource of which one primary has too little, as the output names it.
    package enum Limit: String, Sendable {
        case processors = "its cores"
        case log = "its write-ahead log"
        case devices = "the size of its tables"
    }

    package let load: Load
    /// The maximum number of launches per second. A device launches at most once in 15 minutes and at most once per
    /// push.
    package let launches: Double

    package init(_ load: Load) {
        self.load = load
        self.launches = min(load.rate, load.devices / 900)
    }

    // MARK: Gateways

    /// The number of gateways with `gatewayCores` cores each, including a spare. They handle the load even if one
    /// fails.
    package var gateways: Int {
        let each = MeasuredCosts.pushesPerGatewayCore * MeasuredCosts.planned * Double(Self.gatewayCores)
        return max(1, Int((self.load.rate / each).rounded(.up))) + 1
    }

    /// The number of cores per gateway: one for the engine, and three for reading, writing and encrypting.
    package static let gatewayCores = 4

    /// The number of connections from all gateways and operators to the primary.
    package var connections: Int { self.gateways * Self.connectionsPerGateway + 20 }

    /// The number of connections per gateway: 8 that commit, one for control, one for topics and notices, one for
    /// queries, and up to 2 that read the delivery log or run checks.
    package static let connectionsPerGateway = 13

    // MARK: The database

    /// The number of cores per node.
    package var cores: Int {
        let push = MeasuredCosts.databaseMicrosecondsPerPush * self.load.rate
        let launch = MeasuredCosts.databaseMicrosecondsPerLaunch * self.launches
        return max(2, Int(((push + launch) / 1_000_000 / MeasuredCosts.planned).rounded(.up)))
    }

    /// The size of the devices' tables and indexes, in bytes.
    package var deviceBytes: Double {
        let row = self.rowBytes / MeasuredCosts.fillFactor * MeasuredCosts.deviceGrowth
        return self.load.devices * (row + MeasuredCosts.deviceIndexBytes + MeasuredCosts.dueBytes)
            + self.launches * MeasuredCosts.wakeSeconds * MeasuredCosts.wakeBytes
    }

    /// The size of the delivery log, in bytes: one event for each push, each launch and each result.
    package var historyBytes: Double {
        let push = MeasuredCosts.eventBytes + MeasuredCosts.pushBytes
        let events = self.load.rate * push + self.launches * 2 * MeasuredCosts.eventBytes
        return events * self.load.history * 86_400
    }

    /// The bytes of write-ahead log per second.
    package var logBytes: Double {
        let push =
            MeasuredCosts.logBytesPerPush + self.load.payload
            + self.wholePages * MeasuredCosts.logBytesPerPage
        return self.load.rate * push + self.launches * MeasuredCosts.logBytesPerLaunch
    }

    /// The average number of full-page writes per push. PostgreSQL logs the whole page at the first write after a
    /// checkpoint. The number is near `pagesPerPush` with many devices and few pushes, and near 0 if pushes write the
    /// same pages repeatedly.
    private var wholePages: Double {
        let pages = (self.deviceBytes + self.load.devices * MeasuredCosts.pushBytes) / MeasuredCosts.pageBytes
        let writes = self.load.rate * MeasuredCosts.checkpointSeconds * MeasuredCosts.pagesPerPush
        guard pages > 0, writes > 0 else { return 0 }
        return pages * (1 - exp(-writes / pages)) / writes * MeasuredCosts.pagesPerPush
    }

    /// The maximum size of the write-ahead log on disk, in bytes: two and a half checkpoint intervals.
    package var logDiskBytes: Double { max(2_000_000_000, self.logBytes * MeasuredCosts.checkpointSeconds * 2.5) }

    /// The size of a node's disk, in bytes. A third of it remains free.
    package var diskBytes: Double { (self.deviceBytes + self.historyBytes + self.logDiskBytes) * 1.5 }

    /// The memory for frequently written data, in bytes: a tenth of the devices, and the indexes.
    package var memoryBytes: Double {
        let indexes = self.load.devices * (MeasuredCosts.deviceIndexBytes + 172)
        return max(4_000_000_000, (self.deviceBytes * 0.1 + indexes) * 2)
    }

    private var rowBytes: Double { MeasuredCosts.deviceBytes + self.load.payload }

    // MARK: Limits of one primary

    /// The resources of which one primary has too little; empty if one primary is enough.
    package var limits: [Limit] {
        let rows = MeasuredCosts.rowsPerSecondOnTwoCores / 2 * MeasuredCosts.primaryCores * MeasuredCosts.planned
        var limits: [Limit] = []
        if Double(self.cores) > MeasuredCosts.primaryCores || self.load.rate + self.launches * 2 > rows {
            limits.append(.processors)
        }
        if self.logBytes > MeasuredCosts.logBytesPerSecondMax { limits.append(.log) }
        if self.load.devices > MeasuredCosts.devicesMax { limits.append(.devices) }
        return limits
    }

    /// The number of databases between which the devices must be divided by token.
    package var databases: Int {
        var count = 1
        while count < 1 << 20, !self.part(of: count).limits.isEmpty { count *= 2 }
        return count
    }

    /// Returns the size of each database if the devices are divided equally between `databases`.
    package func part(of databases: Int) -> ClusterSize {
        var part = self.load
        part.devices /= Double(databases)
        part.rate /= Double(databases)
        return ClusterSize(part)
    }
}

/// The measured costs of a push on PostgreSQL. Each comment names the source.
///
/// The sources:
///
/// - "CLUSTER.md": the table in the design (2 cores, PostgreSQL 15.18, a disk with 5 ms per commit).
/// - "Bench": `deploy/bench --only cluster` on 2 cores.
/// - "Tables": a database of 10,000 devices with payloads of 192 bytes, after ten pushes to each. Measured with
///   `pg_relation_size`, `pg_waldump --stats` and `avg(length(record))`.
enum MeasuredCosts {
    // MARK: Processors, in microseconds of one core

    /// PostgreSQL's time for a push. Bench, on a loaded machine: 18 to 25 with one to three gateways; 18 to 19 for the
    /// transaction alone.
    static let databaseMicrosecondsPerPush = 25.0
    /// PostgreSQL's time for a launch and its result. Bench, on a loaded machine: claims of 20,000 wakes.
    static let databaseMicrosecondsPerLaunch = 67.0
    /// The number of pushes per second for each core of a gateway. CLUSTER.md: the target, 0.6 times the rate of the
    /// transaction alone. This transaction processes 119,000 rows per second on 2 cores that it shares with PostgreSQL.
    static let pushesPerGatewayCore = 35_000.0

    // MARK: Tables, in bytes

    /// A device's row without its payload: 106 for the record, and 112 for the other columns. Tables.
    static let deviceBytes = 218.0
    /// The fraction of a page that inserts fill: the schema's fillfactor.
    static let fillFactor = 0.7
    /// The size of the table after updates, relative to the size of its rows when they were inserted. Tables: 1,111
    /// bytes per device instead of 586.
    static let deviceGrowth = 1.9
    /// An index entry in `device_pkey`. Tables.
    static let deviceIndexBytes = 80.0
    /// A row of `due` with its two index entries. Tables: 347 and 172.
    static let dueBytes = 520.0
    /// A row of `wake` with its three index entries. Tables: 2,300 launches.
    static let wakeBytes = 380.0
    /// The time for which an ended wake stays in the table, in seconds, as in the schema.
    static let wakeSeconds = 600.0
    /// A row of `event`, including its index. Tables: 134 and 1.
    static let eventBytes = 135.0
    /// A row of `push`, including its index. Tables: 60 and 1.
    static let pushBytes = 61.0

    // MARK: Write-ahead log, in bytes

    /// Write-ahead log for a push without its payload. Tables: 560 with a payload of 192.
    static let logBytesPerPush = 368.0
    /// Write-ahead log for a launch and its result. Tables: 7.2 MB for 2,307 launches.
    static let logBytesPerLaunch = 3_100.0
    /// Write-ahead log for the first write of a page after a checkpoint. The full page is logged, with
    /// `wal_compression`. Assumed: half a page.
    static let logBytesPerPage = 4_096.0
    /// The number of randomly located pages that a push writes: in `device`, in `due`, and in its primary key.
    static let pagesPerPush = 3.0
    static let pageBytes = 8_192.0
    /// The interval between two checkpoints, in seconds, as in `deploy/postgresql/wakegate.conf`.
    static let checkpointSeconds = 900.0

    // MARK: Limits

    /// The planned utilization of a processor. The remaining capacity is for vacuum, peaks, and a failed node or
    /// gateway.
    static let planned = 0.5
    /// The maximum number of rows that one server with 2 cores can lock, read and upsert per second. CLUSTER.md:
    /// 119,000 to 151,000 if only the row changes; 88,000 with 2 million devices and a changing index.
    static let rowsPerSecondOnTwoCores = 88_000.0
    /// The number of cores up to which the rate of one primary is assumed to grow.
    static let primaryCores = 32.0
    /// The maximum bytes of write-ahead log per second that one primary sends and each standby replays. Assumed,
    /// because one process replays the log.
    static let logBytesPerSecondMax = 200_000_000.0
    /// The maximum number of devices in one database. Assumed, because one process must keep up with the vacuum of a
    /// table.
    static let devicesMax = 300_000_000.0
}
