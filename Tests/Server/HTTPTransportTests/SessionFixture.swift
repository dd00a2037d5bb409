import HTTPTransport
import Testing
import Wire

extension TransportLimits {
    /// Creates the default limits with a change.
    init(_ change: (inout TransportLimits) -> Void) {
        self.init()
        change(&self)
    }
}

/// An HTTP/2 session without socket, thread or clock: bytes in, frames and events out.
final class SessionFixture {
    let memory: LoopMemory
    let library: HTTP2Library
    let handler = RecordingHandler()
    let session: HTTP2Session

    /// - Parameters:
    ///   - other: another session of the same loop; nil for a separate loop.
    ///   - hasBegun: true if the preface and settings are received, and the answers taken.
    ///   - acknowledges: true if the server's settings are acknowledged afterwards.
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
        self.receive(ScriptedPeer.preface + ScriptedPeer.frame(.settings, settings))
        _ = self.produce()
        if acknowledges { self.receive(ScriptedPeer.frame(.settings, flags: .ack)) }
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

    /// Returns the number of times that a limit was reached.
    func times(_ limit: TransportLimit) -> Int { self.memory.tally.times(limit) }

    /// Returns the events since the last call.
    func takeEvents() -> [String] {
        defer { self.handler.events = [] }
        return self.handler.events
    }

    /// True if the connection has ended, with or without an error of the peer.
    var isOver: Bool { self.session.hasFailed || self.session.isFinished }

    func respond(_ number: Int32, body: StaticString? = nil) -> Bool {
        self.session.respond(number, Response(), body: body.map { ByteView($0) })
    }

    /// Passes time, and checks that the session has announced correctly when it needs to be checked.
    func passSeconds(_ seconds: Int64) -> Bool {
        let quietUntil = self.session.wantsToWrite ? 0 : self.session.isQuietUntil
        self.memory.now += seconds * 1000
        let isAlive = self.session.secondPassed()
        if self.memory.now < quietUntil { #expect(isAlive && !self.session.wantsToWrite) }
        return isAlive
    }
}

/// Records its calls. It answers `/echo` with the body, and leaves all other requests to the test.
final class RecordingHandler: RequestHandler {
    weak var session: HTTP2Session?
    var events: [String] = []
    /// The maximum number of body bytes held of any request.
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
    func streamDrained(_ stream: StreamID) { self.events.append("drained \(stream.number)") }
}
