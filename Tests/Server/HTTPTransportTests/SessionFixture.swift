import HTTPTransport
import Testing
import Wire

/// One HTTP/2 session without socket, thread or clock: bytes in, frames and events out.
final class SessionFixture {
    let memory: LoopMemory
    let library: HTTP2Library
    let handler = RecordingHandler()
    let session: HTTP2Session

    /// - Parameters:
    ///   - other: another session of the same loop; nil for a loop of its own.
    ///   - hasBegun: whether the preface and our settings were received, and the answers taken.
    ///   - acknowledges: whether the server's settings are acknowledged then.
    init(
        _ limits: TransportLimits = TransportLimits(),
        beside other: SessionFixture? = nil,
        settings: [UInt8] = [],
        hasBegun: Bool = true,
        acknowledges: Bool = true
    ) {
        let streams = StreamPool(streamsMax: limits.streamsPerLoopMax)
        self.memory = other?.memory ?? LoopMemory(limits: limits, streams: streams, now: 1000)
        self.library = other?.library ?? HTTP2Library(limits: limits)
        self.session = HTTP2Session(
            memory: self.memory,
            library: self.library,
            handler: self.handler,
            id: ConnectionID(index: 7, generation: 1),
            listener: 0
        )
        self.handler.session = self.session
        guard hasBegun else { return }
        self.receive(ScriptedPeer.preface + ScriptedPeer.frame(4, settings))
        _ = self.produce()
        if acknowledges { self.receive(ScriptedPeer.frame(4, flags: 1)) }
    }

    func receive(_ bytes: [UInt8]) {
        bytes.withByteView { self.session.receive($0) }
    }

    func produceBytes() -> [UInt8] {
        var output = ByteBuffer()
        self.session.produce(into: &output, bytesMax: .max)
        return output.view.array
    }

    func produce() -> [ScriptedPeer.Frame] {
        ScriptedPeer.frames(in: self.produceBytes())
    }

    /// How often a bound was met.
    func times(_ limit: TransportLimit) -> Int { self.memory.tally.times(limit) }

    /// The events since they were last taken.
    func takeEvents() -> [String] {
        defer { self.handler.events = [] }
        return self.handler.events
    }

    /// Whether the connection is over, by the peer's fault or in order.
    var isOver: Bool { self.session.hasFailed || self.session.isFinished }

    func respond(_ number: Int32, body: StaticString? = nil) -> Bool {
        self.session.respond(number, Response(), body: body.map { ByteView($0) })
    }

    /// Lets time pass, and holds the session to its promise of when it need not be looked at.
    func passSeconds(_ seconds: Int64) -> Bool {
        let quietUntil = self.session.wantsToWrite ? 0 : self.session.isQuietUntil
        self.memory.now += seconds * 1000
        let isAlive = self.session.secondPassed()
        if self.memory.now < quietUntil { #expect(isAlive && !self.session.wantsToWrite) }
        return isAlive
    }
}

/// Writes down what it is told; answers `/echo` with the body, and leaves everything else to the test.
final class RecordingHandler: RequestHandler {
    weak var session: HTTP2Session?
    var events: [String] = []
    /// The most bytes of a body that any request has held.
    var bodyBytesHeld = 0
    private let response = Response()

    func bodyBytesMax(for request: Request) -> Int {
        self.events.append("limit \(request.stream.number)")
        return 4096
    }

    func requestReceived(_ request: Request) {
        let headers = (0..<request.headerCount).map { index in
            let field = request.header(at: index)
            return "\(field.name.string)=\(field.value.string)"
        }
        self.bodyBytesHeld = max(self.bodyBytesHeld, request.body.count)
        self.events.append(
            "\(request.stream.number) \(request.method.string) \(request.path.string) \(request.authority.string) "
                + "\(headers.joined(separator: ",")) \(request.isBodyTooLarge ? "too large" : request.body.string)"
                + (request.shortage == .none ? "" : "no room: \(request.shortage)")
        )
        guard request.path == "/echo" else { return }
        self.response.begin(status: request.isBodyTooLarge ? 413 : 200)
        _ = self.session?.respond(request.stream.number, self.response, body: request.body)
    }

    func streamClosed(_ stream: StreamID) { self.events.append("closed \(stream.number)") }
    func connectionClosed(_: ConnectionID) { self.events.append("connection closed") }
    func streamDrained(_ stream: StreamID) { self.events.append("drained \(stream.number)") }
    func turnEnded() {}
    func woken() {}
    func secondPassed(_: Int64) {}
    func alarmRang(_: Int64) {}
}
