import Engine
import HTTPTransport
import Wire

/// The event streams of operators on one loop.
final class EventFeed {
    /// The time without data, in milliseconds, after which a comment is sent on a stream.
    private static let silenceMax: Int64 = 15_000

    /// An operator's event stream.
    private struct EventStream {
        /// The proof that the operator showed; nil if no proof was required.
        let proof: ShownProof?
        let filter: EventFilter
        /// True while the stream's queue is full. Events are dropped until the queue has drained.
        var isBehind = false
        /// The number of dropped events that were not yet reported to the reader.
        var missed = 0
        /// The time of the last write, in milliseconds of the monotonic clock; nil if a write followed the last check.
        var writtenAt: Int64?
    }

    private let parts: LoopParts
    private let admission: CallerAdmission
    private var streams: [StreamID: EventStream] = [:]
    /// The id of this loop at the event service; nil while the loop has no event stream.
    private var follower: Int?
    private var events: [WatchedEvent] = []

    init(_ parts: LoopParts, _ admission: CallerAdmission) {
        self.parts = parts
        self.admission = admission
    }

    private var service: EventService { self.parts.shared.services.events }

    /// Opens a stream that receives all events from now on.
    ///
    /// - `proof`: the proof that the operator showed; nil if no proof was required.
    /// - Throws: `tooManyEventStreams` if the maximum number of event streams is open.
    func open(_ stream: StreamID, _ filter: EventFilter, _ proof: ShownProof?) throws(APIError) {
        guard !self.parts.shared.isDraining else { throw .shutdown }
        guard self.service.readers.came() else {
            self.parts.shared.tally.met(.eventStreamsMax)
            throw .tooManyEventStreams
        }
        // Earlier events are sent first, so only the streams that are already open receive them.
        self.woken()
        guard self.parts.answers.beginEvents(stream) else { return self.service.readers.went() }
        if self.follower == nil { self.follower = self.service.follow { [loop = self.parts.loop] in loop.wake() } }
        self.streams[stream] = EventStream(proof: proof, filter: filter)
        self.write(ByteView(": events follow\n\n"), to: stream)
    }

    /// Sends the pending events.
    func woken() {
        guard let follower = self.follower else { return }
        while true {
            let taken = self.service.take(follower, into: &self.events)
            if taken.missed > 0 { self.noteMissed(taken.missed) }
            for event in self.events { self.send(event) }
            self.events.removeAll(keepingCapacity: true)
            if taken.isAll { return }
        }
    }

    private func send(_ watched: WatchedEvent) {
        guard let event = LiveEvent(watched) else { return }
        var bytes: [UInt8] = []
        for (stream, state) in self.streams where state.filter.takes(event) {
            guard !state.isBehind else {
                self.streams[stream]?.missed += 1
                continue
            }
            if bytes.isEmpty { bytes = LiveNews.event(event).wireForm }
            bytes.withByteView { self.write($0, to: stream) }
        }
    }

    /// Counts events that the event service dropped because this loop was too slow. Notifies the readers.
    private func noteMissed(_ count: Int) {
        self.parts.shared.tally.met(.eventsHeldMax)
        for stream in self.streams.keys {
            self.streams[stream]?.missed += count
            if self.streams[stream]?.isBehind == false { self.reportMissed(stream) }
        }
    }

    private func reportMissed(_ stream: StreamID) {
        guard let missed = self.streams[stream]?.missed, missed > 0 else { return }
        self.streams[stream]?.missed = 0
        LiveNews.missed(missed).wireForm.withByteView { self.write($0, to: stream) }
    }

    private func write(_ bytes: ByteView, to stream: StreamID) {
        self.streams[stream]?.writtenAt = nil
        let loop = self.parts.loop
        guard let queued = loop.write(stream, bytes), queued > loop.streamingBytesSoftMax else { return }
        self.streams[stream]?.isBehind = true
    }

    /// Resumes a stream whose queue has drained.
    func drained(_ stream: StreamID) {
        guard self.streams[stream]?.isBehind == true else { return }
        self.streams[stream]?.isBehind = false
        self.reportMissed(stream)
    }

    /// Ends the streams whose proof is no longer valid, and writes a comment to silent streams.
    func secondPassed(_ now: Int64) {
        for (stream, state) in self.streams {
            guard self.admission.authorization.tokens.admitsOperator(state.proof) else {
                self.streamClosed(stream)
                self.parts.loop.finish(stream)
                continue
            }
            guard let writtenAt = state.writtenAt else {
                self.streams[stream]?.writtenAt = now
                continue
            }
            guard !state.isBehind, now - writtenAt >= Self.silenceMax else { continue }
            self.write(ByteView(": keep-alive\n\n"), to: stream)
        }
    }

    /// Removes a stream; has no effect if it is not an event stream.
    func streamClosed(_ stream: StreamID) {
        guard self.streams.removeValue(forKey: stream) != nil else { return }
        self.service.readers.went()
        guard self.streams.isEmpty, let follower = self.follower else { return }
        self.service.leave(follower)
        self.follower = nil
    }

    /// Ends the event streams of a connection that is about to end.
    func end(_ connection: ConnectionID) {
        for stream in self.streams.keys where stream.connection == connection {
            self.streamClosed(stream)
            self.parts.loop.finish(stream)
        }
    }
}
