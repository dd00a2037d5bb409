import APNSProtocol
import Access
import Answers
import Bytes
import DeviceEngine
import EngineRoom
import HTTPTransport
import Settings
import WakeDispatch
import WakeFormat

extension LoopHandler {
    /// Takes a request of the worker or admin API.
    func route(_ request: Request, _ role: ListenerRole) {
        let (path, query) = Self.target(of: request)
        do throws(APIError) {
            switch OperationTable.gateway.match(method: request.method, path: path, on: role) {
            case .notFound: throw .badPath
            case .methodNotAllowed(let allow):
                let error = APIError(405, "MethodNotAllowed", "This route takes \(allow).")
                self.answer(request.stream, error, allow: allow)
            case .found(let operation, let parameter):
                let admission = try self.admit(request, to: operation, parameter, role)
                if self.beginsWithOneStream { self.liftStreamLimit(request.stream.connection) }
                guard !request.isBodyTooLarge else {
                    let message = "The body is longer than \(self.bytesMax(operation.bodyLimit)) bytes; send less."
                    throw APIError(413, "PayloadTooLarge", message)
                }
                let call = OperationCall(
                    operation,
                    by: admission.caller,
                    reply: self.address(request.stream),
                    parameter: parameter,
                    query: query,
                    body: request.body,
                    services: self.shared.services
                )
                try self.carryOut(try operation.act(on: call), call, request.stream, admission)
            }
        } catch {
            self.answer(request.stream, error)
        }
    }

    /// Answers a caller that may not use this listener.
    func refuseCaller(_ request: Request) {
        if Self.isPush(request.path) {
            self.batch.append(.rejected(reason: APNSReason.forbidden.index, topic: []))
            self.refuse(request.stream, .forbidden, self.newAPNsID())
            return
        }
        let message =
            "Requests for another host, for two hosts or none, or from a page of another origin, are refused on this "
            + "listener; use its loopback or configured address."
        self.answer(request.stream, APIError(403, "Forbidden", message))
    }

    /// The most bytes that the body of a request of the worker or admin API may have.
    func bodyBytesMax(of request: Request, _ role: ListenerRole) -> Int {
        let (path, _) = Self.target(of: request)
        guard case .found(let operation, _) = OperationTable.gateway.match(method: request.method, path: path, on: role)
        else { return self.bytesMax(.small) }
        return self.bytesMax(operation.bodyLimit)
    }

    private func bytesMax(_ limit: Operation.BodyLimit) -> Int {
        switch limit {
        case .small: RequestBody.bytesMax
        case .faultRules: self.faults == nil ? RequestBody.bytesMax : FaultRuleReader.bytesMax
        case .payload: PushPayload.bytesMax(type: nil)
        }
    }

    /// The path of a request and the query behind it.
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
        case .answered(let answer): self.answer(stream, answer)
        case .asked(let verb): self.ask(verb, call)
        case .subscribed(let topic, let subscription):
            guard !self.shared.isDraining else { throw .shutdown }
            try self.countStream(stream, of: admission.caller)
            self.subscribers[stream] = admission.proof
            self.ask(.subscribe(topic: topic, subscription), call)
        case .watching: try self.openLive(stream, admission.proof)
        case .handedOn: ()
        }
    }

    /// Asks the engine in the name of whoever sent the request.
    private func ask(_ verb: EngineVerb, _ call: OperationCall) {
        self.batch.append(
            .request(
                EngineRequest(
                    reply: call.reply,
                    caller: call.caller,
                    afterFailedStore: call.afterFailedStore,
                    verb
                )
            )
        )
    }
}

// MARK: - Answers

extension LoopHandler {
    func answer(_ stream: StreamID, _ error: APIError, allow: String? = nil) {
        var writer = JSONWriter()
        error.write(to: &writer)
        self.begin(status: error.status)
        allow?.withByteView { self.response.add("allow", $0) }
        if error.isChallenge { self.response.add("www-authenticate", "Bearer") }
        _ = self.loop.respond(stream, self.response, body: writer.buffer.view)
    }

    private func answer(_ stream: StreamID, _ answer: OperationAnswer) {
        self.response.begin(status: answer.status)
        guard !answer.body.isEmpty else {
            _ = self.loop.respond(stream, self.response, body: nil)
            return
        }
        self.response.add("content-type", answer.type)
        for field in answer.fields { self.response.add(field.name, field.value) }
        answer.body.withByteView { _ = self.loop.respond(stream, self.response, body: $0) }
    }

    private func begin(status: Int, _ mediaType: StaticString = "application/json") {
        self.response.begin(status: status)
        self.response.add("content-type", mediaType)
        if status == 503 { self.response.add("retry-after", "5") }
        if status == 429 { self.response.add("retry-after", "60") }
    }

    /// Does what the engine has for this loop.
    func take(_ effect: Effect) {
        switch effect {
        case .pushAnswer(let reply): self.answerPush(reply)
        case .answer(let address, let outcome): self.answer(address, outcome)
        case .subscribed(let address): self.subscribed(address)
        case .wake(let address, let wake): self.deliver(wake, to: address)
        case .expired(let address, let wake): self.wakeExpired(wake, on: address)
        case .released(let address, _): self.wakeReleased(address)
        case .drained(let address): self.drained(address)
        case .draining: self.startDraining()
        }
    }

    private func answer(_ address: StreamAddress, _ outcome: Outcome) {
        let stream = self.stream(address)
        self.subscribers[stream] = nil
        self.uncountStream(stream)
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

    private func subscribed(_ address: StreamAddress) {
        let stream = self.stream(address)
        let caller = self.subscribers.removeValue(forKey: stream)
        self.response.begin(status: 200)
        self.response.add("content-type", "text/event-stream")
        self.response.add("cache-control", "no-store")
        let name = self.shared.services.streamNames.name(of: self.loopStream(stream))
        name.withByteView { self.response.add("wakegate-stream", $0) }
        guard self.loop.beginStreaming(stream, self.response) else {
            // The peer went away while its subscription was on its way.
            self.batch.append(.streamEnded(address))
            return
        }
        self.streams[stream] = OpenStream(caller: caller)
        self.workerConnections[stream.connection, default: WorkerConnection()].streams.insert(stream)
        self.updatePing(stream.connection)
    }

    private func deliver(_ wake: StagedWake, to address: StreamAddress) {
        let stream = self.stream(address)
        guard self.streams[stream] != nil else { return }
        self.streams[stream]?.wakes += 1
        self.workerConnections[stream.connection]?.wakes += 1
        if self.workerConnections[stream.connection]?.wakes == 1 { self.updatePing(stream.connection) }
        wake.wake.writeEvent(to: &self.writer)
        self.write(stream, self.writer.buffer.view)
        self.writer.removeAll()
    }

    private func wakeExpired(_ wake: WakeID, on address: StreamAddress) {
        let stream = self.stream(address)
        guard self.streams[stream] != nil else { return }
        Wake.writeExpiredEvent(wake, to: &self.writer)
        self.write(stream, self.writer.buffer.view)
        self.writer.removeAll()
    }

    private func drained(_ address: StreamAddress) {
        let stream = self.stream(address)
        guard self.streams[stream] != nil else { return }
        self.streamClosed(stream)
        self.loop.finish(stream)
    }

    private func wakeReleased(_ address: StreamAddress) {
        let stream = self.stream(address)
        guard self.streams[stream] != nil else { return }
        self.streams[stream]?.wakes -= 1
        self.workerConnections[stream.connection]?.wakes -= 1
        if self.workerConnections[stream.connection]?.wakes == 0 { self.updatePing(stream.connection) }
    }
}
