import Policy
import Wire

/// The rows of those devices that have requests, sessions or habits; the others cost nothing.
struct TaskTable: ~Copyable {
    /// One of 256 dictionaries, which a device's number chooses: when one grows, few places are moved.
    private var shards = [[DeviceIndex: Int]](repeating: [:], count: 256)
    /// Rows in an order that does not hang on the process, and places that are free.
    private var rows: [(device: DeviceIndex, row: TaskRow)?] = []
    private var unused: [Int] = []
    /// The devices whose rows have changed or gone, each once.
    private var changed: [DeviceIndex] = []
    /// The devices in `changed` that have no row any more.
    private var gone: Set<DeviceIndex> = []
    /// Devices in whose rows progress was told that is not among the changes yet; one may be there again, and may have
    /// been stored meanwhile.
    private var told: [DeviceIndex] = []
    /// When that comes among the changes; nil when there is none.
    private(set) var progressDue: Instant?

    /// How many rows there are.
    var count: Int { self.rows.count - self.unused.count }

    /// The device's row; nil when it has none.
    subscript(device: DeviceIndex) -> TaskRow? {
        self.shards[Self.shard(device)][device].flatMap { self.rows[$0]?.row }
    }

    /// The device's row, made when it has none.
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
        // A store that was to hear that it is gone hears of the new one instead.
        if self.gone.remove(device) != nil { row.isChanged = true }
    }

    /// Lets go of a row that has nothing to keep any more.
    mutating func remove(_ device: DeviceIndex) {
        guard let place = self.shards[Self.shard(device)].removeValue(forKey: device), let row = self.rows[place]?.row
        else { return }
        self.rows[place] = nil
        self.unused.append(place)
        guard row.isKept || row.isChanged else { return }
        self.gone.insert(device)
        if !row.isChanged { self.changed.append(device) }
    }

    /// Takes the record of a device's row; an empty one says that it has none.
    ///
    /// - Returns: false when it is none that `takeChanges` wrote, or is there twice.
    mutating func restore(_ device: DeviceIndex, _ content: ByteView) -> Bool {
        guard !content.isEmpty else { return true }
        guard self[device] == nil, let row = TaskRow(stored: content) else { return false }
        row.isKept = true
        self.insert(row, device)
        return true
    }

    /// Forgets every row and every change.
    mutating func removeAll() {
        for case (let device, _)? in self.rows { self.shards[Self.shard(device)][device] = nil }
        self.rows.removeAll(keepingCapacity: true)
        self.unused.removeAll(keepingCapacity: true)
        self.changed.removeAll(keepingCapacity: true)
        if !self.gone.isEmpty { self.gone.removeAll() }
        self.told.removeAll(keepingCapacity: true)
        self.progressDue = nil
    }

    /// Whether each row is of one of so many devices.
    func isOfDevices(below count: Int) -> Bool { self.rows.allSatisfy { Int($0?.device.rawValue ?? 0) < count } }

    /// How many names are kept for the device's requests and sessions.
    func nameCount(_ device: DeviceIndex) -> Int { self[device]?.nameCount ?? 0 }

    /// Hands over every row, until `body` says that it is enough.
    func visit(_ body: (DeviceIndex, TaskRow) -> Bool) {
        for case (let device, let row)? in self.rows where !body(device, row) { return }
    }

    private static func shard(_ device: DeviceIndex) -> Int { Int(device.rawValue & 255) }
}

// MARK: - Keeping

extension TaskTable {
    /// How long a store may be without progress that was told, in milliseconds. The rest of the second that a crash may
    /// cost is for the commit that takes it and for one that is under way.
    static let progressInterval: Int64 = 750

    /// Whether a row changed since changes were last taken, or told of progress so long ago that it counts as a change.
    func hasChanges(at now: Instant) -> Bool {
        !self.changed.isEmpty || self.progressDue.map { $0 <= now } ?? false
    }

    /// What a store has to keep of a device's row has changed.
    mutating func noteChange(_ device: DeviceIndex, _ row: TaskRow) {
        guard !row.isChanged else { return }
        row.isChanged = true
        self.changed.append(device)
    }

    /// A task of a device's row told of progress: the row changes with the next change of another kind, or within
    /// `progressInterval`, whichever comes first.
    mutating func noteProgress(_ device: DeviceIndex, _ row: TaskRow, at now: Instant) {
        guard !row.isChanged, !row.isAhead else { return }
        row.isAhead = true
        self.told.append(device)
        if self.progressDue == nil { self.progressDue = now + Self.progressInterval }
    }

    /// Progress that was told counts as a change from here on.
    mutating func hurryProgress() {
        for device in self.told {
            if let row = self[device], row.isAhead { self.noteChange(device, row) }
        }
        self.told.removeAll(keepingCapacity: true)
        self.progressDue = nil
    }

    /// Progress that was told long enough ago counts as a change from here on.
    mutating func progressPassed(_ now: Instant) {
        if let due = self.progressDue, due <= now { self.hurryProgress() }
    }

    /// Takes the devices whose rows changed or went since changes were last taken, each once.
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

    /// Takes what changed since changes were last taken as records; that of a row that went is empty.
    mutating func takeChanges(into batch: inout RecordBatch) {
        for device in self.takeChanges() {
            batch.append(RecordKey(.tasks, device.rawValue)) { self[device]?.store(to: &$0) }
        }
    }
}
