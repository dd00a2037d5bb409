import Engine
import HTTPTransport
import Platform
import Policy
import Wire

/// Writes the answers of one loop. Head and body are written into reused buffers.
final class AnswerWriter {
    private let loop: EventLoop
    private let response = Response()
    /// The body of a push's answer; empty except while one is written.
    private var body = ByteBuffer()
    /// The body of any other answer; empty except while one is written.
    private var writer = JSONWriter()

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    // MARK: Operations

    /// - Parameters:
    ///   - allow: the methods that the path accepts, if it does not accept the request's.
    ///   - apnsID: the id of the push, for a request that counts as one.
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
    /// - Parameters:
    ///   - name: the name by which the worker knows the stream; nil for a stream of an operator.
    ///   - warning: the likely mistake in the worker's subscription.
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

    // MARK: Pushes

    /// Answers a push with the engine's reply.
    func answer(_ stream: StreamID, _ reply: PushReply) {
        if let reason = reply.reason {
            self.refuse(
                stream,
                reason,
                reply.apnsID,
                timestamp: reply.timestamp,
                retryAfterSeconds: reply.retryAfterSeconds
            )
            return
        }
        self.response.begin(status: 200)
        self.addID(reply.apnsID)
        if let disposition = reply.disposition { self.response.add("wakegate-disposition", disposition.name) }
        if let eligibleAt = reply.eligibleAt { self.response.add("wakegate-eligible-at", eligibleAt) }
        if let held = reply.held { self.response.add("wakegate-held", held.name) }
        if !reply.warnings.isEmpty {
            for text in reply.warnings.texts { self.response.add("wakegate-warning", text) }
        }
        _ = self.loop.respond(stream, self.response, body: nil)
    }

    /// Answers a refused push: one DATA frame with the reason.
    ///
    /// - Parameters:
    ///   - timestamp: the time at which the token was removed, in milliseconds since 1970.
    ///   - retryAfterSeconds: the delay before the provider should send it again; 0 if unknown.
    /// - Returns: false if the stream has closed.
    @discardableResult
    func refuse(
        _ stream: StreamID,
        _ reason: APNSReason,
        _ apnsID: APNsID,
        timestamp: Int64? = nil,
        retryAfterSeconds: UInt32 = 0
    ) -> Bool {
        self.response.begin(status: reason.status)
        self.addID(apnsID)
        self.response.add("content-type", "application/json")
        if reason == .methodNotAllowed { self.response.add("allow", "POST") }
        if retryAfterSeconds > 0 {
            self.response.add("retry-after", Int64(retryAfterSeconds))
        } else if reason == .shutdown || reason == .serviceUnavailable {
            self.response.add("retry-after", "5")
        } else if reason == .tooManyRequests {
            self.response.add("retry-after", "60")
        }
        reason.writeBody(to: &self.body, timestampMilliseconds: timestamp)
        defer { self.body.removeAll() }
        return self.loop.respond(stream, self.response, body: self.body.view)
    }

    /// Answers a push as a fault rule specifies.
    ///
    /// - Returns: false if the stream has closed.
    func refuse(_ stream: StreamID, _ answer: FaultAnswer, _ apnsID: APNsID) -> Bool {
        self.response.begin(status: answer.status)
        self.addID(apnsID)
        self.response.add("content-type", "application/json")
        if let seconds = answer.retryAfterSeconds { self.response.add("retry-after", Int64(seconds)) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("reason")
        writer.string(answer.reason)
        switch answer.timestamp {
        case .absent: ()
        case .usual:
            if answer.status == 410 {
                writer.key("timestamp")
                writer.integer(SystemClock.wall)
            }
        case .at(let moment):
            writer.key("timestamp")
            writer.integer(moment)
        }
        writer.endObject()
        return self.loop.respond(stream, self.response, body: writer.buffer.view)
    }

    private func addID(_ apnsID: APNsID) {
        self.response.add("apns-id") { apnsID.write(to: &$0) }
    }

    // MARK: Connections

    /// Ends a connection with a reason of the provider API.
    func goAway(_ connection: ConnectionID, _ reason: APNSReason, inFlight: StreamsInFlight = .finished) {
        reason.writeBody(to: &self.body, timestampMilliseconds: nil)
        self.loop.goAway(connection, debugData: self.body.view, inFlight: inFlight)
        self.body.removeAll()
    }
}
