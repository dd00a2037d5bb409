/// What streams of one topic are still to hear of conditions that have changed.
///
/// A stream that names devices keeps which of them have changed. All others read one log, in which each device stands
/// once, at its last change: whatever changes meanwhile, and however long a stream does not read, no more is kept than
/// one entry for each device, and one place in the log for each stream. Telling is done piece by piece.
struct ConditionsLog {
    /// What a stream has heard.
    struct Hearing {
        /// The place among the streams that name no device.
        fileprivate var place: Int?
        /// The last entry of the log that it was told.
        fileprivate var heard: UInt64 = 0
        /// Of a stream that names devices: which have changed since it was told, none twice.
        fileprivate var untold: [DeviceIndex] = []
        /// Whether it waits to be told.
        fileprivate var isQueued = false
    }

    private struct Entry {
        let number: UInt64
        let device: DeviceIndex
    }

    /// The most that a stream is told before it is the next one's turn.
    private static let turnMax = 64

    /// How many streams hear.
    private(set) var streamCount = 0
    /// The streams that name no device.
    private var streams: [Subscription] = []
    /// The streams that name devices and have something to hear.
    private var naming = FIFOQueue<Subscription>()
    private var log: [Entry] = []
    /// The number of each device's last entry: an earlier one says nothing.
    private var latest: [DeviceIndex: UInt64] = [:]
    private var lastNumber: UInt64 = 0
    /// The stream whose turn it is.
    private var turn = 0
    /// What it was told in this turn.
    private var toldInTurn = 0
    /// How many streams in a row are still to be found with nothing to hear.
    private var streamsLeft = 0
    /// How many of those in this row do not read, and are to hear later.
    private var laggards = 0

    /// No streams.
    init() {}

    /// Whether nobody has anything to hear that could be told now.
    var isDone: Bool { self.streamsLeft == 0 && self.naming.isEmpty }

    /// How often a stream that names devices has one of them to hear of.
    private(set) var untoldCount = 0

    /// Whether every stream has heard everything.
    var isEmpty: Bool { self.log.isEmpty && self.untoldCount == 0 }

    /// A new stream: it hears of what changes from now on.
    mutating func insert(_ stream: Subscription) {
        self.streamCount += 1
        guard stream.request.devices.isEmpty else { return }
        stream.hearing.place = self.streams.count
        stream.hearing.heard = self.lastNumber
        self.streams.append(stream)
        // The row that has begun is one longer: without that another stream would be passed over.
        if self.streamsLeft > 0 { self.streamsLeft += 1 }
    }

    /// Takes out a stream that has ended.
    mutating func remove(_ stream: Subscription) {
        self.streamCount -= 1
        self.untoldCount -= stream.hearing.untold.count
        stream.hearing.untold = []
        guard let place = stream.hearing.place else { return }
        stream.hearing.place = nil
        let last = self.streams.removeLast()
        if last !== stream {
            self.streams[place] = last
            last.hearing.place = place
        }
        if self.streams.isEmpty {
            self.streamsLeft = 0
            self.clear()
        } else if self.streamsLeft > 0 {
            // One that was moved may be passed over.
            self.beginRow()
        }
    }

    /// A stream's peer reads again.
    mutating func resumed(_ stream: Subscription) {
        if stream.hearing.place == nil {
            self.queue(stream)
        } else if stream.hearing.heard < self.lastNumber {
            self.beginRow()
        }
    }

    /// A device has changed: the streams that name none are to hear of it.
    mutating func append(_ device: DeviceIndex) {
        guard !self.streams.isEmpty else { return }
        self.lastNumber += 1
        self.latest[device] = self.lastNumber
        self.log.append(Entry(number: self.lastNumber, device: device))
        self.beginRow()
        guard self.log.count > 64, self.log.count > 2 * self.latest.count else { return }
        self.log.removeAll { self.latest[$0.device] != $0.number }
    }

    /// A device has changed that this stream names.
    mutating func append(_ device: DeviceIndex, for stream: Subscription) {
        if !stream.hearing.untold.contains(device) {
            stream.hearing.untold.append(device)
            self.untoldCount += 1
        }
        self.queue(stream)
    }

    /// Which stream is told of which device next.
    ///
    /// - `looksLeft`: how many streams and entries may still be looked at.
    /// - Returns: nil when nobody has anything to hear, or nothing more may be looked at.
    mutating func next(_ looksLeft: inout Int) -> (stream: Subscription, device: DeviceIndex)? {
        while looksLeft > 0, !self.isDone {
            looksLeft -= 1
            if let next = self.naming.isEmpty ? self.nextOfLog(&looksLeft) : self.nextNaming() { return next }
        }
        return nil
    }
}

// MARK: - Turns

extension ConditionsLog {
    private mutating func queue(_ stream: Subscription) {
        guard !stream.hearing.isQueued, !stream.isPaused, !stream.hearing.untold.isEmpty else { return }
        stream.hearing.isQueued = true
        self.naming.append(stream)
    }

    private mutating func nextNaming() -> (stream: Subscription, device: DeviceIndex)? {
        guard let stream = self.naming.first else { return nil }
        if !stream.hasEnded, !stream.isPaused, !stream.hearing.untold.isEmpty {
            self.untoldCount -= 1
            return (stream, stream.hearing.untold.removeFirst())
        }
        stream.hearing.isQueued = false
        _ = self.naming.popFirst()
        return nil
    }

    private mutating func nextOfLog(_ looksLeft: inout Int) -> (stream: Subscription, device: DeviceIndex)? {
        if self.turn >= self.streams.count { self.turn = 0 }
        let stream = self.streams[self.turn]
        guard !stream.isPaused else {
            if stream.hearing.heard < self.lastNumber { self.laggards += 1 }
            self.endTurn(isDone: true)
            return nil
        }
        guard self.toldInTurn < Self.turnMax else {
            self.endTurn(isDone: false)
            return nil
        }
        guard let device = self.unheard(stream, &looksLeft) else {
            self.endTurn(isDone: true)
            return nil
        }
        self.toldInTurn += 1
        return (stream, device)
    }

    private mutating func endTurn(isDone: Bool) {
        self.toldInTurn = 0
        self.turn += 1
        guard isDone else {
            self.beginRow()
            return
        }
        self.streamsLeft -= 1
        if self.streamsLeft == 0, self.laggards == 0 { self.clear() }
    }

    private mutating func beginRow() {
        self.streamsLeft = self.streams.count
        self.laggards = 0
    }

    /// Everybody has heard everything.
    private mutating func clear() {
        self.log = []
        self.latest = [:]
    }

    /// The next device that this stream did not hear of.
    private func unheard(_ stream: Subscription, _ looksLeft: inout Int) -> DeviceIndex? {
        guard stream.hearing.heard < self.lastNumber else { return nil }
        var (low, high) = (0, self.log.count)
        while low < high {
            let middle = (low + high) / 2
            if self.log[middle].number <= stream.hearing.heard { low = middle + 1 } else { high = middle }
        }
        for entry in self.log[low...] {
            stream.hearing.heard = entry.number
            if self.latest[entry.device] == entry.number { return entry.device }
            looksLeft -= 1
        }
        stream.hearing.heard = self.lastNumber
        return nil
    }
}
