import Bytes
import LaunchPolicy

/// All devices: rows that never move, and an index of them by token.
///
/// Rows lie in blocks of 1,024. The index is open addressing with linear probing over 8-byte cells (row number and
/// 32 bits of the token's hash), at most three quarters full; rows are never taken out.
@safe
struct DeviceTable: ~Copyable {
    private static let blockShift = 10
    private static let blockCount = 1 << 10

    private struct Cell {
        /// The row number plus 1; 0 is a free cell.
        var row: UInt32
        var hash: UInt32
    }

    private var blocks: [UnsafeMutablePointer<DeviceRecord>] = unsafe []
    private var cells: UnsafeMutableBufferPointer<Cell>
    /// Keeps strangers from choosing tokens that collide.
    private let seed: UInt64
    private(set) var count = 0
    /// Which rows were placed, until all are.
    private var isPlaced: [Bool] = []
    /// More rows than any configuration allows.
    private static let placesMax = 1 << 30

    init(seed: UInt64) {
        self.seed = seed
        unsafe self.cells = .allocate(capacity: 1024)
        unsafe self.cells.initialize(repeating: Cell(row: 0, hash: 0))
    }

    deinit {
        for number in 0..<self.count {
            let record = unsafe self.blocks[number >> Self.blockShift] + (number & (Self.blockCount - 1))
            unsafe record.pointee.state.pending.flatMap { PushContent($0.handle) }?.deallocate()
            unsafe record.pointee.state.inFlight.flatMap { PushContent($0.push.handle) }?.deallocate()
            unsafe record.pointee.token.deallocate()
            unsafe record.pointee.endedWakes.deallocate()
            unsafe record.pointee.answeredPushes.deallocate()
        }
        for number in unsafe self.blocks.indices { unsafe self.blocks[number].deallocate() }
        unsafe self.cells.deallocate()
    }

    subscript(device: DeviceIndex) -> DeviceRecord {
        // Addresses, not coroutines: in debug builds Swift 6.3 reads a field of what `_read` yielded after it has
        // freed the coroutine's frame, which holds a copy.
        unsafeAddress {
            precondition(Int(device.rawValue) < self.count, "no such device")
            return unsafe UnsafePointer(self.row(device))
        }
        unsafeMutableAddress {
            precondition(Int(device.rawValue) < self.count, "no such device")
            return unsafe self.row(device)
        }
    }

    /// The device with this token.
    func find(_ token: borrowing DeviceToken) -> DeviceIndex? {
        let hash = token.hash64(seed: self.seed)
        let mask = unsafe self.cells.count - 1
        var place = Int(truncatingIfNeeded: hash) & mask
        while true {
            let cell = unsafe self.cells[place]
            guard cell.row != 0 else { return nil }
            if cell.hash == UInt32(truncatingIfNeeded: hash >> 32) {
                let device = DeviceIndex(rawValue: cell.row - 1)
                if unsafe self.row(device).pointee.token.matches(token) { return device }
            }
            place = (place + 1) & mask
        }
    }

    /// Adds a device whose token is not there yet.
    mutating func insert(_ record: DeviceRecord) -> DeviceIndex {
        if unsafe (self.count + 1) * 4 > self.cells.count * 3 { unsafe self.makeIndex(capacity: self.cells.count * 2) }
        if unsafe self.count >> Self.blockShift == self.blocks.count {
            unsafe self.blocks.append(.allocate(capacity: Self.blockCount))
        }
        let device = DeviceIndex(rawValue: UInt32(self.count))
        self.count += 1
        unsafe self.row(device).initialize(to: record)
        self.link(device, hash: record.token.token.hash64(seed: self.seed))
        return device
    }

    /// Puts a record of a former life where it was, in any order; it is found after `finishPlacing`.
    ///
    /// - Returns: false when the place is taken, or farther than any table reaches.
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

    /// Makes every placed record findable.
    ///
    /// - Returns: false when a place before the last was left out; the table is then of no use.
    mutating func finishPlacing() -> Bool {
        guard self.isPlaced.allSatisfy({ $0 }) else { return false }
        self.count = self.isPlaced.count
        self.isPlaced = []
        var capacity = unsafe self.cells.count
        while (self.count + 1) * 4 > capacity * 3 { capacity *= 2 }
        self.makeIndex(capacity: capacity)
        return true
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

    private mutating func makeIndex(capacity: Int) {
        unsafe self.cells.deallocate()
        unsafe self.cells = .allocate(capacity: capacity)
        unsafe self.cells.initialize(repeating: Cell(row: 0, hash: 0))
        for number in 0..<self.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            self.link(device, hash: unsafe self.row(device).pointee.token.token.hash64(seed: self.seed))
        }
    }
}
