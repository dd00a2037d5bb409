import Wire

/// The condition changes that streams of one topic have not received yet.
///
/// A stream that names devices has its own list of changed devices. All other streams read one log. Only the last entry
/// of each device counts, and obsolete entries are removed when they are the majority. Memory is therefore limited to
/// two entries per device and one position per stream, even if streams do not read for a long time. Each step sends a
/// limited number of changes.
struct ConditionsLog {
    /// The read state of one stream.
    struct ReadState {
        /// The index among the streams that name no device; nil for a stream that names devices.
        fileprivate var place: Int?
        /// The number of the last log entry that the stream received.
        fileprivate var lastRead: UInt64 = 0
        /// For a stream that names devices: the changed devices that were not sent yet, each once.
        fileprivate var unsent: [DeviceIndex] = []
        /// True if the stream is in the queue of streams to notify.
        fileprivate var isQueued = false
    }

    private struct Entry {
        let number: UInt64
        let device: DeviceIndex
    }

    /// The maximum number of changes sent to a stream in one turn.
    private static let turnMax = 64

    /// The number of streams that receive condition changes.
    private(set) var streamCount = 0
    /// The streams that name no device.
    private var streams: [Subscription] = []
    /// The streams that name devices and have unsent changes.
    private var naming = FIFOQueue<Subscription>()
    private var log: [Entry] = []
    /// The number of each device's last entry. Earlier entries of the device are obsolete.
    private var latest: [DeviceIndex: UInt64] = [:]
    private var lastNumber: UInt64 = 0
    /// The index of the stream whose turn it is.
    private var turn = 0
    /// The number of changes sent in this turn.
    private var sentInTurn = 0
    /// The number of further consecutive streams that must be up to date for the round to end.
    private var streamsLeft = 0
    /// The number of streams with unsent changes that do not read, as found in this round.
    private var laggards = 0

    /// True if no stream has a change that can be sent now.
    var isDone: Bool { self.streamsLeft == 0 && self.naming.isEmpty }

    /// The total number of unsent changes of streams that name devices.
    private(set) var unsentCount = 0

    /// True if every change was sent to every stream.
    var isEmpty: Bool { self.log.isEmpty && self.unsentCount == 0 }

    /// Adds a stream, which receives changes from now on.
    mutating func insert(_ stream: Subscription) {
        self.streamCount += 1
        guard stream.request.devices.isEmpty else { return }
        stream.conditionsRead.place = self.streams.count
        stream.conditionsRead.lastRead = self.lastNumber
        self.streams.append(stream)
        // The current round includes the new stream, so that it skips no other stream.
        if self.streamsLeft > 0 { self.streamsLeft += 1 }
    }

    /// Removes a stream that has ended.
    mutating func remove(_ stream: Subscription) {
        self.streamCount -= 1
        self.unsentCount -= stream.conditionsRead.unsent.count
        stream.conditionsRead.unsent = []
        guard let place = stream.conditionsRead.place else { return }
        stream.conditionsRead.place = nil
        let last = self.streams.removeLast()
        if last !== stream {
            self.streams[place] = last
            last.conditionsRead.place = place
        }
        if self.streams.isEmpty {
            self.streamsLeft = 0
            self.clear()
        } else if self.streamsLeft > 0 {
            // The moved stream could otherwise be skipped.
            self.beginRow()
        }
    }

    /// Notes that a stream's peer reads again.
    mutating func resumed(_ stream: Subscription) {
        if stream.conditionsRead.place == nil {
            self.queue(stream)
        } else if stream.conditionsRead.lastRead < self.lastNumber {
            self.beginRow()
        }
    }

    /// Adds a changed device for the streams that name no device.
    mutating func append(_ device: DeviceIndex) {
        guard !self.streams.isEmpty else { return }
        self.lastNumber += 1
        self.latest[device] = self.lastNumber
        self.log.append(Entry(number: self.lastNumber, device: device))
        self.beginRow()
        guard self.log.count > 64, self.log.count > 2 * self.latest.count else { return }
        self.log.removeAll { self.latest[$0.device] != $0.number }
    }

    /// Adds a changed device for a stream that names it.
    mutating func append(_ device: DeviceIndex, for stream: Subscription) {
        if !stream.conditionsRead.unsent.contains(device) {
            stream.conditionsRead.unsent.append(device)
            self.unsentCount += 1
        }
        self.queue(stream)
    }

    /// Returns the next device to send, and its stream.
    ///
    /// - `checksLeft`: the number of streams and entries that may still be examined.
    /// - Returns: nil if nothing can be sent now, or `checksLeft` is used up.
    mutating func next(_ checksLeft: inout Int) -> (stream: Subscription, device: DeviceIndex)? {
        while checksLeft > 0, !self.isDone {
            checksLeft -= 1
            if let next = self.naming.isEmpty ? self.nextOfLog(&checksLeft) : self.nextNaming() { return next }
        }
        return nil
    }
}

// MARK: - Turns

extension ConditionsLog {
    private mutating func queue(_ stream: Subscription) {
        guard !stream.conditionsRead.isQueued, !stream.isPaused, !stream.conditionsRead.unsent.isEmpty else { return }
        stream.conditionsRead.isQueued = true
        self.naming.append(stream)
    }

    private mutating func nextNaming() -> (stream: Subscription, device: DeviceIndex)? {
        guard let stream = self.naming.first else { return nil }
        if !stream.hasEnded, !stream.isPaused, !stream.conditionsRead.unsent.isEmpty {
            self.unsentCount -= 1
            return (stream, stream.conditionsRead.unsent.removeFirst())
        }
        stream.conditionsRead.isQueued = false
        _ = self.naming.popFirst()
        return nil
    }

    private mutating func nextOfLog(_ checksLeft: inout Int) -> (stream: Subscription, device: DeviceIndex)? {
        if self.turn >= self.streams.count { self.turn = 0 }
        let stream = self.streams[self.turn]
        guard !stream.isPaused else {
            if stream.conditionsRead.lastRead < self.lastNumber { self.laggards += 1 }
            self.endTurn(isDone: true)
            return nil
        }
        guard self.sentInTurn < Self.turnMax else {
            self.endTurn(isDone: false)
            return nil
        }
        guard let device = self.unheard(stream, &checksLeft) else {
            if stream.conditionsRead.lastRead == self.lastNumber { self.endTurn(isDone: true) }
            return nil
        }
        self.sentInTurn += 1
        return (stream, device)
    }

    private mutating func endTurn(isDone: Bool) {
        self.sentInTurn = 0
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

    /// Removes all entries after every stream has received them.
    private mutating func clear() {
        self.log = []
        self.latest = [:]
    }

    /// Returns the next changed device for this stream; nil if it is up to date or `checksLeft` is used up.
    private func unheard(_ stream: Subscription, _ checksLeft: inout Int) -> DeviceIndex? {
        guard stream.conditionsRead.lastRead < self.lastNumber else { return nil }
        let lastRead = stream.conditionsRead.lastRead
        for entry in self.log[self.log.countAtStart { $0.number <= lastRead }...] {
            stream.conditionsRead.lastRead = entry.number
            if self.latest[entry.device] == entry.number { return entry.device }
            checksLeft -= 1
            guard checksLeft > 0 else { return nil }
        }
        stream.conditionsRead.lastRead = self.lastNumber
        return nil
    }
}
