import Engine
package import HTTPTransport
import Platform
import Policy
import ServiceManager
import Wire

/// Delivers wakes to the workers' streams of one loop, and keeps idle streams and connections alive.
final class WorkerFeed {
    private let parts: LoopParts
    private var streams = WorkerStreams()
    /// The writer of the current event; empty at other times.
    private var writer = JSONWriter()
    /// True during a shutdown. Connections without a wake must then end.
    private var isDraining = false

    init(_ parts: LoopParts) {
        self.parts = parts
    }

    /// Returns true if a connection has carried workers' streams, even if they have ended.
    func carriesStreams(_ connection: ConnectionID) -> Bool { self.streams.load(of: connection) != nil }

    func holdsWakes(_ connection: ConnectionID) -> Bool { (self.streams.load(of: connection)?.wakes ?? 0) > 0 }

    func isOpen(_ stream: StreamID) -> Bool { self.streams.isOpen(stream) }

    // MARK: Coming and going

    /// Records a requested stream, which counts as open from now on. `subscribed` or `refused` must follow, unless the
    /// stream closes first.
    func ask(_ stream: StreamID, _ proof: ShownProof?) { self.streams.ask(stream, proof) }

    /// Removes a stream that the engine refused; has no effect on other streams.
    func refused(_ stream: StreamID) {
        guard self.streams.isPending(stream) else { return }
        self.streams.takeAsked(stream)
        self.parts.counts.uncount(stream)
    }

    /// Begins the answer to a subscription that the engine accepted, and includes the warning if there is one.
    ///
    /// - Returns: true if the caller must send a GOAWAY on the stream's connection.
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
        // The immediate bytes show the worker, and any proxy on the way, that the stream works.
        self.write(stream, ByteView(": wakes follow\n\n"))
        return self.setPing(stream.connection)
    }

    /// Removes a closed stream; has no effect on a stream that is not a worker's.
    ///
    /// - Returns: true if the caller must send a GOAWAY on the stream's connection.
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

    /// Starts the shutdown. From now on, connections without a wake are sent a GOAWAY.
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

    /// Removes a wake from a stream.
    ///
    /// - Returns: true if the caller must send a GOAWAY on the stream's connection.
    func released(from address: StreamAddress) -> Bool {
        let stream = StreamID(address)
        guard self.streams.release(from: stream) == true else { return false }
        return self.setPing(stream.connection)
    }

    // MARK: Bytes

    /// Resumes a stream whose queue has drained to half of the limit.
    func drained(_ stream: StreamID) {
        guard self.streams.drained(stream) else { return }
        self.parts.outbox.append(.streamPaused(self.parts.loop.address(stream), false))
    }

    /// Writes a comment to the streams that have been silent for too long.
    func keepAlive(now: Int64) {
        for stream in self.streams.silent(now: now) { self.write(stream, ByteView(": keep-alive\n\n")) }
    }

    /// Returns the streams whose token or certificate was revoked or has expired after they were opened.
    func streamsWithoutProof(by admission: CallerAdmission) -> [StreamID] {
        guard !self.streams.isEmpty else { return [] }
        admission.authorization.tokens.refreshIfPossible()
        return self.streams.withoutProof { admission.authorization.admitsWorker($0) }
    }

    private func writeEvent(to stream: StreamID) {
        self.write(stream, self.writer.buffer.view)
        self.writer.removeAll()
    }

    /// Writes to a stream. If too many bytes are queued, the stream gets no new wakes until the queue has drained to
    /// half of the limit.
    private func write(_ stream: StreamID, _ bytes: ByteView) {
        guard let queued = self.parts.loop.write(stream, bytes) else { return }
        // The loop calls `streamDrained` only after its own limit was exceeded.
        let (bytesMax, now) = (self.parts.loop.streamingBytesSoftMax, SystemClock.monotonic)
        guard self.streams.wrote(to: stream, queued: queued, bytesMax: bytesMax, now: now) else { return }
        self.parts.outbox.append(.streamPaused(self.parts.loop.address(stream), true))
    }

    /// Adjusts the interval of the connection's PINGs to its wakes and streams.
    ///
    /// - Returns: true during a shutdown if the connection has no wake. The caller must then send a GOAWAY.
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
    /// - Returns: false if the worker need not be warned. A subscription to everything that is permitted is reported
    ///   only once.
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

/// The requested and open workers' streams of one loop, and the number of wakes on each stream and connection.
package struct WorkerStreams {
    /// The time without data on a stream, in milliseconds, after which a comment is sent.
    package static let keepAliveInterval: Int64 = 15_000

    /// The workers' streams and wakes of one connection.
    package final class Load {
        fileprivate let connection: ConnectionID
        /// The open streams by number.
        fileprivate var open: [Int32: OpenStream] = [:]
        /// The number of wakes in flight on the connection's streams.
        package fileprivate(set) var wakes = 0

        fileprivate init(_ connection: ConnectionID) {
            self.connection = connection
        }

        /// The open streams in ascending order of number.
        package var streams: [StreamID] {
            self.open.keys.sorted().map { StreamID(connection: self.connection, number: $0) }
        }

        /// The interval of PINGs in seconds; nil for no PINGs. It is shorter while a wake is in flight.
        package var pingSeconds: Int? {
            if self.wakes > 0 { return 5 }
            return self.open.isEmpty ? nil : 30
        }
    }

    fileprivate struct OpenStream {
        /// The proof that the worker showed; nil if no proof was required.
        let proof: ShownProof?
        /// The time of the last write, in milliseconds of the monotonic clock.
        var lastWrite: Int64
        /// The number of the stream's wakes in flight.
        var wakes = 0
        var isPaused = false
    }

    /// The proofs of the streams for which the engine has not answered; nil for a stream without proof.
    private var asked: [StreamID: ShownProof?] = [:]
    /// The loads of the connections, by connection index.
    private var loads: [Load?] = []

    package init() {}

    package var isEmpty: Bool { self.loads.allSatisfy { $0?.open.isEmpty != false } }

    package func isOpen(_ stream: StreamID) -> Bool { self.load(of: stream.connection)?.open[stream.number] != nil }

    /// Returns the load of a connection. Returns nil if the connection has carried no worker's stream since the last
    /// `removeAll`.
    package func load(of connection: ConnectionID) -> Load? {
        let place = Int(connection.index)
        guard place < self.loads.count, let load = self.loads[place], load.connection == connection else { return nil }
        return load
    }

    /// Changes an open stream, and returns the result of `change`; nil if the stream is not open.
    @inline(__always)
    private func update<Result>(_ stream: StreamID, _ change: (Load, inout OpenStream) -> Result) -> Result? {
        guard let load = self.load(of: stream.connection), let place = load.open.index(forKey: stream.number) else {
            return nil
        }
        return change(load, &load.open.values[place])
    }

    // MARK: Coming and going

    /// Records a requested stream. The caller must call `takeAsked` for it later.
    ///
    /// - `proof`: the proof that the worker showed; nil if no proof was required.
    package mutating func ask(_ stream: StreamID, _ proof: ShownProof?) {
        self.asked.updateValue(proof, forKey: stream)
    }

    /// Returns true if the stream was requested and the engine has not answered.
    package func isPending(_ stream: StreamID) -> Bool { !self.asked.isEmpty && self.asked[stream] != nil }

    /// Removes a requested stream, because the engine has answered or the stream has closed.
    ///
    /// - Returns: the proof that the worker showed; nil if no proof was required.
    @discardableResult
    package mutating func takeAsked(_ stream: StreamID) -> ShownProof? {
        self.asked.isEmpty ? nil : self.asked.removeValue(forKey: stream) ?? nil
    }

    /// Adds an open stream; has no effect if the stream is already open.
    ///
    /// - `proof`: the proof that the worker showed; nil if no proof was required.
    package mutating func begin(_ stream: StreamID, _ proof: ShownProof?, now: Int64) {
        let load = self.load(of: stream.connection) ?? self.beginLoad(of: stream.connection)
        guard load.open[stream.number] == nil else { return }
        load.open[stream.number] = OpenStream(proof: proof, lastWrite: now)
    }

    private mutating func beginLoad(of connection: ConnectionID) -> Load {
        let (load, place) = (Load(connection), Int(connection.index))
        if place >= self.loads.count {
            self.loads += Array(repeating: nil, count: place + 1 - self.loads.count)
        }
        // The earlier connection with this index has closed, so its streams are removed.
        self.loads[place] = load
        return load
    }

    /// Removes a closed stream and its wakes.
    ///
    /// - Returns: true if the stream was open.
    package mutating func remove(_ stream: StreamID) -> Bool {
        guard let load = self.load(of: stream.connection), let ended = load.open.removeValue(forKey: stream.number)
        else { return false }
        load.wakes -= ended.wakes
        return true
    }

    /// Removes a connection and all its open streams.
    ///
    /// - Returns: the removed streams.
    package mutating func removeAll(of connection: ConnectionID) -> [StreamID] {
        guard let load = self.load(of: connection) else { return [] }
        self.loads[Int(connection.index)] = nil
        return load.streams
    }

    // MARK: Wakes

    /// Adds a wake to a stream.
    ///
    /// - Returns: true if the wake is the connection's only wake; nil if the stream is not open.
    package mutating func give(to stream: StreamID) -> Bool? { self.change(stream, by: 1).map { $0 == 1 } }

    /// Removes a wake from a stream.
    ///
    /// - Returns: true if the connection has no other wake; nil if the stream is not open.
    package mutating func release(from stream: StreamID) -> Bool? { self.change(stream, by: -1).map { $0 == 0 } }

    /// - Returns: the connection's number of wakes after the change.
    private mutating func change(_ stream: StreamID, by change: Int) -> Int? {
        self.update(stream) { load, open in
            open.wakes += change
            load.wakes += change
            return load.wakes
        }
    }

    // MARK: Bytes

    /// Records a write to a stream.
    ///
    /// - `queued`: the number of bytes that are now queued on the stream.
    /// - `bytesMax`: the maximum number of queued bytes with which a stream gets new wakes.
    /// - Returns: true if the stream must get no new wakes.
    package mutating func wrote(to stream: StreamID, queued: Int, bytesMax: Int, now: Int64) -> Bool {
        self.update(stream) { _, open in
            open.lastWrite = now
            guard queued > bytesMax, !open.isPaused else { return false }
            open.isPaused = true
            return true
        } ?? false
    }

    /// Records that a stream's queue has drained to half of the limit.
    ///
    /// - Returns: true if the stream may get new wakes again.
    package mutating func drained(_ stream: StreamID) -> Bool {
        self.update(stream) { _, open in
            defer { open.isPaused = false }
            return open.isPaused
        } ?? false
    }

    // MARK: Every second

    /// Returns the streams that have been silent for `keepAliveInterval`.
    package func silent(now: Int64) -> [StreamID] {
        self.streams { now - $0.lastWrite >= Self.keepAliveInterval }
    }

    /// Returns the streams whose proof is rejected by `isGood`.
    package func withoutProof(_ isGood: (ShownProof?) -> Bool) -> [StreamID] {
        self.streams { !isGood($0.proof) }
    }

    private func streams(where isMeant: (OpenStream) -> Bool) -> [StreamID] {
        var streams: [StreamID] = []
        for case let load? in self.loads {
            for (number, stream) in load.open where isMeant(stream) {
                streams.append(StreamID(connection: load.connection, number: number))
            }
        }
        return streams
    }
}
