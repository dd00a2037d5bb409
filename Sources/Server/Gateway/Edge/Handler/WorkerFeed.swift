import Engine
package import HTTPTransport
import Platform
import Policy
import ServiceManager
import Wire

/// Delivers wakes to the workers' streams of one loop, and keeps streams and connections alive.
final class WorkerFeed {
    private let parts: LoopParts
    private var streams = WorkerStreams()
    /// The number of bytes queued on a stream above which it gets no new wakes. It equals the loop's own limit, because
    /// `streamDrained` is called only after that limit was exceeded.
    private var queuedBytesMax: Int
    /// The event being written; empty otherwise.
    private var writer = JSONWriter()
    /// True if connections without a wake must end.
    private var isDraining = false

    init(_ parts: LoopParts) {
        self.parts = parts
        self.queuedBytesMax = parts.shared.settings.transport.streamingBytesSoftMax
    }

    func setQueuedBytesMax(_ bytesMax: Int) { self.queuedBytesMax = bytesMax }

    /// Returns true if a connection carries workers' streams, or has carried them.
    func carriesStreams(_ connection: ConnectionID) -> Bool { self.streams.load(of: connection) != nil }

    func holdsWakes(_ connection: ConnectionID) -> Bool { (self.streams.load(of: connection)?.wakes ?? 0) > 0 }

    func isOpen(_ stream: StreamID) -> Bool { self.streams.isOpen(stream) }

    // MARK: Coming and going

    /// Records a requested stream, which already counts as open. `subscribed` or `refused` follows, unless it closes
    /// first.
    func ask(_ stream: StreamID, _ proof: ShownProof?) { self.streams.ask(stream, proof) }

    /// Removes a stream that the engine refused; has no effect on other streams.
    func refused(_ stream: StreamID) {
        guard self.streams.isAsked(stream) else { return }
        self.streams.takeAsked(stream)
        self.parts.counts.uncount(stream)
    }

    /// Begins the answer of a stream that the engine has subscribed, with a warning if there is one.
    ///
    /// - Returns: true if its connection must be sent a GOAWAY.
    func subscribed(_ address: StreamAddress, _ warning: SubscriptionWarning?) -> Bool {
        let stream = StreamID(address)
        let proof = self.streams.takeAsked(stream)
        let name = self.parts.shared.services.streamNames.name(of: self.parts.loop.loopStream(stream))
        guard self.parts.answers.beginEvents(stream, name: name, warning?.text) else {
            // The client closed the stream while its subscription was in progress.
            self.parts.outbox.append(.streamEnded(address))
            return false
        }
        self.streams.begin(stream, proof, now: SystemClock.monotonic)
        // Sending bytes immediately shows the worker, and any proxy in between, that the stream works.
        self.write(stream, ByteView(": wakes follow\n\n"))
        return self.setPing(stream.connection)
    }

    /// Removes a closed stream; has no effect on streams that are not workers'.
    ///
    /// - Returns: true if its connection must be sent a GOAWAY.
    func streamClosed(_ stream: StreamID) -> Bool {
        self.streams.takeAsked(stream)
        self.parts.counts.uncount(stream)
        guard self.streams.remove(stream) else { return false }
        self.parts.outbox.append(.streamEnded(self.parts.loop.address(stream)))
        return self.setPing(stream.connection)
    }

    /// Ends the workers' streams of a connection that is about to end.
    func end(_ connection: ConnectionID) {
        for stream in self.streams.removeAll(of: connection) {
            self.parts.counts.uncount(stream)
            self.parts.outbox.append(.streamEnded(self.parts.loop.address(stream)))
            self.parts.loop.finish(stream)
        }
    }

    func connectionClosed(_ connection: ConnectionID) {
        _ = self.streams.removeAll(of: connection)
    }

    /// Starts to send a GOAWAY on connections without a wake.
    func startDraining() { self.isDraining = true }

    // MARK: Wakes

    func deliver(_ wake: StagedWake, to address: StreamAddress) {
        let stream = StreamID(address)
        guard let isFirst = self.streams.give(to: stream) else { return }
        if isFirst { _ = self.setPing(stream.connection) }
        wake.wake.writeEvent(to: &self.writer)
        self.writeEvent(to: stream)
    }

    func expiring(_ wake: WakeID, deadline: Int64, timeLeft: Int64, on address: StreamAddress) {
        let stream = StreamID(address)
        guard self.streams.isOpen(stream) else { return }
        Wake.writeExpiringEvent(wake, deadline: deadline, timeLeft: timeLeft, to: &self.writer)
        self.writeEvent(to: stream)
    }

    func expired(_ wake: WakeID, _ reason: ExpirationReason, on address: StreamAddress) {
        let stream = StreamID(address)
        guard self.streams.isOpen(stream) else { return }
        Wake.writeExpiredEvent(wake, reason: reason, to: &self.writer)
        self.writeEvent(to: stream)
    }

    func conditionsChanged(_ conditions: Conditions, of device: DeviceToken, on address: StreamAddress) {
        let stream = StreamID(address)
        guard self.streams.isOpen(stream) else { return }
        Wake.writeConditionsEvent(device, to: &self.writer) { conditions.writeMembers(to: &$0) }
        self.writeEvent(to: stream)
    }

    /// - Returns: true if the stream's connection must be sent a GOAWAY.
    func released(from address: StreamAddress) -> Bool {
        let stream = StreamID(address)
        guard self.streams.release(from: stream) == true else { return false }
        return self.setPing(stream.connection)
    }

    // MARK: Bytes

    /// Resumes a stream whose queue has drained to half.
    func drained(_ stream: StreamID) {
        guard self.streams.drained(stream) else { return }
        self.parts.outbox.append(.streamPaused(self.parts.loop.address(stream), false))
    }

    /// Writes a comment to the streams that have been silent for too long.
    func keepAlive(now: Int64) {
        for stream in self.streams.silent(now: now) { self.write(stream, ByteView(": keep-alive\n\n")) }
    }

    /// Returns the streams whose tokens or certificates were revoked or have expired since they were opened.
    func streamsWithoutProof(by admission: CallerAdmission) -> [StreamID] {
        guard !self.streams.isEmpty else { return [] }
        admission.refreshTokens()
        return self.streams.withoutProof { admission.admitsWorker($0) }
    }

    private func writeEvent(to stream: StreamID) {
        self.write(stream, self.writer.buffer.view)
        self.writer.removeAll()
    }

    /// Writes to a stream. If too many bytes are queued, the stream gets no new wakes until half of the limit is
    /// reached.
    private func write(_ stream: StreamID, _ bytes: ByteView) {
        guard let queued = self.parts.loop.write(stream, bytes) else { return }
        let (bytesMax, now) = (self.queuedBytesMax, SystemClock.monotonic)
        guard self.streams.wrote(to: stream, queued: queued, bytesMax: bytesMax, now: now) else { return }
        self.parts.outbox.append(.streamPaused(self.parts.loop.address(stream), true))
    }

    /// Adjusts the interval of the connection's PINGs to its wakes and streams.
    ///
    /// - Returns: true if the connection carries no wake during a shutdown, so that a GOAWAY must be sent instead.
    private func setPing(_ connection: ConnectionID) -> Bool {
        guard let load = self.streams.load(of: connection) else { return false }
        guard load.wakes > 0 || !self.isDraining else { return true }
        self.parts.loop.setPing(connection, everySeconds: load.pingSeconds)
        return false
    }
}

extension SubscriptionWarning {
    /// Writes the warning to the log.
    ///
    /// - Returns: false if the worker is not warned, as in later subscriptions of everything permitted, which are
    ///   reported once.
    func write(to log: GatewayLog) -> Bool {
        let fields = ["topic": self.topic, "identifiers": self.names, "worker": self.worker, "remedy": self.remedy]
        switch self.problem {
        case .notPermitted:
            log.write(.taskNotPermitted, fields)
            return true
        case .everythingPermitted: return log.writeOnce(.everyTaskPermitted, fields)
        }
    }
}

/// The workers' streams of one loop: the requested ones, the open ones, and the wakes of each stream and connection.
package struct WorkerStreams {
    /// The silence on a stream, in milliseconds, after which a comment is sent.
    package static let keepAliveInterval: Int64 = 15_000

    /// The maximum number of free places kept when the last stream has ended.
    package static let placesKeptMax = 64

    /// The workers' streams and wakes of a connection.
    package final class Load {
        fileprivate let connection: ConnectionID
        /// The connection's streams in ascending order of number, each with its index in `open`; nil for an ended
        /// stream. Ended streams are removed once they are the majority: removing each at once would move up to
        /// thousands of later ones.
        private var opened: [(number: Int32, place: Int?)] = []
        private var openCount = 0
        /// The number of wakes in flight on the connection's streams.
        package fileprivate(set) var wakes = 0

        fileprivate init(_ connection: ConnectionID) {
            self.connection = connection
        }

        /// The number of streams kept, including ended ones.
        package var keptCount: Int { self.opened.count }

        /// The open streams in ascending order of number.
        package var streams: [StreamID] {
            self.opened.compactMap { stream in
                stream.place.map { _ in StreamID(connection: self.connection, number: stream.number) }
            }
        }

        /// The interval of PINGs in seconds, shorter while a wake is in flight; nil for none.
        package var pingSeconds: Int? {
            if self.wakes > 0 { return 5 }
            return self.openCount == 0 ? nil : 30
        }

        /// Returns the index of an open stream in `open`.
        fileprivate func place(of number: Int32) -> Int? {
            let index = self.firstIndex(from: number)
            return index < self.opened.count && self.opened[index].number == number ? self.opened[index].place : nil
        }

        /// Returns the index of the first stream whose number is at least `number`.
        private func firstIndex(from number: Int32) -> Int {
            var (low, high) = (0, self.opened.count)
            while low < high {
                let middle = (low + high) / 2
                if self.opened[middle].number < number { low = middle + 1 } else { high = middle }
            }
            return low
        }

        /// Adds a stream that is not open.
        fileprivate func begin(_ number: Int32, at place: Int) {
            let index = self.firstIndex(from: number)
            if index < self.opened.count, self.opened[index].number == number {
                self.opened[index].place = place
            } else {
                self.opened.insert((number, place), at: index)
            }
            self.openCount += 1
        }

        /// Marks an open stream as ended.
        fileprivate func end(_ number: Int32) {
            self.opened[self.firstIndex(from: number)].place = nil
            self.openCount -= 1
            if self.openCount * 2 < self.opened.count { self.opened.removeAll { $0.place == nil } }
        }
    }

    private struct OpenStream {
        let id: StreamID
        /// The proof that the worker showed; nil if none was required.
        let proof: ShownProof?
        /// The time of the last write, in milliseconds of the monotonic clock.
        var lastWrite: Int64
        /// The number of the stream's wakes in flight.
        var wakes = 0
        var isPaused = false
    }

    /// The proofs of the streams that wait for the engine's answer; nil if none was required.
    private var asked: [StreamID: ShownProof?] = [:]
    /// The open streams, in contiguous memory because each is examined every second; nil for a free place.
    private var open: [OpenStream?] = []
    private var freePlaces: [Int] = []
    /// The loads of the connections, by the connections' index.
    private var loads: [Load?] = []

    package init() {}

    package var isEmpty: Bool { self.freePlaces.count == self.open.count }

    /// The number of places, free ones included.
    package var placeCount: Int { self.open.count }

    package func isOpen(_ stream: StreamID) -> Bool { self.find(stream) != nil }

    /// Returns the load that an open stream belongs to and the stream's index in `open`.
    @inline(__always)
    private func find(_ stream: StreamID) -> (load: Load, place: Int)? {
        guard let load = self.load(of: stream.connection), let place = load.place(of: stream.number) else { return nil }
        return (load, place)
    }

    /// Returns the load of a connection; nil if it has carried no worker's stream since the last `removeAll`.
    package func load(of connection: ConnectionID) -> Load? {
        let place = Int(connection.index)
        guard place < self.loads.count, let load = self.loads[place], load.connection == connection else { return nil }
        return load
    }

    // MARK: Coming and going

    /// Records a requested stream. The caller must call `takeAsked` later in every case.
    ///
    /// - `proof`: the proof that the worker showed; nil if none was required.
    package mutating func ask(_ stream: StreamID, _ proof: ShownProof?) {
        self.asked.updateValue(proof, forKey: stream)
    }

    /// Returns true if a stream has been requested and the request is still pending.
    package func isAsked(_ stream: StreamID) -> Bool { !self.asked.isEmpty && self.asked[stream] != nil }

    /// Removes a requested stream, because the engine has answered or the stream has closed.
    ///
    /// - Returns: the proof that the worker showed.
    @discardableResult
    package mutating func takeAsked(_ stream: StreamID) -> ShownProof? {
        self.asked.isEmpty ? nil : self.asked.removeValue(forKey: stream) ?? nil
    }

    /// Adds an open stream; has no effect if it is already open.
    ///
    /// - `proof`: the proof that the worker showed; nil if none was required.
    package mutating func begin(_ stream: StreamID, _ proof: ShownProof?, now: Int64) {
        let load = self.load(of: stream.connection) ?? self.beginLoad(of: stream.connection)
        guard load.place(of: stream.number) == nil else { return }
        let opened = OpenStream(id: stream, proof: proof, lastWrite: now)
        if let place = self.freePlaces.popLast() {
            self.open[place] = opened
            load.begin(stream.number, at: place)
        } else {
            self.open.append(opened)
            load.begin(stream.number, at: self.open.count - 1)
        }
    }

    private mutating func beginLoad(of connection: ConnectionID) -> Load {
        let (load, place) = (Load(connection), Int(connection.index))
        if place >= self.loads.count {
            self.loads += Array(repeating: nil, count: place + 1 - self.loads.count)
        }
        // The former connection at this index has closed; its streams are removed.
        if let former = self.loads[place] { _ = self.removeAll(of: former.connection) }
        self.loads[place] = load
        return load
    }

    /// Removes a closed stream and its wakes.
    ///
    /// - Returns: true if it was open.
    package mutating func remove(_ stream: StreamID) -> Bool {
        guard let (load, place) = self.find(stream) else { return false }
        load.end(stream.number)
        load.wakes -= self.open[place]?.wakes ?? 0
        self.free(place)
        return true
    }

    /// Removes a connection and all its open streams.
    ///
    /// - Returns: those streams.
    package mutating func removeAll(of connection: ConnectionID) -> [StreamID] {
        guard let load = self.load(of: connection) else { return [] }
        let streams = load.streams
        for stream in streams {
            if let place = load.place(of: stream.number) { self.free(place) }
        }
        self.loads[Int(connection.index)] = nil
        return streams
    }

    private mutating func free(_ place: Int) {
        self.open[place] = nil
        self.freePlaces.append(place)
        // Otherwise up to thousands of free places would be examined every second.
        if self.isEmpty, self.placeCount > Self.placesKeptMax { (self.open, self.freePlaces) = ([], []) }
    }

    // MARK: Wakes

    /// Adds a wake to a stream.
    ///
    /// - Returns: true if it is the connection's first wake; nil if the stream is not open.
    package mutating func give(to stream: StreamID) -> Bool? { self.change(stream, by: 1).map { $0 == 1 } }

    /// Removes a wake from a stream.
    ///
    /// - Returns: true if it was the connection's last wake; nil if the stream is not open.
    package mutating func release(from stream: StreamID) -> Bool? { self.change(stream, by: -1).map { $0 == 0 } }

    /// - Returns: the connection's number of wakes after the change.
    private mutating func change(_ stream: StreamID, by change: Int) -> Int? {
        guard let (load, place) = self.find(stream) else { return nil }
        self.open[place]?.wakes += change
        load.wakes += change
        return load.wakes
    }

    // MARK: Bytes

    /// Records a write to a stream.
    ///
    /// - `queued`: the number of bytes now queued on the stream.
    /// - `bytesMax`: the maximum.
    /// - Returns: true if the stream must get no new wakes from now on.
    package mutating func wrote(to stream: StreamID, queued: Int, bytesMax: Int, now: Int64) -> Bool {
        guard let place = self.find(stream)?.place else { return false }
        self.open[place]?.lastWrite = now
        guard queued > bytesMax, self.open[place]?.isPaused == false else { return false }
        self.open[place]?.isPaused = true
        return true
    }

    /// Records that a stream's queue has drained to half.
    ///
    /// - Returns: true if the stream may get new wakes again.
    package mutating func drained(_ stream: StreamID) -> Bool {
        guard let place = self.find(stream)?.place, self.open[place]?.isPaused == true else { return false }
        self.open[place]?.isPaused = false
        return true
    }

    // MARK: Every second

    /// Returns the streams that have been silent for `keepAliveInterval`.
    package func silent(now: Int64) -> [StreamID] {
        self.streams { now - $0.lastWrite >= Self.keepAliveInterval }
    }

    /// Returns the streams whose proof `isGood` rejects.
    package func withoutProof(_ isGood: (ShownProof?) -> Bool) -> [StreamID] {
        self.streams { !isGood($0.proof) }
    }

    private func streams(where isMeant: (OpenStream) -> Bool) -> [StreamID] {
        self.open.compactMap { stream in
            guard let stream, isMeant(stream) else { return nil }
            return stream.id
        }
    }
}
