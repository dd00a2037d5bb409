import HTTPTransport
import Wire

/// Writes the answers of one loop into reused buffers.
final class AnswerWriter {
    let loop: EventLoop
    let response = Response()
    /// The body of the answer to a push; empty except during a call.
    var body = ByteBuffer()
    /// The body of any other answer; empty except during a call.
    private var writer = JSONWriter()

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    // MARK: Operations

    /// - `allow`: the methods that the path accepts. It is set for a request with another method.
    /// - `apnsID`: the id of the push. It is set for a request that counts as a push.
    func answer(_ stream: StreamID, _ error: APIError, allow: String? = nil, _ apnsID: APNsID? = nil) {
        var writer = JSONWriter()
        error.write(to: &writer)
        self.begin(status: error.status)
        if let apnsID { self.addID(apnsID) }
        allow?.withByteView { self.response.add("allow", $0) }
        if error.isChallenge { self.response.add("www-authenticate", "Bearer") }
        _ = self.loop.respond(stream, self.response, body: writer.buffer.view)
    }

    func answer(_ stream: StreamID, _ answer: OperationAnswer) {
        self.response.begin(status: answer.status)
        guard !answer.body.isEmpty else {
            _ = self.loop.respond(stream, self.response, body: nil)
            return
        }
        self.response.add("content-type", answer.type)
        for field in answer.fields { self.response.add(field.name, field.value) }
        answer.body.withByteView { _ = self.loop.respond(stream, self.response, body: $0) }
    }

    /// Answers a request with its outcome.
    func answer(_ stream: StreamID, _ outcome: Outcome) {
        outcome.write(to: &self.writer)
        if self.writer.buffer.view.isEmpty {
            self.response.begin(status: outcome.status)
            _ = self.loop.respond(stream, self.response, body: nil)
        } else {
            self.begin(status: outcome.status, outcome.kind.mediaType)
            _ = self.loop.respond(stream, self.response, body: self.writer.buffer.view)
        }
        self.writer.removeAll()
    }

    /// Begins a stream of events.
    ///
    /// - `name`: the name that identifies the stream to the worker; nil for a stream of an operator.
    /// - `warning`: the warning about a likely mistake in the worker's subscription.
    /// - Returns: false if the stream has closed.
    func beginEvents(_ stream: StreamID, name: String? = nil, _ warning: String? = nil) -> Bool {
        self.response.beginEventStream()
        name?.withByteView { self.response.add("wakegate-stream", $0) }
        warning?.withByteView { self.response.add("wakegate-warning", $0) }
        return self.loop.beginStreaming(stream, self.response)
    }

    private func begin(status: Int, _ mediaType: StaticString = "application/json") {
        self.response.begin(status: status)
        self.response.add("content-type", mediaType)
        if status == 503 { self.response.add("retry-after", "5") }
        if status == 429 { self.response.add("retry-after", "60") }
    }

    // MARK: Connections

    /// Ends a connection with a reason of the provider API.
    func goAway(_ connection: ConnectionID, _ reason: APNSReason, inFlight: StreamsInFlight = .finished) {
        reason.writeBody(to: &self.body, timestampMilliseconds: nil)
        self.loop.goAway(connection, debugData: self.body.view, inFlight: inFlight)
        self.body.removeAll()
    }
}
