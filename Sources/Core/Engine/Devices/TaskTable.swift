import Policy
import Wire

/// The task rows of devices that have requests, sessions or habits. Other devices use no memory in this table.
struct TaskTable: ~Copyable {
    /// 256 dictionaries, chosen by the device's number, so that growth of a dictionary moves only a few entries.
    private var shards = [[DeviceIndex: Int]](repeating: [:], count: 256)
    /// The rows, with nil at free positions. Unlike the order of a dictionary, their order is the same in every
    /// process.
    private var rows: [(device: DeviceIndex, row: TaskRow)?] = []
    private var unused: [Int] = []
    /// Devices whose rows have changed or were removed, each once.
    private var changed: [DeviceIndex] = []
    /// Devices in `changed` whose row was removed.
    private var gone: Set<DeviceIndex> = []
    /// Devices with reported progress that is not in `changed` yet. A device may occur twice, or its progress may
    /// already be stored.
    private var progressed: [DeviceIndex] = []
    /// The time at which delayed progress becomes a change; nil if there is none.
    private(set) var progressDue: Instant?

    var count: Int { self.rows.count - self.unused.count }

    /// The device's row; nil if it has none.
    subscript(device: DeviceIndex) -> TaskRow? {
        self.shards[Self.shard(device)][device].flatMap { self.rows[$0]?.row }
    }

    /// Returns the device's row, created if it has none.
    mutating func row(_ device: DeviceIndex) -> TaskRow {
        if let row = self[device] { return row }
        let row = TaskRow()
        self.insert(row, device)
        return row
    }

    mutating func insert(_ row: TaskRow, _ device: DeviceIndex) {
        let place = self.unused.popLast() ?? self.rows.count
        if place == self.rows.count { self.rows.append((device, row)) } else { self.rows[place] = (device, row) }
        self.shards[Self.shard(device)][device] = place
        // The device is already in `changed`, because its row was removed. The new row will be stored instead.
        if self.gone.remove(device) != nil { row.isChanged = true }
    }

    /// Removes a row that has become blank.
    mutating func remove(_ device: DeviceIndex) {
        guard let place = self.shards[Self.shard(device)].removeValue(forKey: device), let row = self.rows[place]?.row
        else { return }
        self.rows[place] = nil
        self.unused.append(place)
        guard row.isKept || row.isChanged else { return }
        self.gone.insert(device)
        if !row.isChanged { self.changed.append(device) }
    }

    /// Restores the record of a device's row. An empty record means no row.
    ///
    /// - Returns: false if the record is malformed or a duplicate.
    mutating func restore(_ device: DeviceIndex, _ content: ByteView) -> Bool {
        guard !content.isEmpty else { return true }
        guard self[device] == nil, let row = TaskRow(stored: content) else { return false }
        row.isKept = true
        self.insert(row, device)
        return true
    }

    /// Removes every row and every change.
    mutating func removeAll() {
        for case (let device, _)? in self.rows { self.shards[Self.shard(device)][device] = nil }
        self.rows.removeAll(keepingCapacity: true)
        self.unused.removeAll(keepingCapacity: true)
        self.changed.removeAll(keepingCapacity: true)
        if !self.gone.isEmpty { self.gone.removeAll() }
        self.progressed.removeAll(keepingCapacity: true)
        self.progressDue = nil
    }

    /// Returns true if every row belongs to a device with a number below `count`.
    func isOfDevices(below count: Int) -> Bool { self.rows.allSatisfy { Int($0?.device.rawValue ?? 0) < count } }

    /// Returns the rows at `countMax` positions from `first` on; fewer at the end.
    func places(from first: Int, countMax: Int) -> ArraySlice<(device: DeviceIndex, row: TaskRow)?> {
        self.rows[min(first, self.rows.count)...].prefix(countMax)
    }

    private static func shard(_ device: DeviceIndex) -> Int { Int(device.rawValue & 255) }
}

// MARK: - Storing

extension TaskTable {
    /// The time after which reported progress becomes a change, in milliseconds. A crash may lose one second of
    /// progress; the remaining 250 milliseconds are for the commit and for a commit before it.
    static let progressInterval: Int64 = 750

    /// Returns true if a row has changed since the last call of `takeChanges`, or delayed progress is due.
    func hasChanges(at now: Instant) -> Bool {
        !self.changed.isEmpty || self.progressDue.map { $0 <= now } ?? false
    }

    /// Notes that the stored form of a device's row has changed.
    mutating func noteChange(_ device: DeviceIndex, _ row: TaskRow) {
        guard !row.isChanged else { return }
        row.isChanged = true
        self.changed.append(device)
    }

    /// Notes that a task reported progress. The progress is stored with the next other change of the row, or after
    /// `progressInterval`.
    mutating func noteProgress(_ device: DeviceIndex, _ row: TaskRow, at now: Instant) {
        guard !row.isChanged, !row.isAhead else { return }
        row.isAhead = true
        self.progressed.append(device)
        if self.progressDue == nil { self.progressDue = now + Self.progressInterval }
    }

    /// Makes all delayed progress a change.
    mutating func flushProgress() {
        for device in self.progressed {
            if let row = self[device], row.isAhead { self.noteChange(device, row) }
        }
        self.progressed.removeAll(keepingCapacity: true)
        self.progressDue = nil
    }

    /// Makes delayed progress a change if it is due.
    mutating func progressPassed(_ now: Instant) {
        if let due = self.progressDue, due <= now { self.flushProgress() }
    }

    /// Returns the devices whose rows changed or were removed since the last call, each once.
    mutating func takeChanges() -> [DeviceIndex] {
        for device in self.changed {
            guard let row = self[device] else { continue }
            row.isChanged = false
            row.isAhead = false
            row.isKept = true
        }
        defer {
            self.changed.removeAll(keepingCapacity: true)
            if !self.gone.isEmpty { self.gone.removeAll(keepingCapacity: true) }
        }
        return self.changed
    }

    /// Appends the changes since the last call as records. The record of a removed row is empty.
    mutating func takeChanges(into batch: inout RecordBatch) {
        for device in self.takeChanges() {
            batch.append(RecordKey(.tasks, device.rawValue)) { self[device]?.store(to: &$0) }
        }
    }
}
