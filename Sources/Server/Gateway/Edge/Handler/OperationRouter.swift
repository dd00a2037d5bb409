import Engine
import HTTPTransport
import Platform
import Wire

/// Routes the requests of one loop that are not pushes. Finds the operation of a request, admits the caller, and
/// performs the operation.
final class OperationRouter {
    private let parts: LoopParts
    private let admission: CallerAdmission
    private let workers: WorkerFeed
    private let live: LiveFeed
    private let events: EventFeed
    private var traces = PushTraceReader()
    /// The cached match of the request whose head was received last.
    private var lastMatch: (stream: StreamID, match: OperationMatch)?

    init(
        _ parts: LoopParts,
        _ admission: CallerAdmission,
        _ workers: WorkerFeed,
        _ live: LiveFeed,
        _ events: EventFeed
    ) {
        self.parts = parts
        self.admission = admission
        self.workers = workers
        self.live = live
        self.events = events
    }

    /// Returns the maximum size of a request's body in bytes.
    func bodyBytesMax(of request: Request, _ role: ListenerRole) -> Int {
        let match = OperationTable.gateway.match(method: request.method, path: Self.target(of: request).path, on: role)
        self.lastMatch = (request.stream, match)
        guard case .found(let operation, _) = match else { return RequestBody.bytesMax }
        return self.bytesMax(operation.bodyLimit)
    }

    /// Routes a complete request.
    func route(_ request: Request, _ role: ListenerRole) {
        let (path, query) = Self.target(of: request)
        do throws(APIError) {
            switch self.takeMatch(request, path, role) {
            case .notFound: throw Self.badPath(request.method, path, role)
            case .methodNotAllowed(let allow):
                let error = Self.badMethod(request.method, path, role, allow: allow)
                self.parts.answers.answer(request.stream, error, allow: allow)
            case .found(let operation, let place):
                let parameter = path[place.first]
                let admission = try self.admission.admit(request, to: operation, parameter, role)
                self.parts.limits.admitted(request.stream.connection)
                try self.count(request, operation, admission.caller)
                guard !request.isBodyTooLarge else {
                    let message = "The body is longer than \(self.bytesMax(operation.bodyLimit)) bytes; send less."
                    throw APIError(413, "PayloadTooLarge", message)
                }
                let call = OperationCall(
                    operation,
                    by: admission.caller,
                    reply: self.parts.loop.address(request.stream),
                    parameter: parameter,
                    secondParameter: path[place.second],
                    query: query,
                    body: request.body,
                    // Only submissions lead to launches, which need the trace.
                    trace: operation.rate == .submissions ? self.traces.read(request) : ByteView(),
                    services: self.parts.shared.services
                )
                try self.carryOut(try operation.act(on: call), call, request.stream, admission)
            }
        } catch {
            self.parts.answers.answer(request.stream, error)
        }
    }

    /// Returns the error for a path that this listener does not have. If the other listener has the path, the error
    /// names it.
    private static func badPath(_ method: ByteView, _ path: ByteView, _ role: ListenerRole) -> APIError {
        let isAdmin = role == .admin
        switch OperationTable.gateway.match(method: method, path: path, on: isAdmin ? .edge : .admin) {
        case .notFound: return .badPath
        case .found, .methodNotAllowed: return isAdmin ? .routeOfEdge : .routeOfAdmin
        }
    }

    /// Returns the error for a method that this listener does not have on the path. If the other listener has the
    /// method, the error names it.
    private static func badMethod(
        _ method: ByteView,
        _ path: ByteView,
        _ role: ListenerRole,
        allow: String
    ) -> APIError {
        let other: ListenerRole = role == .admin ? .edge : .admin
        guard case .found = OperationTable.gateway.match(method: method, path: path, on: other) else {
            return APIError(405, "MethodNotAllowed", "This route takes \(allow).")
        }
        let place = role == .admin ? APIError.routeOfEdge : .routeOfAdmin
        return APIError(405, "MethodNotAllowed", "This route takes \(allow) here. \(place.message)")
    }

    /// Returns true if a path is a GET route of the admin listener, such as the dashboard's page or the metrics.
    static func isOfAdmin(_ request: Request) -> Bool {
        let path = self.target(of: request).path
        guard case .found = OperationTable.gateway.match(method: ByteView("GET"), path: path, on: .admin) else {
            return false
        }
        return true
    }

    /// Counts a request of an operation whose rate is limited for each credential.
    private func count(_ request: Request, _ operation: Operation, _ caller: Caller) throws(APIError) {
        guard let rate = operation.rate else { return }
        let holder = StreamHolder(caller, from: self.parts.loop.network(of: request.stream.connection))
        try self.parts.counts.count(rate, of: holder, now: SystemClock.monotonic)
    }

    /// Returns the match of a request. The cached match is used if no other request began before the body was complete.
    private func takeMatch(_ request: Request, _ path: ByteView, _ role: ListenerRole) -> OperationMatch {
        if let last = self.lastMatch, last.stream == request.stream {
            self.lastMatch = nil
            return last.match
        }
        return OperationTable.gateway.match(method: request.method, path: path, on: role)
    }

    private func bytesMax(_ limit: Operation.BodyLimit) -> Int {
        switch limit {
        case .small: RequestBody.bytesMax
        case .faultRules: self.parts.shared.services.faults == nil ? RequestBody.bytesMax : FaultRuleReader.bytesMax
        case .payload: PushPayload.bytesMax(type: nil)
        case .testPush: RequestBody.testPushBytesMax
        }
    }

    /// Returns the path of a request without its query, and the query.
    private static func target(of request: Request) -> (path: ByteView, query: ByteView) {
        guard let mark = request.path.firstIndex(of: UInt8(ascii: "?")) else { return (request.path, ByteView()) }
        return (request.path[0..<mark], request.path.dropFirst(mark + 1))
    }

    private func carryOut(
        _ outcome: OperationOutcome,
        _ call: OperationCall,
        _ stream: StreamID,
        _ admission: AdmittedCaller
    ) throws(APIError) {
        switch outcome {
        case .answered(let answer): self.parts.answers.answer(stream, answer)
        case .asked(let work): self.ask(work, call)
        case .subscribed(let topic, let subscription):
            guard !self.parts.shared.isDraining else { throw .shutdown }
            let holder = StreamHolder(admission.caller, from: self.parts.loop.network(of: stream.connection))
            try self.parts.counts.count(stream, of: holder)
            self.workers.ask(stream, admission.proof)
            self.ask(.subscribe(topic: topic, subscription), call)
        case .watching: try self.live.open(stream, admission.proof)
        case .following(let filter): try self.events.open(stream, filter, admission.proof)
        case .handedOn: ()
        }
    }

    /// Sends a command to the engine on behalf of the caller.
    private func ask(_ work: EngineWork, _ call: OperationCall) {
        self.parts.outbox.append(
            .request(
                EngineRequest(
                    reply: call.reply,
                    caller: call.caller,
                    afterFailedStore: call.afterFailedStore,
                    work
                )
            )
        )
    }
}
