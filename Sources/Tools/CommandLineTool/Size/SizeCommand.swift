import Glibc

extension CommandDefinition {
    package static let size = CommandDefinition(
        "size",
        "estimate database and gateway sizes for a load",
        options: [
            OptionDefinition(
                "--devices",
                "N",
                "how many devices there are",
                value: .integer(1...10_000_000_000),
                isRequired: true
            ),
            OptionDefinition(
                "--rate",
                "R",
                "pushes a second, at the peak",
                value: .integer(1...100_000_000),
                isRequired: true
            ),
            OptionDefinition("--payload", "B", "bytes of a payload; default: 200", value: .integer(0...4096)),
            OptionDefinition("--history", "DAYS", "days of the delivery log; default: 7", value: .integer(0...3650)),
        ],
        example: "wakegate size --devices 10000000 --rate 5000",
        notes: [
            """
            For gateways that share a database of PostgreSQL. It computes from what was measured; what a line rests on
            is in the article "Sizing a cluster". Cores are planned to be half busy, and a third of each disk is free.
            No gateway is asked.
            """
        ],
        run: SizeCommand.run
    )
}

/// `wakegate size`.
enum SizeCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        var load = ClusterSize.Load(
            devices: Double(parsed.integer("--devices") ?? 0),
            rate: Double(parsed.integer("--rate") ?? 0)
        )
        if let payload = parsed.integer("--payload") { load.payload = Double(payload) }
        if let days = parsed.integer("--history") { load.history = Double(days) }
        Console.out(SizeText.text(ClusterSize(load)))
        return 0
    }
}

/// What `wakegate size` shows.
package enum SizeText {
    /// The size as lines, each a name and a value.
    package static func text(_ size: ClusterSize) -> String {
        let databases = size.databases
        var lines = [
            ("load", self.load(size.load, launches: size.launches)),
            ("gateways", "\(size.gateways) of \(ClusterSize.gatewayCores) cores, one of which may be gone"),
        ]
        if databases > 1 {
            let limits = size.limits.map(self.words).joined(separator: ", ")
            lines.append(("one primary", "is not enough: \(limits)"))
            lines.append(("databases", "\(databases), each with the devices of a part of all tokens; each of them:"))
        }
        let part = size.part(of: databases)
        lines += [
            ("nodes", "3 of \(part.cores) cores and \(self.bytes(part.memoryBytes)) of memory"),
            (
                "connections",
                "\(size.connections): max_connections, of which a gateway has "
                    + "\(ClusterSize.connectionsPerGateway)"
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
        let width = (lines.map(\.0.count).max() ?? 0) + 2
        return lines.map { name, value in
            name + String(repeating: " ", count: width - name.count) + value + "\n"
        }.joined()
    }

    private static func load(_ load: ClusterSize.Load, launches: Double) -> String {
        "\(self.count(load.devices)) devices, \(self.count(load.rate)) pushes of \(self.count(load.payload)) bytes and "
            + "at most \(self.count(launches)) launches a second, history of \(self.count(load.history)) d"
    }

    private static func words(_ limit: ClusterSize.Limit) -> String {
        switch limit {
        case .processors: "its cores"
        case .log: "its write-ahead log"
        case .devices: "the size of its tables"
        }
    }

    /// A whole number, its thousands apart.
    package static func count(_ number: Double) -> String {
        var digits = Array(String(Int(number.rounded())))
        for place in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: place) }
        return String(digits)
    }

    /// Bytes in a unit of a thousand, with two digits or more that count.
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

/// How large a database and its gateways are to be, for so many devices and pushes; pure arithmetic on
/// `MeasuredCosts`.
package struct ClusterSize: Hashable, Sendable {
    /// What is asked for.
    package struct Load: Hashable, Sendable {
        package var devices: Double
        /// Pushes a second, at the peak.
        package var rate: Double
        /// Bytes of a payload.
        package var payload: Double
        /// Days of the delivery log.
        package var history: Double

        package init(devices: Double, rate: Double, payload: Double = 200, history: Double = 7) {
            self.devices = devices
            self.rate = rate
            self.payload = payload
            self.history = history
        }
    }

    /// What one primary has no more of.
    package enum Limit: String, CaseIterable, Hashable, Sendable {
        case processors, log, devices
    }

    package let load: Load
    /// Launches a second, at the most: a device has one in 15 minutes, and no more than it has pushes.
    package let launches: Double

    package init(_ load: Load) {
        self.load = load
        self.launches = min(load.rate, load.devices / 900)
    }

    // MARK: Gateways

    /// Gateways of `gatewayCores` cores: two for the load when one is gone, or more.
    package var gateways: Int {
        let each = MeasuredCosts.pushesPerGatewayCore * MeasuredCosts.planned * Double(Self.gatewayCores)
        return max(1, Int((self.load.rate / each).rounded(.up))) + 1
    }

    /// A gateway decides on one thread, beside which others read, write and encrypt.
    package static let gatewayCores = 4

    /// Connections of all gateways and operators to the primary.
    package var connections: Int { self.gateways * Self.connectionsPerGateway + 20 }

    /// 8 that commit, one that controls, one that shares topics and notices, one that reads for questions, and up to 2
    /// that read the delivery log or check.
    package static let connectionsPerGateway = 13

    // MARK: The database

    /// Cores of each node.
    package var cores: Int {
        let push = MeasuredCosts.databaseMicrosecondsPerPush * self.load.rate
        let launch = MeasuredCosts.databaseMicrosecondsPerLaunch * self.launches
        return max(2, Int(((push + launch) / 1_000_000 / MeasuredCosts.planned).rounded(.up)))
    }

    /// Bytes of the devices' tables and their indexes.
    package var deviceBytes: Double {
        let row = self.rowBytes / MeasuredCosts.fillFactor * MeasuredCosts.deviceGrowth
        return self.load.devices * (row + MeasuredCosts.deviceIndexBytes + MeasuredCosts.dueBytes)
            + self.launches * MeasuredCosts.wakeSeconds * MeasuredCosts.wakeBytes
    }

    /// Bytes of the delivery log: an event for a push, and one each for a launch and its result.
    package var historyBytes: Double {
        let push = MeasuredCosts.eventBytes + MeasuredCosts.pushBytes
        let events = self.load.rate * push + self.launches * 2 * MeasuredCosts.eventBytes
        return events * self.load.history * 86_400
    }

    /// Bytes of write-ahead log a second.
    package var logBytes: Double {
        let push =
            MeasuredCosts.logBytesPerPush + self.load.payload
            + self.wholePages * MeasuredCosts.logBytesPerPage
        return self.load.rate * push + self.launches * MeasuredCosts.logBytesPerLaunch
    }

    /// Pages that a push is the first to write to since the last checkpoint, on average: all, where the devices are
    /// many and the pushes few; next to none where the same pages are written again and again.
    private var wholePages: Double {
        let pages = (self.deviceBytes + self.load.devices * MeasuredCosts.pushBytes) / MeasuredCosts.pageBytes
        let writes = self.load.rate * MeasuredCosts.checkpointSeconds * MeasuredCosts.pagesPerPush
        guard pages > 0, writes > 0 else { return 0 }
        return pages * (1 - exp(-writes / pages)) / writes * MeasuredCosts.pagesPerPush
    }

    /// Bytes of write-ahead log that lie on the disk, at the most: those of two checkpoints and a half.
    package var logDiskBytes: Double { max(2_000_000_000, self.logBytes * MeasuredCosts.checkpointSeconds * 2.5) }

    /// Bytes of each node's disk, of which a third stays free.
    package var diskBytes: Double { (self.deviceBytes + self.historyBytes + self.logDiskBytes) * 1.5 }

    /// Bytes of memory in which what is written all the time fits: a tenth of the devices, and the indexes.
    package var memoryBytes: Double {
        let indexes = self.load.devices * (MeasuredCosts.deviceIndexBytes + 172)
        return max(4_000_000_000, (self.deviceBytes * 0.1 + indexes) * 2)
    }

    private var rowBytes: Double { MeasuredCosts.deviceBytes + self.load.payload }

    // MARK: Where one primary ends

    /// What one primary has too little of; empty when one does.
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

    /// Into how many databases the devices would be divided by their tokens.
    package var databases: Int {
        var count = 1
        while count < 1 << 20, !self.part(of: count).limits.isEmpty { count *= 2 }
        return count
    }

    /// The size of one of `databases` that have an equal part of the devices each.
    package func part(of databases: Int) -> ClusterSize {
        var part = self.load
        part.devices /= Double(databases)
        part.rate /= Double(databases)
        return ClusterSize(part)
    }
}

/// What a push costs on PostgreSQL, as it was measured, and by what.
///
/// Sources: "CLUSTER.md" is the design's table (2 cores, PostgreSQL 15.18, a disk whose commits take 5 ms); "bench" is
/// `deploy/bench --only cluster` on 2 cores; "tables" is a database of 10,000 devices with payloads of 192 bytes, after
/// ten pushes to each, as `pg_relation_size`, `pg_waldump --stats` and `avg(length(record))` tell.
enum MeasuredCosts {
    // MARK: Processors, in microseconds of one core

    /// PostgreSQL's for a push. Bench, beside other work: 18 to 25 with one to three gateways, the bare transaction 18
    /// to 19.
    static let databaseMicrosecondsPerPush = 25.0
    /// PostgreSQL's for a launch and its result. Bench, beside other work: claims of 20,000 wakes.
    static let databaseMicrosecondsPerLaunch = 67.0
    /// Pushes a second of one gateway and core. CLUSTER.md: its target of 0.6 of the bare transaction, which does
    /// 119,000 rows a second on 2 cores that PostgreSQL shares.
    static let pushesPerGatewayCore = 35_000.0

    // MARK: Tables, in bytes

    /// A device's row beside its payload: 106 of the record, 112 of everything else. Tables.
    static let deviceBytes = 218.0
    /// The part of a page that is filled when a row is first put there; the schema's fillfactor.
    static let fillFactor = 0.7
    /// How much larger the table is than the rows it was filled with. Tables: 1,111 bytes a device for 586.
    static let deviceGrowth = 1.9
    /// A row's entry of `device_pkey`. Tables.
    static let deviceIndexBytes = 80.0
    /// A row of `due` with its two indexes. Tables: 347 and 172.
    static let dueBytes = 520.0
    /// A row of `wake` with its three indexes. Tables: 2,300 launches.
    static let wakeBytes = 380.0
    /// For how long an ended wake stays, in seconds; the schema's.
    static let wakeSeconds = 600.0
    /// A row of `event`, its index included. Tables: 134 and 1.
    static let eventBytes = 135.0
    /// A row of `push`, its index included. Tables: 60 and 1.
    static let pushBytes = 61.0

    // MARK: Write-ahead log, in bytes

    /// Of a push beside its payload. Tables: 560 with a payload of 192.
    static let logBytesPerPush = 368.0
    /// Of a launch and its result. Tables: 7.2 MB for 2,307.
    static let logBytesPerLaunch = 3_100.0
    /// Of a page that is written whole, the first time after a checkpoint, with `wal_compression`. An assumption: half.
    static let logBytesPerPage = 4_096.0
    /// Pages at random places that a push writes to: of `device`, `due`, and its primary key.
    static let pagesPerPush = 3.0
    static let pageBytes = 8_192.0
    /// Between two checkpoints, in seconds; `deploy/postgresql/wakegate.conf`.
    static let checkpointSeconds = 900.0

    // MARK: Bounds

    /// The part of a processor that is planned to be busy: the rest is for vacuum, peaks, and a node or gateway less.
    static let planned = 0.5
    /// Lock-read-upsert rows a second of one server on 2 cores, at the most. CLUSTER.md: 119,000 to 151,000 where
    /// nothing but the row changes, 88,000 with 2 million devices and an index that changes.
    static let rowsPerSecondOnTwoCores = 88_000.0
    /// The cores of one primary up to which its rate is taken to grow with them. An assumption: 32.
    static let primaryCores = 32.0
    /// The write-ahead log that one primary sends and each standby replays, a second. An assumption: replay is one
    /// process.
    static let logBytesPerSecondMax = 200_000_000.0
    /// The most devices of one database. An assumption: vacuum of one table is one process, and has to come round.
    static let devicesMax = 300_000_000.0
}
