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
