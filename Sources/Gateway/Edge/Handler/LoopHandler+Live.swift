import Access
import Answers
import Bytes
import EngineRoom
import HTTPTransport
import Settings

/// The streams of those who watch: one event a second, the same for all.
extension LoopHandler {
    /// The bytes that may wait for somebody who watches, some ten events; whoever reads more slowly is dropped, as the
    /// past is worth less to them than the present.
    static let liveBytesMax = 262_144

    /// A stream of somebody who watches.
    struct LiveStream {
        /// What its operator showed; nil when nobody asked.
        let caller: ShownProof?
        /// The moment of the event it was sent last, in milliseconds since 1970.
        var lastAt: Int64 = 0
    }

    /// Opens a stream; its first event comes within a second.
    ///
    /// - Throws: `tooManyLiveStreams` when there are as many as there may be.
    func openLive(_ stream: StreamID, _ caller: ShownProof?) throws(APIError) {
        guard !self.shared.isDraining else { throw .shutdown }
        guard self.shared.services.live.readerCame() else {
            self.shared.tally.met(.liveStreamsMax)
            throw .tooManyLiveStreams
        }
        self.response.begin(status: 200)
        self.response.add("content-type", "text/event-stream")
        self.response.add("cache-control", "no-store")
        guard self.loop.beginStreaming(stream, self.response) else { return self.shared.services.live.readerWent() }
        self.liveStreams[stream] = LiveStream(caller: caller)
        _ = self.loop.write(stream, ByteView(": samples follow, one a second\n\n"))
    }

    /// Sends every stream what is new.
    func writeLive() {
        for (stream, state) in self.liveStreams {
            guard self.authorization.tokens.admitsOperator(state.caller) else {
                self.liveStreamClosed(stream)
                self.loop.finish(stream)
                continue
            }
            let facts = {
                ProcessFacts(connections: self.shared.connectionCount, startedAt: self.shared.services.live.startedAt)
            }
            guard let event = self.shared.services.live.event(after: state.lastAt, facts) else { continue }
            self.liveStreams[stream]?.lastAt = event.at
            let queued = event.bytes.withByteView { self.loop.write(stream, $0) }
            guard let queued, queued > Self.liveBytesMax else { continue }
            self.liveStreamClosed(stream)
            self.loop.reset(stream, code: .cancel)
        }
    }

    /// Forgets a stream, if it is one of these.
    func liveStreamClosed(_ stream: StreamID) {
        guard self.liveStreams.removeValue(forKey: stream) != nil else { return }
        self.shared.services.live.readerWent()
    }

    /// Ends the streams of a connection that is to end.
    func endLive(on connection: ConnectionID) {
        for stream in self.liveStreams.keys where stream.connection == connection {
            self.liveStreamClosed(stream)
            self.loop.finish(stream)
        }
    }
}
