import Engine
import HTTPTransport
import Wire

/// The streams of those who follow what happens, on one loop.
final class EventFeed {
    /// The silence, in milliseconds, after which a stream gets a comment.
    private static let silenceMax: Int64 = 15_000

    /// A stream of somebody who follows.
    private struct EventStream {
        /// What its operator showed; nil when nobody asked.
        let proof: ShownProof?
        let filter: EventFilter
        /// As many bytes wait as may: events are left out until fewer do.
        var isBehind = false
        /// How many events it was not sent that it has not been told of.
        var missed = 0
        /// When something was written last, in milliseconds of the monotonic clock; nil when it was since that was
        /// last looked at.
        var writtenAt: Int64?
    }

    private let loop: EventLoop
    private let shared: SharedParts
    private let answers: AnswerWriter
    private let admission: CallerAdmission
    private var queuedBytesMax: Int
    private var streams: [StreamID: EventStream] = [:]
    /// What the desk knows this loop by; nil while it has no such stream.
    private var follower: Int?
    private var events: [WatchedEvent] = []

    init(_ loop: EventLoop, _ shared: SharedParts, _ answers: AnswerWriter, _ admission: CallerAdmission) {
        self.loop = loop
        self.shared = shared
        self.answers = answers
        self.admission = admission
        self.queuedBytesMax = shared.settings.transport.streamingBytesSoftMax
    }

    private var desk: EventDesk { self.shared.services.events }

    /// The bytes that may wait on one stream from now on.
    func setQueuedBytesMax(_ count: Int) { self.queuedBytesMax = count }

    /// Opens a stream, which is told what happens from now on.
    ///
    /// - Parameter proof: what its operator showed; nil when nobody asked.
    /// - Throws: `tooManyEventStreams` when there are as many as there may be.
    func open(_ stream: StreamID, _ filter: EventFilter, _ proof: ShownProof?) throws(APIError) {
        guard !self.shared.isDraining else { throw .shutdown }
        guard self.desk.readerCame() else {
            self.shared.tally.met(.eventStreamsMax)
            throw .tooManyEventStreams
        }
        // What happened before is not for this one.
        self.woken()
        guard self.answers.beginEvents(stream) else { return self.desk.readerWent() }
        if self.follower == nil { self.follower = self.desk.follow { [loop = self.loop] in loop.wake() } }
        self.streams[stream] = EventStream(proof: proof, filter: filter)
        self.write(ByteView(": events follow\n\n"), to: stream)
    }

    /// Sends what has happened.
    func woken() {
        guard let follower = self.follower else { return }
        while true {
            let taken = self.desk.take(follower, into: &self.events)
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

    /// The loop was too slow for so many events, which some of its streams would have taken.
    private func noteMissed(_ count: Int) {
        self.shared.tally.met(.eventsHeldMax)
        for stream in self.streams.keys {
            self.streams[stream]?.missed += count
            if self.streams[stream]?.isBehind == false { self.tellMissed(stream) }
        }
    }

    private func tellMissed(_ stream: StreamID) {
        guard let missed = self.streams[stream]?.missed, missed > 0 else { return }
        self.streams[stream]?.missed = 0
        LiveNews.missed(missed).wireForm.withByteView { self.write($0, to: stream) }
    }

    private func write(_ bytes: ByteView, to stream: StreamID) {
        self.streams[stream]?.writtenAt = nil
        guard let queued = self.loop.write(stream, bytes), queued > self.queuedBytesMax else { return }
        self.streams[stream]?.isBehind = true
    }

    /// The reader of a stream that was behind has read on.
    func drained(_ stream: StreamID) {
        guard self.streams[stream]?.isBehind == true else { return }
        self.streams[stream]?.isBehind = false
        self.tellMissed(stream)
    }

    /// Ends the streams whose proof is good no more, and lets silent ones be heard.
    func secondPassed(_ now: Int64) {
        for (stream, state) in self.streams {
            guard self.admission.admitsOperator(state.proof) else {
                self.streamClosed(stream)
                self.loop.finish(stream)
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

    /// Forgets a stream, if it is one of these.
    func streamClosed(_ stream: StreamID) {
        guard self.streams.removeValue(forKey: stream) != nil else { return }
        self.desk.readerWent()
        guard self.streams.isEmpty, let follower = self.follower else { return }
        self.desk.leave(follower)
        self.follower = nil
    }

    /// Ends the streams of a connection that is to end.
    func end(_ connection: ConnectionID) {
        for stream in self.streams.keys where stream.connection == connection {
            self.streamClosed(stream)
            self.loop.finish(stream)
        }
    }
}
