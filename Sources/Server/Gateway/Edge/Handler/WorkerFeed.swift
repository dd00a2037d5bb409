import Engine
import HTTPTransport
import Platform
import Policy
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

    /// The engine has subscribed a stream: its answer begins.
    ///
    /// - Returns: whether its connection is to be told goodbye.
    func subscribed(_ address: StreamAddress) -> Bool {
        let stream = StreamID(address)
        let proof = self.streams.takeAsked(stream)
        guard self.answers.beginEvents(stream, name: self.names.name(of: self.loop.loopStream(stream))) else {
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
