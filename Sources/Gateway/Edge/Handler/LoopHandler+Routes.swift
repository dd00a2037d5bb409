import APNSProtocol
import Access
import Answers
package import Bytes
package import DeviceEngine
import EngineRoom
import HTTPTransport
import LaunchPolicy
import Settings
import Text
package import WakeDispatch

extension LoopHandler {
    /// Takes a request of the worker or admin API.
    func route(_ request: Request, _ role: ListenerRole) {
        let query = request.path.firstIndex(of: UInt8(ascii: "?"))
        let path = query.map { request.path[0..<$0] } ?? request.path
        do throws(APIError) {
            switch RouteMatch(method: request.method, path: path, role: role) {
            case .notFound: throw .badPath
            case .methodNotAllowed(let allow):
                let error = APIError(405, "MethodNotAllowed", "This route takes \(allow).")
                self.answer(request.stream, error, allow: allow)
            case .found(let route):
                let caller = try self.caller(of: request, by: route, role)
                if self.beginsWithOneStream { self.liftStreamLimit(request.stream.connection) }
                guard !request.isBodyTooLarge else {
                    let message = "The body is longer than \(self.bodyBytesMax(for: request)) bytes; send less."
                    throw APIError(413, "PayloadTooLarge", message)
                }
                let query = query.map { request.path.dropFirst($0 + 1) } ?? ByteView()
                try self.perform(route, request, query: query, caller)
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

    private func perform(
        _ route: Route,
        _ request: Request,
        query: ByteView,
        _ caller: ShownProof?
    ) throws(APIError) {
        let reply = self.address(request.stream)
        let scope = caller?.scope ?? .all
        switch route {
        case .subscribe(let topic):
            let query = try SubscriptionQuery(query)
            let topic = try Self.topic(topic)
            guard !self.context.isDraining else { throw .shutdown }
            try self.countStream(request.stream, of: caller)
            self.subscribers[request.stream] = caller
            self.batch.append(.subscribe(reply: reply, topic: topic, query.request))
        case .report(let wake):
            let result = try Self.result(request.body)
            guard let wake = wake.withByteView({ WakeID($0) }) else { throw .unknownWake }
            self.submit(.report(reply: reply, wake, result), scope)
        case .extend(let wake):
            let milliseconds = try RequestBody.extension(request.body)
            guard let wake = wake.withByteView({ WakeID($0) }) else { throw .unknownWake }
            self.submit(.extend(reply: reply, wake, milliseconds: milliseconds), scope)
        case .drainStream(let name):
            guard let stream = StreamAddress(name: name) else { throw .unknownStream }
            self.submit(.drainStream(reply: reply, stream), scope)
        case .register(let topic):
            let topic = try Self.topic(topic)
            let token = try Self.registrationToken(request.body) ?? self.newDeviceToken()
            self.submit(.register(reply: reply, token, topic: topic), scope)
        case .unregister(let token): self.submit(.unregister(reply: reply, try Self.token(token)), scope)
        case .conditions(let token):
            let token = try Self.token(token)
            let report = try ConditionsReport(
                try RequestBody.object(request.body, reason: "BadCondition")
            )
            self.submit(.conditions(reply: reply, token, report), scope)
        case .statistics: self.batch.append(.statistics(reply: reply))
        case .topicStatistics(let topic):
            self.batch.append(.topicStatistics(reply: reply, topic: try Self.topic(topic)))
        case .topics: self.submit(.topics(reply: reply), scope)
        case .explain(let token): self.submit(.explain(reply: reply, try Self.token(token)), scope)
        case .devicePushes(let token): self.submit(.devicePushes(reply: reply, try Self.token(token)), scope)
        case .push(let text):
            let query = try PushQuery(query)
            guard let apnsID = text.withByteView({ APNsID($0) }) else { throw .unknownPush }
            self.batch.append(.push(reply: reply, apnsID, device: query.device))
        case .simulateLaunch(let token): self.submit(.simulateLaunch(reply: reply, try Self.token(token)), scope)
        case .simulateExpiration(let token):
            self.submit(.simulateExpiration(reply: reply, try Self.token(token)), scope)
        case .whatIf(let token):
            let whatIf = try WhatIf(try RequestBody.object(request.body, reason: "BadPolicy"))
            self.submit(.whatIf(reply: reply, try Self.token(token), whatIf), scope)
        case .live: try self.openLive(request.stream, caller)
        case .samples: try self.samples(request.stream, query)
        case .page(let name): try self.answerPage(request.stream, name)
        case .backup: try self.context.backups.start(try Self.backupName(request.body), reply: reply)
        case .reload: try self.context.reloads.start(reply: reply)
        case .faults(let route): try self.perform(route, request)
        case .alive: self.answer(request.stream, status: 200, "{\"alive\":true}")
        case .ready: self.batch.append(.readiness(reply: reply))
        case .version: self.answer(request.stream, status: 200, Self.version)
        case .openAPI: PackageResources.openapi_json.withByteView { self.answer(request.stream, status: 200, $0) }
        case .metrics: self.context.metrics.ask(reply: reply)
        }
    }

    private func submit(_ command: EngineCommand, _ scope: TopicScope) {
        self.batch.append(scope == .all ? command : .within(scope, command))
    }

    private static let version = "{\"version\":\"\(wakeGateVersion)\",\"build\":\"\(BuildKind.name)\"}"

    private static func topic(_ text: String) throws(APIError) -> [UInt8] {
        guard text.withByteView({ PushHead.isTopic($0) }) else { throw .badTopic }
        return Array(text.utf8)
    }

    private static func token(_ text: String) throws(APIError) -> DeviceToken {
        guard let token = text.withByteView({ DeviceToken(hex: $0) }) else { throw .badDeviceToken }
        return token
    }

    private static func result(_ body: ByteView) throws(APIError) -> FetchResult {
        let object = try RequestBody.object(body, reason: "BadResult")
        guard case .string(let text)? = object["result"], let result = FetchResult(rawValue: text) else {
            let message = "result is \(object["result"]?.described ?? "missing"); send newData, noData or failed."
            throw APIError(400, "BadResult", message)
        }
        return result
    }

    private static func backupName(_ body: ByteView) throws(APIError) -> String {
        let object = try RequestBody.object(body, reason: "BadName")
        guard case .string(let name)? = object["name"] else { throw .badName }
        return name
    }

    /// The token a registration names; nil when its body is empty or names none.
    private static func registrationToken(_ body: ByteView) throws(APIError) -> DeviceToken? {
        guard !body.isEmpty else { return nil }
        let object = try RequestBody.object(body, reason: "BadDeviceToken")
        if let other = object.members.map(\.name).first(where: { $0 != "token" }) {
            throw APIError(400, "BadDeviceToken", "\(other) is not a member of a registration; it takes token alone.")
        }
        switch object["token"] {
        case nil, .null?: return nil
        case .string(let text)?: return try self.token(text)
        case .bool?, .number?, .array?, .object?: throw .badDeviceToken
        }
    }
}

// MARK: - Answers

extension LoopHandler: EffectTaker {
    func answer(_ stream: StreamID, _ error: APIError, allow: String? = nil) {
        var writer = JSONWriter()
        error.write(to: &writer)
        self.begin(status: error.status)
        allow?.withByteView { self.response.add("allow", $0) }
        if error.isChallenge { self.response.add("www-authenticate", "Bearer") }
        _ = self.loop.respond(stream, self.response, body: writer.buffer.view)
    }

    private func answer(_ stream: StreamID, status: Int, _ json: String) {
        json.withByteView { self.answer(stream, status: status, $0) }
    }

    func answer(_ stream: StreamID, status: Int, _ json: ByteView) {
        self.begin(status: status)
        _ = self.loop.respond(stream, self.response, body: json)
    }

    private func begin(status: Int) {
        self.response.begin(status: status)
        self.response.add("content-type", "application/json")
        if status == 503 { self.response.add("retry-after", "5") }
        if status == 429 { self.response.add("retry-after", "60") }
    }

    package func answer(_ address: StreamAddress, status: Int, body: ByteView) {
        self.subscribers[self.stream(address)] = nil
        self.uncountStream(self.stream(address))
        if body.isEmpty {
            self.response.begin(status: status)
            _ = self.loop.respond(self.stream(address), self.response, body: nil)
        } else {
            self.begin(status: status)
            _ = self.loop.respond(self.stream(address), self.response, body: body)
        }
    }

    package func answerMetrics(_ address: StreamAddress, _ text: ByteView) {
        self.response.begin(status: 200)
        self.response.add("content-type", "text/plain; version=0.0.4; charset=utf-8")
        _ = self.loop.respond(self.stream(address), self.response, body: text)
    }

    package func subscribed(_ address: StreamAddress) {
        let stream = self.stream(address)
        let caller = self.subscribers.removeValue(forKey: stream)
        self.response.begin(status: 200)
        self.response.add("content-type", "text/event-stream")
        self.response.add("cache-control", "no-store")
        address.name.withByteView { self.response.add("wakegate-stream", $0) }
        guard self.loop.beginStreaming(stream, self.response) else {
            // The peer went away while its subscription was on its way.
            self.batch.append(.streamEnded(address))
            return
        }
        self.streams[stream] = OpenStream(caller: caller)
        self.workerConnections[stream.connection, default: WorkerConnection()].streams.insert(stream)
        self.updatePing(stream.connection)
    }

    package func event(_ address: StreamAddress, isWake: Bool, _ bytes: ByteView) {
        let stream = self.stream(address)
        guard self.streams[stream] != nil else { return }
        if isWake {
            self.streams[stream]?.wakes += 1
            self.workerConnections[stream.connection]?.wakes += 1
            if self.workerConnections[stream.connection]?.wakes == 1 { self.updatePing(stream.connection) }
        }
        self.write(stream, bytes)
    }

    package func drained(_ address: StreamAddress) {
        let stream = self.stream(address)
        guard self.streams[stream] != nil else { return }
        self.streamClosed(stream)
        self.loop.finish(stream)
    }

    package func released(_ address: StreamAddress, _ wake: WakeID) {
        let stream = self.stream(address)
        guard self.streams[stream] != nil else { return }
        self.streams[stream]?.wakes -= 1
        self.workerConnections[stream.connection]?.wakes -= 1
        if self.workerConnections[stream.connection]?.wakes == 0 { self.updatePing(stream.connection) }
    }
}
