package import Policy
package import Wire

/// The position of a device in the device table. It never changes while the engine runs.
package struct DeviceIndex: Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The position of no device, which marks the end of a list.
    static var none: DeviceIndex { DeviceIndex(rawValue: .max) }
}

/// The table of all devices: rows that never move, and a hash index by token.
///
/// Rows are stored in blocks of 1,024 and are never removed. The index uses open addressing with linear probing over
/// 8-byte cells (row number and 32 bits of the token's hash), at most three quarters full. Growth is incremental, so no
/// single step is slow: from five eighths full on, each insertion clears a few cells of the next index; after the
/// switch, each insertion moves a few cells of the previous index.
@safe
package struct DeviceTable: ~Copyable {
    private static let blockShift = 10
    private static let blockCount = 1 << 10

    private struct Cell {
        /// The row number plus 1; 0 marks a free cell.
        var row: UInt32
        var hash: UInt32
    }

    private var blocks: [UnsafeMutablePointer<DeviceRecord>] = unsafe []
    private var cells: UnsafeMutableBufferPointer<Cell>
    /// The previous index, until all of its cells are moved. The cells before `moved` are done.
    private var olderCells: UnsafeMutableBufferPointer<Cell>
    private var moved = 0
    /// The number of cells moved per insertion. Two would suffice to finish in time.
    private static let movesPerRow = 8
    /// The next index. The cells before `cleared` are free; the others are uninitialized.
    private var nextCells: UnsafeMutableBufferPointer<Cell>
    private var cleared = 0
    /// The number of cells cleared per insertion. 16 suffice to finish in time.
    private static let clearsPerRow = 16
    /// The hash key. It prevents clients from choosing tokens that collide.
    private let key: HashKey
    /// The number of devices. Their rows are numbered from 0.
    package private(set) var count = 0
    /// The devices whose rows have changed, each once.
    private var changed: [DeviceIndex] = []
    /// True for each row number that `place` has filled; empty after `finishPlacing`.
    private var isPlaced: [Bool] = []
    /// An upper bound of row numbers, larger than any configuration allows.
    private static let placesMax = 1 << 30
    /// The devices by the beginnings of their tokens. Searches add the devices.
    private var buckets = TokenBuckets()
    /// The devices whose pushes have been pending longest. Searches begin it.
    private var waiting = LongestWaiting()

    /// Creates an empty table.
    ///
    /// - Parameter key: the key of the hash of tokens.
    package init(key: HashKey) {
        self.key = key
        unsafe self.olderCells = .init(start: nil, count: 0)
        unsafe self.nextCells = .init(start: nil, count: 0)
        unsafe self.cells = .allocate(capacity: 1024)
        unsafe self.cells.initialize(repeating: Cell(row: 0, hash: 0))
    }

    deinit {
        for number in 0..<self.count {
            let record = unsafe self.blocks[number >> Self.blockShift] + (number & (Self.blockCount - 1))
            unsafe record.pointee.deallocate()
        }
        for number in unsafe self.blocks.indices { unsafe self.blocks[number].deallocate() }
        unsafe self.cells.deallocate()
        unsafe self.olderCells.deallocate()
        unsafe self.nextCells.deallocate()
    }

    /// The row of a device that is in the table.
    package subscript(device: DeviceIndex) -> DeviceRecord {
        // `_read` would be unsafe in debug builds of Swift 6.3: it yields a copy in the coroutine's frame, and the
        // caller reads a field of the copy after the frame is freed.
        unsafeAddress {
            precondition(Int(device.rawValue) < self.count, "no such device")
            return unsafe UnsafePointer(self.row(device))
        }
        unsafeMutableAddress {
            precondition(Int(device.rawValue) < self.count, "no such device")
            return unsafe self.row(device)
        }
    }

    /// Notes that the stored form of a device has changed.
    package mutating func noteChange(_ device: DeviceIndex) {
        guard !self[device].isChanged else { return }
        self[device].isChanged = true
        self.changed.append(device)
    }

    /// True if a row has changed since the last call of `takeChanges`.
    package var hasChanges: Bool { !self.changed.isEmpty }

    /// Returns the devices whose rows changed since the last call, each once.
    package mutating func takeChanges() -> [DeviceIndex] {
        for device in self.changed { self[device].isChanged = false }
        defer { self.changed.removeAll(keepingCapacity: true) }
        return self.changed
    }

    /// Appends the rows that changed since the last call to `batch`, in their stored form as of `now`.
    package mutating func takeChanges(into batch: inout RecordBatch, at now: Instant) {
        for device in self.changed {
            self[device].isChanged = false
            batch.append(RecordKey(.device, device.rawValue)) { self[device].store(to: &$0, at: now) }
        }
        self.changed.removeAll(keepingCapacity: true)
    }

    /// Returns the device with this token, or nil.
    ///
    /// - `hash`: the token's hash under the table's key.
    package func find(_ token: borrowing DeviceToken, hash: UInt64) -> DeviceIndex? {
        if let device = unsafe self.find(token, hash, in: self.cells) { return device }
        return unsafe self.olderCells.isEmpty ? nil : self.find(token, hash, in: self.olderCells)
    }

    private func find(
        _ token: borrowing DeviceToken,
        _ hash: UInt64,
        in cells: UnsafeMutableBufferPointer<Cell>
    ) -> DeviceIndex? {
        let mask = cells.count - 1
        var place = Int(truncatingIfNeeded: hash) & mask
        while true {
            let cell = unsafe cells[place]
            guard cell.row != 0 else { return nil }
            if cell.hash == UInt32(truncatingIfNeeded: hash >> 32) {
                let device = DeviceIndex(rawValue: cell.row - 1)
                if unsafe self.row(device).pointee.token.matches(token) { return device }
            }
            place = (place + 1) & mask
        }
    }

    /// Returns the device whose token has this hash under the table's key, or nil.
    func find(hash: UInt64) -> DeviceIndex? {
        if let device = unsafe self.find(hash: hash, in: self.cells) { return device }
        return unsafe self.olderCells.isEmpty ? nil : self.find(hash: hash, in: self.olderCells)
    }

    private func find(hash: UInt64, in cells: UnsafeMutableBufferPointer<Cell>) -> DeviceIndex? {
        let mask = cells.count - 1
        var place = Int(truncatingIfNeeded: hash) & mask
        while true {
            let cell = unsafe cells[place]
            guard cell.row != 0 else { return nil }
            if cell.hash == UInt32(truncatingIfNeeded: hash >> 32) {
                let device = DeviceIndex(rawValue: cell.row - 1)
                if self.key.hash(unsafe self.row(device).pointee.token.token) == hash { return device }
            }
            place = (place + 1) & mask
        }
    }

    /// Adds a device whose token is not in the table.
    package mutating func insert(_ record: DeviceRecord) -> DeviceIndex {
        self.insert(record, hash: self.key.hash(record.token.token))
    }

    /// Adds a device whose token is not in the table.
    ///
    /// - `hash`: the token's hash under the table's key.
    @inline(__always)
    mutating func insert(_ record: DeviceRecord, hash: UInt64) -> DeviceIndex {
        if unsafe (self.count + 1) * 4 > self.cells.count * 3 { self.grow() }
        if unsafe self.count >> Self.blockShift == self.blocks.count {
            unsafe self.blocks.append(.allocate(capacity: Self.blockCount))
        }
        let device = DeviceIndex(rawValue: UInt32(self.count))
        self.count += 1
        unsafe self.row(device).initialize(to: record)
        self.link(device, hash: hash)
        self.moveCells(Self.movesPerRow)
        if unsafe self.count * 8 > self.cells.count * 5 { self.clearNext(Self.clearsPerRow) }
        return device
    }

    /// Restores a stored record at its former position, in any order. It can be found after `finishPlacing`.
    ///
    /// - Returns: false if the position is taken or out of range.
    mutating func place(_ record: DeviceRecord, at number: UInt32) -> Bool {
        guard Int(number) < Self.placesMax else { return false }
        while unsafe Int(number) >> Self.blockShift >= self.blocks.count {
            unsafe self.blocks.append(.allocate(capacity: Self.blockCount))
        }
        if Int(number) >= self.isPlaced.count {
            self.isPlaced.append(contentsOf: repeatElement(false, count: Int(number) + 1 - self.isPlaced.count))
        }
        guard !self.isPlaced[Int(number)] else { return false }
        self.isPlaced[Int(number)] = true
        unsafe self.row(DeviceIndex(rawValue: number)).initialize(to: record)
        return true
    }

    /// Builds the index of all placed records.
    ///
    /// - Returns: false if a position is missing; the table must then not be used.
    mutating func finishPlacing() -> Bool {
        guard self.isPlaced.allSatisfy({ $0 }) else { return false }
        self.count = self.isPlaced.count
        self.isPlaced = []
        var capacity = unsafe self.cells.count
        while (self.count + 1) * 4 > capacity * 3 { capacity *= 2 }
        self.makeIndex(capacity: capacity)
        return true
    }

    /// The maximum number of index cells that `removeAll` keeps: enough for 3,000 devices.
    private static let cellsKeptMax = 4096

    /// Removes every device and frees the memory that its row owns. Keeps the blocks of rows, and an index of up to
    /// `cellsKeptMax` cells.
    mutating func removeAll() {
        for number in 0..<self.count {
            unsafe self.row(DeviceIndex(rawValue: UInt32(number))).pointee.deallocate()
        }
        self.count = 0
        self.changed.removeAll(keepingCapacity: true)
        self.buckets = TokenBuckets()
        self.waiting = LongestWaiting()
        unsafe self.olderCells.deallocate()
        unsafe self.olderCells = .init(start: nil, count: 0)
        unsafe self.nextCells.deallocate()
        unsafe self.nextCells = .init(start: nil, count: 0)
        if unsafe self.cells.count > Self.cellsKeptMax {
            self.makeIndex(capacity: 1024)
        } else {
            unsafe self.cells.update(repeating: Cell(row: 0, hash: 0))
        }
    }

    private func row(_ device: DeviceIndex) -> UnsafeMutablePointer<DeviceRecord> {
        let number = Int(device.rawValue)
        return unsafe self.blocks[number >> Self.blockShift] + (number & (Self.blockCount - 1))
    }

    private func link(_ device: DeviceIndex, hash: UInt64) {
        let mask = unsafe self.cells.count - 1
        var place = Int(truncatingIfNeeded: hash) & mask
        while unsafe self.cells[place].row != 0 { place = (place + 1) & mask }
        unsafe self.cells[place] = Cell(row: device.rawValue + 1, hash: UInt32(truncatingIfNeeded: hash >> 32))
    }

    /// Initializes cells of the next index, which is twice as large as the current one.
    private mutating func clearNext(_ count: Int) {
        if unsafe self.nextCells.isEmpty {
            unsafe self.nextCells = .allocate(capacity: self.cells.count * 2)
            self.cleared = 0
        }
        let end = unsafe min(self.cleared + count, self.nextCells.count)
        for place in self.cleared..<end {
            unsafe self.nextCells.initializeElement(at: place, to: Cell(row: 0, hash: 0))
        }
        self.cleared = end
    }

    /// Switches to the next index. The cells of the previous one are moved incrementally.
    private mutating func grow() {
        unsafe self.moveCells(self.olderCells.count)
        unsafe self.clearNext(self.cells.count * 2)
        unsafe self.olderCells = self.cells
        self.moved = 0
        unsafe self.cells = self.nextCells
        unsafe self.nextCells = .init(start: nil, count: 0)
    }

    private mutating func moveCells(_ count: Int) {
        guard unsafe !self.olderCells.isEmpty else { return }
        let end = unsafe min(self.moved + count, self.olderCells.count)
        for place in self.moved..<end {
            let row = unsafe self.olderCells[place].row
            guard row != 0 else { continue }
            let device = DeviceIndex(rawValue: row - 1)
            self.link(device, hash: self.key.hash(unsafe self.row(device).pointee.token.token))
        }
        self.moved = end
        guard unsafe self.moved == self.olderCells.count else { return }
        unsafe self.olderCells.deallocate()
        unsafe self.olderCells = .init(start: nil, count: 0)
    }

    private mutating func makeIndex(capacity: Int) {
        unsafe self.cells.deallocate()
        unsafe self.cells = .allocate(capacity: capacity)
        unsafe self.cells.initialize(repeating: Cell(row: 0, hash: 0))
        for number in 0..<self.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            self.link(device, hash: self.key.hash(unsafe self.row(device).pointee.token.token))
        }
    }
}

// MARK: - Order of tokens

/// The devices of a table in buckets by the first two bytes of their tokens; four bytes a device.
///
/// The buckets are in the order of tokens, the devices within a bucket are not. If clients choose tokens with equal
/// beginnings, a search reads a long bucket in many steps.
struct TokenBuckets {
    static let count = 1 << 16

    /// Returns the bucket of a token with this beginning.
    static func bucket(_ beginning: UInt64) -> Int { Int(beginning >> 48) }

    /// The row number of the last device of each bucket. Empty before the first search.
    fileprivate var last: [UInt32] = []
    /// The row number of the previous device in the same bucket, for each row.
    fileprivate var previous: [UInt32] = []
}

extension DeviceTable {
    /// Adds at most `countMax` devices to the buckets.
    ///
    /// - Returns: true if the buckets contain all devices.
    mutating func addToBuckets(countMax: Int) -> Bool {
        if self.buckets.last.isEmpty {
            self.buckets.last = Array(repeating: DeviceIndex.none.rawValue, count: TokenBuckets.count)
            self.buckets.previous.reserveCapacity(2 * self.count)
        }
        let first = self.buckets.previous.count
        for number in first..<first + min(self.count - first, countMax) {
            let bucket = TokenBuckets.bucket(self[DeviceIndex(rawValue: UInt32(number))].token.beginning)
            self.buckets.previous.append(self.buckets.last[bucket])
            self.buckets.last[bucket] = UInt32(number)
        }
        return self.buckets.previous.count == self.count
    }

    /// Returns the last device of a bucket; `none` if the bucket is empty.
    func last(inBucket bucket: Int) -> DeviceIndex { DeviceIndex(rawValue: self.buckets.last[bucket]) }

    /// Returns the device before `device` in its bucket; `none` if it is the first.
    func previous(of device: DeviceIndex) -> DeviceIndex {
        DeviceIndex(rawValue: self.buckets.previous[Int(device.rawValue)])
    }
}

// MARK: - Order of waiting

/// The devices of a table whose pushes have been pending longest; about fifty kilobytes.
///
/// Empty until a search begins it. Then it contains each device with a pending push that is before `horizon` in the
/// order of lists. Other members have launched since; they are removed when the set is full.
struct LongestWaiting {
    /// The number of devices to which a full set is reduced.
    fileprivate static let countMin = 2048

    /// A device and its place in the order of lists.
    struct Member: Comparable {
        /// The arrival of the oldest push pending for the device.
        let since: Instant
        /// The first bytes of the device's token.
        let beginning: UInt64
        let device: DeviceIndex

        static func < (left: Self, right: Self) -> Bool {
            (left.since, left.beginning) < (right.since, right.beginning)
        }
    }

    fileprivate var devices: Set<DeviceIndex> = []
    fileprivate var horizon = Member(since: .distantPast, beginning: 0, device: .none)
    /// The number of rows that the search has examined; nil if it has examined all.
    fileprivate var examined: Int? = 0
}

extension DeviceTable {
    /// True if the set contains all devices with a pending push.
    var hasAllWaiting: Bool { self.waiting.examined == nil && self.waiting.horizon.since == .distantFuture }

    /// Notes that the oldest push pending for a device arrived at `since`.
    @inline(__always)
    mutating func noteWaiting(_ device: DeviceIndex, since: Instant) {
        if since <= self.waiting.horizon.since { self.addWaiting(device) }
    }

    @inline(never)
    private mutating func addWaiting(_ device: DeviceIndex) {
        let isNew = self.waiting.devices.insert(device).inserted
        guard isNew, self.waiting.devices.count >= 2 * LongestWaiting.countMin else { return }
        var members = self.longestWaiting()
        if members.count > LongestWaiting.countMin {
            members.sort()
            self.waiting.horizon = members[LongestWaiting.countMin]
            members.removeSubrange(LongestWaiting.countMin...)
        }
        self.waiting.devices = Set(members.lazy.map(\.device))
    }

    /// Examines at most `countMax` devices, and adds those that have been waiting longest to the set.
    ///
    /// - Returns: true if all devices were examined.
    mutating func addToWaiting(countMax: Int) -> Bool {
        guard let first = self.waiting.examined else { return true }
        if first == 0 {
            self.waiting.horizon = LongestWaiting.Member(since: .distantFuture, beginning: .max, device: .none)
        }
        let end = first + min(max(0, self.count - first), countMax)
        for number in first..<end {
            let device = DeviceIndex(rawValue: UInt32(number))
            if let pending = self[device].state.pending { self.noteWaiting(device, since: pending.firstReceivedAt) }
        }
        self.waiting.examined = end < self.count ? end : nil
        return end == self.count
    }

    /// Lets the next search fill the set again if it has become small.
    mutating func refillWaiting() {
        if self.longestWaiting().count < LongestWaiting.countMin { self.waiting.examined = 0 }
    }

    /// Returns the members before the horizon, in any order.
    func longestWaiting() -> [LongestWaiting.Member] {
        self.waiting.devices.compactMap { device in
            guard let pending = self[device].state.pending else { return nil }
            let beginning = self[device].token.beginning
            let member = LongestWaiting.Member(since: pending.firstReceivedAt, beginning: beginning, device: device)
            return member < self.waiting.horizon ? member : nil
        }
    }
}

extension DeviceToken {
    /// Returns true if the token sorts before `other` by its bytes, as in a database.
    package func isBefore(_ other: DeviceToken) -> Bool {
        let (beginning, others) = (self.beginning, other.beginning)
        guard beginning == others else { return beginning < others }
        return self.withBytes { bytes in
            other.withBytes { bytes.array.lexicographicallyPrecedes($0.array) }
        }
    }
}
