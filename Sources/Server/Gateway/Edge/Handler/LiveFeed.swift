import HTTPTransport
import Wire

/// The streams of those who watch, on one loop: one event a second, the same for all.
final class LiveFeed {
    /// The bytes that may wait for somebody who watches, some ten events; whoever reads more slowly is dropped, as the
    /// past is worth less to them than the present.
    private static let queuedBytesMax = 262_144

    /// A stream of somebody who watches.
    private struct LiveStream {
        /// What its operator showed; nil when nobody asked.
        let proof: ShownProof?
        /// The moment of the event it was sent last, in milliseconds since 1970.
        var lastAt: Int64 = 0
    }

    private let loop: EventLoop
    private let shared: SharedParts
    private let answers: AnswerWriter
    private let admission: CallerAdmission
    private var streams: [StreamID: LiveStream] = [:]

    init(_ loop: EventLoop, _ shared: SharedParts, _ answers: AnswerWriter, _ admission: CallerAdmission) {
        self.loop = loop
        self.shared = shared
        self.answers = answers
        self.admission = admission
    }

    private var desk: LiveDesk { self.shared.services.live }

    /// Opens a stream; its first event comes within a second.
    ///
    /// - Parameter proof: what its operator showed; nil when nobody asked.
    /// - Throws: `tooManyLiveStreams` when there are as many as there may be.
    func open(_ stream: StreamID, _ proof: ShownProof?) throws(APIError) {
        guard !self.shared.isDraining else { throw .shutdown }
        guard self.desk.readerCame() else {
            self.shared.tally.met(.liveStreamsMax)
            throw .tooManyLiveStreams
        }
        guard self.answers.beginEvents(stream) else { return self.desk.readerWent() }
        self.streams[stream] = LiveStream(proof: proof)
        _ = self.loop.write(stream, ByteView(": samples follow, one a second\n\n"))
    }

    /// Sends every stream what is new, and ends those whose proof is good no more.
    func secondPassed() {
        for (stream, state) in self.streams {
            guard self.admission.admitsOperator(state.proof) else {
                self.streamClosed(stream)
                self.loop.finish(stream)
                continue
            }
            let facts = { ProcessFacts(connections: self.shared.connectionCount, startedAt: self.desk.startedAt) }
            guard let event = self.desk.event(after: state.lastAt, facts) else { continue }
            self.streams[stream]?.lastAt = event.at
            let queued = event.bytes.withByteView { self.loop.write(stream, $0) }
            guard let queued, queued > Self.queuedBytesMax else { continue }
            self.streamClosed(stream)
            self.loop.reset(stream, code: .cancel)
        }
    }

    /// Forgets a stream, if it is one of these.
    func streamClosed(_ stream: StreamID) {
        guard self.streams.removeValue(forKey: stream) != nil else { return }
        self.desk.readerWent()
    }

    /// Ends the streams of a connection that is to end.
    func end(_ connection: ConnectionID) {
        for stream in self.streams.keys where stream.connection == connection {
            self.streamClosed(stream)
            self.loop.finish(stream)
        }
    }
}
