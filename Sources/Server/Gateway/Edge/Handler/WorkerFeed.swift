import Engine
package import HTTPTransport
import Platform
import Policy
import ServiceManager
import Wire

/// Brings wakes to the workers' streams of one loop, and keeps streams and connections alive.
final class WorkerFeed {
    private let loop: EventLoop
    private let outbox: EngineOutbox
    private let answers: AnswerWriter
    private let counts: CredentialCounts
    private let names: StreamNames
    private var streams = WorkerStreams()
    /// The bytes that may wait for a stream before it gets no new wakes; the bound is the loop's own, since
    /// `streamDrained` is promised to streams that have passed that one alone.
    private var queuedBytesMax: Int
    /// Empty but while an event is written.
    private var writer = JSONWriter()
    /// Whether connections that carry no wake any more are to end.
    private var isDraining = false

    init(
        _ loop: EventLoop,
        _ outbox: EngineOutbox,
        _ answers: AnswerWriter,
        _ counts: CredentialCounts,
        names: StreamNames,
        queuedBytesMax: Int
    ) {
        self.loop = loop
        self.outbox = outbox
        self.answers = answers
        self.counts = counts
        self.names = names
        self.queuedBytesMax = queuedBytesMax
    }

    func setQueuedBytesMax(_ bytesMax: Int) { self.queuedBytesMax = bytesMax }

    /// Whether a connection carries workers' streams, or did.
    func carriesStreams(_ connection: ConnectionID) -> Bool { self.streams.load(of: connection) != nil }

    func holdsWakes(_ connection: ConnectionID) -> Bool { (self.streams.load(of: connection)?.wakes ?? 0) > 0 }

    func isOpen(_ stream: StreamID) -> Bool { self.streams.isOpen(stream) }

    // MARK: Coming and going

    /// A stream is asked for, which counts already; `subscribed` or `refused` follows, unless it is gone before.
    func ask(_ stream: StreamID, _ proof: ShownProof?) { self.streams.ask(stream, proof) }

    /// The engine has answered a stream with something else than a subscription, or the stream was never a worker's.
    func refused(_ stream: StreamID) {
        guard self.streams.isAsked(stream) else { return }
        self.streams.takeAsked(stream)
        self.counts.uncount(stream)
    }

    /// The engine has subscribed a stream: its answer begins, with a warning if there is one.
    ///
    /// - Returns: whether its connection is to be told goodbye.
    func subscribed(_ address: StreamAddress, _ warning: SubscriptionWarning?) -> Bool {
        let stream = StreamID(address)
        let proof = self.streams.takeAsked(stream)
        let name = self.names.name(of: self.loop.loopStream(stream))
        guard self.answers.beginEvents(stream, name: name, warning?.text) else {
            // The peer went away while its subscription was on its way.
            self.outbox.append(.streamEnded(address))
            return false
        }
        self.streams.begin(stream, proof, now: SystemClock.monotonic)
        // Bytes at once tell the worker, and any proxy in between, that the stream works.
        self.write(stream, ByteView(": wakes follow\n\n"))
        return self.setPing(stream.connection)
    }

    /// A stream has ended, whosever it was.
    ///
    /// - Returns: whether its connection is to be told goodbye.
    func streamClosed(_ stream: StreamID) -> Bool {
        self.streams.takeAsked(stream)
        self.counts.uncount(stream)
        guard self.streams.remove(stream) else { return false }
        self.outbox.append(.streamEnded(self.loop.address(stream)))
        return self.setPing(stream.connection)
    }

    /// Ends the streams of a connection that is to end.
    func end(_ connection: ConnectionID) {
        for stream in self.streams.removeAll(of: connection) {
            self.counts.uncount(stream)
            self.outbox.append(.streamEnded(self.loop.address(stream)))
            self.loop.finish(stream)
        }
    }

    func connectionClosed(_ connection: ConnectionID) {
        _ = self.streams.removeAll(of: connection)
    }

    /// From now on whoever holds no wake is told goodbye.
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

    /// - Returns: whether the stream's connection is to be told goodbye.
    func released(from address: StreamAddress) -> Bool {
        let stream = StreamID(address)
        guard self.streams.release(from: stream) == true else { return false }
        return self.setPing(stream.connection)
    }

    // MARK: Bytes

    /// Half of what a stream was sent has left.
    func drained(_ stream: StreamID) {
        guard self.streams.drained(stream) else { return }
        self.outbox.append(.streamPaused(self.loop.address(stream), false))
    }

    /// Writes a comment to the streams that were sent nothing for long.
    func keepAlive(now: Int64) {
        for stream in self.streams.silent(now: now) { self.write(stream, ByteView(": keep-alive\n\n")) }
    }

    /// The streams whose tokens or certificates were revoked or have expired since they were opened.
    func streamsWithoutProof(by admission: CallerAdmission) -> [StreamID] {
        guard !self.streams.isEmpty else { return [] }
        admission.refreshTokens()
        return self.streams.withoutProof { admission.admitsWorker($0) }
    }

    private func writeEvent(to stream: StreamID) {
        self.write(stream, self.writer.buffer.view)
        self.writer.removeAll()
    }

    /// Writes to a stream. One whose peer does not read gets no new wakes until half of what it was sent has left.
    private func write(_ stream: StreamID, _ bytes: ByteView) {
        guard let queued = self.loop.write(stream, bytes) else { return }
        let (bytesMax, now) = (self.queuedBytesMax, SystemClock.monotonic)
        guard self.streams.wrote(to: stream, queued: queued, bytesMax: bytesMax, now: now) else { return }
        self.outbox.append(.streamPaused(self.loop.address(stream), true))
    }

    /// Brings the connection's PINGs in line with what it carries.
    ///
    /// - Returns: whether it carries no wake during a shutdown, so that it is to be told goodbye instead.
    private func setPing(_ connection: ConnectionID) -> Bool {
        guard let load = self.streams.load(of: connection) else { return false }
        guard load.wakes > 0 || !self.isDraining else { return true }
        self.loop.setPing(connection, everySeconds: load.pingSeconds)
        return false
    }
}

extension SubscriptionWarning {
    /// Writes the warning to the log.
    ///
    /// - Returns: false if its worker is not warned: that everything is permitted is said once.
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

/// The workers' streams of one loop: which are asked for, which are open, what each of them and each connection holds.
package struct WorkerStreams {
    /// Silence on a stream, in milliseconds, after which a comment is sent.
    package static let keepAliveInterval: Int64 = 15_000

    /// The most places that are kept when the last stream has ended.
    package static let placesKeptMax = 64

    /// What a connection carries.
    package final class Load {
        fileprivate let connection: ConnectionID
        /// The connection's streams, the lowest number first, and the place of each among those of the loop; nil of one
        /// that has ended, which stays until more than half of them have: taken out by itself, each would move all
        /// behind it, of which there may be thousands.
        private var opened: [(number: Int32, place: Int?)] = []
        private var openCount = 0
        /// The wakes its streams hold.
        package fileprivate(set) var wakes = 0

        fileprivate init(_ connection: ConnectionID) {
            self.connection = connection
        }

        /// How many streams are kept, those included that have ended.
        package var keptCount: Int { self.opened.count }

        /// The open streams, the lowest number first.
        package var streams: [StreamID] {
            self.opened.compactMap { stream in
                stream.place.map { _ in StreamID(connection: self.connection, number: stream.number) }
            }
        }

        /// Seconds between PINGs: fewer where a wake is in flight; nil for none.
        package var pingSeconds: Int? {
            if self.wakes > 0 { return 5 }
            return self.openCount == 0 ? nil : 30
        }

        /// The place of an open stream among those of the loop.
        fileprivate func place(of number: Int32) -> Int? {
            let index = self.firstIndex(from: number)
            return index < self.opened.count && self.opened[index].number == number ? self.opened[index].place : nil
        }

        /// The index of the stream with this number, or of the first one behind it.
        private func firstIndex(from number: Int32) -> Int {
            var (low, high) = (0, self.opened.count)
            while low < high {
                let middle = (low + high) / 2
                if self.opened[middle].number < number { low = middle + 1 } else { high = middle }
            }
            return low
        }

        /// A stream begins that is not open.
        fileprivate func begin(_ number: Int32, at place: Int) {
            let index = self.firstIndex(from: number)
            if index < self.opened.count, self.opened[index].number == number {
                self.opened[index].place = place
            } else {
                self.opened.insert((number, place), at: index)
            }
            self.openCount += 1
        }

        /// An open stream has ended.
        fileprivate func end(_ number: Int32) {
            self.opened[self.firstIndex(from: number)].place = nil
            self.openCount -= 1
            if self.openCount * 2 < self.opened.count { self.opened.removeAll { $0.place == nil } }
        }
    }

    private struct OpenStream {
        let id: StreamID
        /// What its worker showed; nil when nobody asked.
        let proof: ShownProof?
        /// When something was last written to it, by the monotonic clock in milliseconds.
        var lastWrite: Int64
        /// The wakes it holds.
        var wakes = 0
        var isPaused = false
    }

    /// What workers showed whose subscriptions are at the engine; nil of those whom nobody asked.
    private var asked: [StreamID: ShownProof?] = [:]
    /// Every open stream, side by side, as each second looks at them all; nil where a place is free.
    private var open: [OpenStream?] = []
    private var freePlaces: [Int] = []
    /// By the places of their connections.
    private var loads: [Load?] = []

    package init() {}

    package var isEmpty: Bool { self.freePlaces.count == self.open.count }

    /// For how many streams there is a place.
    package var placeCount: Int { self.open.count }

    package func isOpen(_ stream: StreamID) -> Bool { self.find(stream) != nil }

    /// What carries an open stream, and its place in `open`.
    @inline(__always)
    private func find(_ stream: StreamID) -> (load: Load, place: Int)? {
        guard let load = self.load(of: stream.connection), let place = load.place(of: stream.number) else { return nil }
        return (load, place)
    }

    /// What a connection carries; nil for one that carries no worker's stream, nor did since it was `removeAll`.
    package func load(of connection: ConnectionID) -> Load? {
        let place = Int(connection.index)
        guard place < self.loads.count, let load = self.loads[place], load.connection == connection else { return nil }
        return load
    }

    // MARK: Coming and going

    /// A stream is asked for; whatever comes of that, `takeAsked` follows.
    ///
    /// - `proof`: what its worker showed; nil when nobody asked.
    package mutating func ask(_ stream: StreamID, _ proof: ShownProof?) {
        self.asked.updateValue(proof, forKey: stream)
    }

    /// Whether a stream is asked for and nothing has come of it yet.
    package func isAsked(_ stream: StreamID) -> Bool { !self.asked.isEmpty && self.asked[stream] != nil }

    /// The engine has answered, or the stream is gone.
    ///
    /// - Returns: what the stream's worker showed.
    @discardableResult
    package mutating func takeAsked(_ stream: StreamID) -> ShownProof? {
        self.asked.isEmpty ? nil : self.asked.removeValue(forKey: stream) ?? nil
    }

    /// A stream is open; one that is already stays as it is.
    ///
    /// - `proof`: what its worker showed; nil when nobody asked.
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
        // Whoever had the place before is gone, and its streams with it.
        if let former = self.loads[place] { _ = self.removeAll(of: former.connection) }
        self.loads[place] = load
        return load
    }

    /// A stream is gone, and what it held with it.
    ///
    /// - Returns: whether it was open.
    package mutating func remove(_ stream: StreamID) -> Bool {
        guard let (load, place) = self.find(stream) else { return false }
        load.end(stream.number)
        load.wakes -= self.open[place]?.wakes ?? 0
        self.free(place)
        return true
    }

    /// Forgets a connection with all its open streams.
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
        // What thousands have left would be looked through each second.
        if self.isEmpty, self.placeCount > Self.placesKeptMax { (self.open, self.freePlaces) = ([], []) }
    }

    // MARK: Wakes

    /// A stream holds one more.
    ///
    /// - Returns: whether it is the first of its connection; nil when the stream is not open.
    package mutating func give(to stream: StreamID) -> Bool? { self.change(stream, by: 1).map { $0 == 1 } }

    /// A stream holds one less.
    ///
    /// - Returns: whether it was the last of its connection; nil when the stream is not open.
    package mutating func release(from stream: StreamID) -> Bool? { self.change(stream, by: -1).map { $0 == 0 } }

    /// - Returns: how many the connection holds then.
    private mutating func change(_ stream: StreamID, by change: Int) -> Int? {
        guard let (load, place) = self.find(stream) else { return nil }
        self.open[place]?.wakes += change
        load.wakes += change
        return load.wakes
    }

    // MARK: Bytes

    /// Bytes were written to a stream.
    ///
    /// - `queued`: how many wait on it by now.
    /// - `bytesMax`: how many may.
    /// - Returns: whether it is to get no new wakes from now on.
    package mutating func wrote(to stream: StreamID, queued: Int, bytesMax: Int, now: Int64) -> Bool {
        guard let place = self.find(stream)?.place else { return false }
        self.open[place]?.lastWrite = now
        guard queued > bytesMax, self.open[place]?.isPaused == false else { return false }
        self.open[place]?.isPaused = true
        return true
    }

    /// Half of what a stream was sent has left.
    ///
    /// - Returns: whether it may get new wakes again.
    package mutating func drained(_ stream: StreamID) -> Bool {
        guard let place = self.find(stream)?.place, self.open[place]?.isPaused == true else { return false }
        self.open[place]?.isPaused = false
        return true
    }

    // MARK: Every second

    /// The streams that were sent nothing for `keepAliveInterval`.
    package func silent(now: Int64) -> [StreamID] {
        self.streams { now - $0.lastWrite >= Self.keepAliveInterval }
    }

    /// The streams whose proof `isGood` refuses.
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
