import HTTPTransport
import Wire

/// The live streams of operators on one loop. All streams get the same event once a second.
final class LiveFeed {
    /// The maximum number of bytes in a stream's queue, about ten events. A reader that is slower is disconnected,
    /// because old samples are of little use.
    private static let queuedBytesMax = 262_144

    /// An operator's live stream.
    private struct LiveStream {
        /// The proof that the operator showed; nil if no proof was required.
        let proof: ShownProof?
        /// The time of the last event that was sent, in milliseconds since 1970.
        var lastAt: Int64 = 0
    }

    private let parts: LoopParts
    private let admission: CallerAdmission
    private var streams: [StreamID: LiveStream] = [:]

    init(_ parts: LoopParts, _ admission: CallerAdmission) {
        self.parts = parts
        self.admission = admission
    }

    private var service: LiveService { self.parts.shared.services.live }

    /// Opens a stream. Its first event follows within a second.
    ///
    /// - `proof`: the proof that the operator showed; nil if no proof was required.
    /// - Throws: `tooManyLiveStreams` if the maximum number of live streams is open.
    func open(_ stream: StreamID, _ proof: ShownProof?) throws(APIError) {
        guard !self.parts.shared.isDraining else { throw .shutdown }
        guard self.service.readers.came() else {
            self.parts.shared.tally.met(.liveStreamsMax)
            throw .tooManyLiveStreams
        }
        guard self.parts.answers.beginEvents(stream) else { return self.service.readers.went() }
        self.streams[stream] = LiveStream(proof: proof)
        _ = self.parts.loop.write(stream, ByteView(": samples follow, one a second\n\n"))
    }

    /// Sends the new events to every stream, and ends the streams whose proof is no longer valid.
    func secondPassed() {
        for (stream, state) in self.streams {
            guard self.admission.authorization.tokens.admitsOperator(state.proof) else {
                self.streamClosed(stream)
                self.parts.loop.finish(stream)
                continue
            }
            let (shared, service) = (self.parts.shared, self.service)
            let facts = { ProcessFacts(connections: shared.connectionCount, startedAt: service.startedAt) }
            guard let event = self.service.event(after: state.lastAt, facts) else { continue }
            self.streams[stream]?.lastAt = event.at
            let queued = event.bytes.withByteView { self.parts.loop.write(stream, $0) }
            guard let queued, queued > Self.queuedBytesMax else { continue }
            self.streamClosed(stream)
            self.parts.loop.reset(stream, code: .cancel)
        }
    }

    /// Removes a stream; has no effect if it is not a live stream.
    func streamClosed(_ stream: StreamID) {
        guard self.streams.removeValue(forKey: stream) != nil else { return }
        self.service.readers.went()
    }

    /// Ends the live streams of a connection that is about to end.
    func end(_ connection: ConnectionID) {
        for stream in self.streams.keys where stream.connection == connection {
            self.streamClosed(stream)
            self.parts.loop.finish(stream)
        }
    }
}
