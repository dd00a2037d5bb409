package import Bytes
package import DeviceEngine
package import LaunchPolicy

/// The open streams: by address, by topic and by the devices they name, and which of them holds which wake.
///
/// Whatever changes a stream is said here, so that each stands where its wakes and its state put it.
package struct StreamTable: ~Copyable {
    private var streams: [StreamAddress: Subscription] = [:]
    /// By topic number.
    private var workers: [TopicWorkers] = []
    /// Who holds which wake, and who let which one expire; of streams that ended until their wakes are lost, too.
    private var holders = WakeTable<Subscription>()
    private let bounds: StreamBounds
    /// How often a stream got no more wakes because of its bytes.
    package private(set) var timesFull: Int64 = 0

    /// No streams.
    ///
    /// - `wakeBytesMax`: the bytes of payloads that a stream may hold unanswered.
    package init(wakeBytesMax: Int) {
        self.bounds = StreamBounds(wakeBytesMax: wakeBytesMax)
    }

    package var count: Int { self.streams.count }

    /// Every open stream, in no particular order.
    package var all: some Sequence<Subscription> { self.streams.values }

    /// The open stream with this address.
    package subscript(address: StreamAddress) -> Subscription? { self.streams[address] }

    /// How many streams of this topic name a device, free or not.
    package func countNaming(_ device: DeviceToken, _ topic: TopicIndex) -> Int {
        let place = Int(topic.rawValue)
        return place < self.workers.count ? self.workers[place].countNaming(device) : 0
    }

    /// Workers of one topic, or of all.
    package func counts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        let places = topic.map { Int($0.rawValue)..<Int($0.rawValue) + 1 } ?? self.workers.indices
        return self.workers[places.clamped(to: self.workers.indices)].reduce(into: Dispatcher.WorkerCounts()) {
            $0.connected += $1.connected
            $0.slots += $1.slots
            $0.busy += $1.busy
        }
    }
}

// MARK: - Coming and going

extension StreamTable {
    /// Adds a stream, whose address no open one has.
    package mutating func insert(
        _ address: StreamAddress,
        _ topic: TopicIndex,
        _ request: SubscriptionRequest
    ) -> Subscription {
        while self.workers.count <= Int(topic.rawValue) { self.workers.append(TopicWorkers()) }
        let stream = Subscription(address: address, topic: topic, request: request, bounds: self.bounds)
        self.streams[address] = stream
        self.workers[Int(topic.rawValue)].insert(stream)
        return stream
    }

    /// Takes out a stream that ends. It is known still as the holder of its wakes, until each is forgotten.
    package mutating func remove(_ stream: Subscription) {
        self.streams[stream.address] = nil
        stream.hasEnded = true
        self.workers[Int(stream.topic.rawValue)].remove(stream)
        self.workers[Int(stream.topic.rawValue)].busy -= stream.wakes.count
        for wake in stream.expiredInARow { self.holders[wake] = nil }
    }

    /// The stream's worker stops.
    package mutating func drain(_ stream: Subscription) {
        stream.isDraining = true
        self.changed(stream)
    }

    /// The stream's peer does not read, or reads again.
    package mutating func pause(_ stream: Subscription, _ isPaused: Bool) {
        stream.isPaused = isPaused
        self.changed(stream)
    }

    /// The stream may hold more or fewer wakes; it keeps those it has.
    package mutating func resize(_ stream: Subscription, to slots: Int) {
        self.workers[Int(stream.topic.rawValue)].slots += slots - stream.slots
        stream.slots = slots
        self.changed(stream)
    }

    /// Every stream may hold so many bytes of payloads; it keeps those it has.
    package mutating func resizeAll(wakeBytesMax: Int) {
        // A stream that was full gets its next wake when one of its wakes ends, as it would have.
        self.bounds.wakeBytesMax = wakeBytesMax
    }
}

// MARK: - Whose turn it is

extension StreamTable {
    /// The stream that a wake of this device goes to: a free one that names it, or else the one whose turn it is.
    package mutating func free(_ topic: TopicIndex, _ device: borrowing DeviceToken) -> Subscription? {
        let place = Int(topic.rawValue)
        guard place < self.workers.count, self.workers[place].connected > 0 else { return nil }
        if let naming = self.workers[place].naming(device) { return naming }
        return self.workers[place].nextInRotation()
    }

    /// A free stream that names this device: the one with the fewest wakes.
    package mutating func naming(_ topic: TopicIndex, _ device: borrowing DeviceToken) -> Subscription? {
        self.workers[Int(topic.rawValue)].naming(device)
    }

    /// The free stream whose turn it is among those that name no device.
    package mutating func nextInRotation(_ topic: TopicIndex) -> Subscription? {
        self.workers[Int(topic.rawValue)].nextInRotation()
    }

    /// Gives a stream that may have a free slot again its place in the rotation.
    package mutating func rotate(_ stream: Subscription) {
        self.workers[Int(stream.topic.rawValue)].rotate(stream)
    }

    /// The stream holds more or fewer wakes, or can take one that could not, or no more.
    private mutating func changed(_ stream: Subscription) {
        guard !stream.request.devices.isEmpty else { return }
        self.workers[Int(stream.topic.rawValue)].changed(stream)
    }
}

// MARK: - Wakes

extension StreamTable {
    /// The open stream that holds a wake, or let it expire.
    package func holder(of wake: WakeID) -> Subscription? {
        guard let stream = self.holders[wake], !stream.hasEnded else { return nil }
        return stream
    }

    /// Whether the stream that held a wake has ended, and the wake was not yet lost.
    package func isHolderGone(_ wake: WakeID) -> Bool { self.holders[wake]?.hasEnded == true }

    /// A wake that a stream held before it ended is lost.
    package mutating func forget(_ wake: WakeID) { self.holders[wake] = nil }

    /// The stream has a wake, whose payload has so many bytes.
    package mutating func give(_ wake: WakeID, bytes: Int, to stream: Subscription, at now: Instant) {
        let place = Int(stream.topic.rawValue)
        stream.add(wake, bytes: bytes, at: now)
        if stream.isFull { self.timesFull += 1 }
        self.holders[wake] = stream
        self.workers[place].busy += 1
        self.workers[place].turnEnded(stream)
        self.changed(stream)
    }

    /// The stream no longer holds a wake.
    ///
    /// - Returns: false when it did not hold it.
    package mutating func release(_ wake: WakeID, _ stream: Subscription) -> Bool {
        guard stream.remove(wake) else { return false }
        self.holders[wake] = nil
        self.workers[Int(stream.topic.rawValue)].busy -= 1
        self.changed(stream)
        return true
    }

    /// A wake that the stream held expired unanswered; a late answer to it is an answer still.
    package mutating func expired(_ wake: WakeID, _ stream: Subscription) {
        stream.expiredInARow.append(wake)
        self.holders[wake] = stream
        self.changed(stream)
    }

    /// The stream answered a wake: what expired before is forgotten.
    package mutating func answered(_ stream: Subscription) {
        guard !stream.expiredInARow.isEmpty else { return }
        for expired in stream.expiredInARow { self.holders[expired] = nil }
        stream.expiredInARow.removeAll()
        self.changed(stream)
    }
}
