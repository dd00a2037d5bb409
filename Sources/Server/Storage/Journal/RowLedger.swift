/// The rows of the file, from the oldest to the newest, and how many of their bytes still count.
struct RowLedger: ~Copyable {
    struct Row: Hashable {
        /// What the row takes in the file, about.
        var bytes: UInt32
        /// The bytes of its records that are the newest of their keys.
        var liveBytes: UInt32
    }

    /// What a row takes in the file beside its content.
    static let overheadBytes = 32

    private var rows: [Row] = []
    /// The place of the oldest row; what lies before it is of rows that are gone.
    private var head = 0
    /// The id of the oldest row, or of the next one when there is none.
    private(set) var first: Int64 = 1
    private(set) var bytes = 0
    private(set) var liveBytes = 0

    init() {}

    /// - Parameter rows: from the oldest to the newest.
    init(rows: [Row], first: Int64) {
        self.rows = rows
        self.first = first
        for row in rows {
            self.bytes += Int(row.bytes)
            self.liveBytes += Int(row.liveBytes)
        }
    }

    var count: Int { self.rows.count - self.head }

    /// The id of the next row.
    var next: Int64 { self.first + Int64(self.count) }

    /// The bytes of records that are out of date.
    var deadBytes: Int { self.bytes - self.liveBytes }

    /// The oldest row.
    var oldest: Row? { self.count > 0 ? self.rows[self.head] : nil }

    mutating func append() {
        self.rows.append(Row(bytes: 0, liveBytes: 0))
    }

    /// Says how long the newest row became.
    mutating func setNewest(contentBytes: Int) {
        let bytes = contentBytes + Self.overheadBytes
        self.rows[self.rows.count - 1].bytes = UInt32(bytes)
        self.bytes += bytes
    }

    mutating func addLive(_ bytes: Int, row: Int64) {
        self.rows[self.head + Int(row - self.first)].liveBytes += UInt32(bytes)
        self.liveBytes += bytes
    }

    mutating func removeLive(_ bytes: Int, row: Int64) {
        self.rows[self.head + Int(row - self.first)].liveBytes -= UInt32(bytes)
        self.liveBytes -= bytes
    }

    mutating func dropOldest() {
        let row = self.rows[self.head]
        precondition(row.liveBytes == 0, "a row is dropped when none of its records counts")
        self.bytes -= Int(row.bytes)
        self.head += 1
        self.first += 1
        if self.head > 1024, self.head > self.rows.count / 2 {
            self.rows.removeFirst(self.head)
            self.head = 0
        }
    }
}
