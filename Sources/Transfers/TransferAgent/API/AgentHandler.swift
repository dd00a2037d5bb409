import Glibc
package import HTTPTransport
import Platform
package import ServiceManager
import Wire

/// The answers and events that the agent's thread queues for the event loop, which sends them to callers.
///
/// `@unchecked Sendable`: `monitor` guards all fields.
package final class AgentOutputQueue: @unchecked Sendable {
    private let monitor = Monitor()
    private var waiting: [AgentOutput] = []
    private var loop: EventLoop?

    func attach(_ loop: EventLoop) {
        self.monitor.withLock { self.loop = loop }
    }

    package func leave(_ outputs: [AgentOutput]) {
        let loop = self.monitor.withLock {
            self.waiting += outputs
            return self.loop
        }
        loop?.wake()
    }

    func take() -> [AgentOutput] {
        self.monitor.withLock {
            defer { self.waiting = [] }
            return self.waiting
        }
    }
}

/// Receives requests on the event loop's thread, and sends the answers of the agent's thread.
package final class AgentHandler: RequestHandler {
    private let loop: EventLoop
    private let output: AgentOutputQueue
    private let log: GatewayLog
    private let post: @Sendable ([AgentMessage]) -> Void
    private let ownUser = geteuid()
    private let response = Response()
    private var collected: [AgentMessage] = []
    private let limits: TransferLimits
    /// The connections that may send requests, with the user of the connected process: the agent's own user or root.
    private var users: [ConnectionID: UInt32] = [:]
    /// The open and the requested event streams, with the user of each follower.
    private var followers: [StreamID: UInt32] = [:]
    private var streams: Set<StreamID> = []
    /// The number of the last end of a transfer that each stream has received.
    private var announcements: [StreamID: Int] = [:]
    /// The streams whose follower may not have read the last end of a transfer.
    private var unconfirmed: Set<StreamID> = []
    /// The streams that were written to in this turn. In `behind`, the streams with unsent data from earlier turns.
    private var written: Set<StreamID> = []
    private var behind: Set<StreamID> = []
    private var keepAliveAt: Int64 = 0

    /// The maximum size of a request body, in bytes.
    private static let bodyBytesMax = 262_144
    private static let keepAliveEvery: Int64 = 15_000
    /// The maximum number of bytes of events that a follower may leave unread: 1 MiB, or thousands of events.
    private static let unreadBytesMax = 1 << 20

    package init(
        loop: EventLoop,
        output: AgentOutputQueue,
        log: GatewayLog,
        limits: TransferLimits,
        post: @escaping @Sendable ([AgentMessage]) -> Void
    ) {
        self.loop = loop
        self.limits = limits
        self.output = output
        self.log = log
        self.post = post
        output.attach(loop)
    }

    package func bodyBytesMax(for request: Request) -> Int { Self.bodyBytesMax }

    package func requestReceived(_ request: Request) {
        do throws(APIError) {
            let user = try self.admit(request.stream.connection)
            let command = try Self.command(of: request)
            if case .events = command { try self.admitFollower(request.stream, of: user) }
            self.collected.append(.command(request.stream, command))
        } catch {
            self.send(request.stream, AgentAnswer(error), allow: error.allow)
        }
    }

    /// - Returns: the user of the connected process, which must be the agent's user or root.
    private func admit(_ connection: ConnectionID) throws(APIError) -> UInt32 {
        if let user = self.users[connection] { return user }
        do throws(APIError) {
            let user = try self.user(of: connection)
            self.users[connection] = user
            return user
        } catch {
            // The connection is closed after the answer. It then no longer counts toward the limit.
            self.loop.goAway(connection, debugData: ByteView(""))
            throw error
        }
    }

    private func user(of connection: ConnectionID) throws(APIError) -> UInt32 {
        let user = self.loop.user(of: connection)
        guard let user, user == self.ownUser || user == 0 else {
            self.log.write(.callerRefused, ["user": user.map { "\($0)" } ?? "unknown"])
            let message = "This agent is user \(self.ownUser)'s; start one of your own."
            throw APIError(403, "Forbidden", message)
        }
        let maximum = self.limits.connectionsPerUserMax
        guard self.users.values.count(where: { $0 == user }) < maximum else {
            let remedy = "close some, or raise limits.followers, which is \(self.limits.followersMax)"
            throw self.tooMany("TooManyConnections", "has \(maximum) connections, the most of a user; \(remedy)", user)
        }
        return user
    }

    private func admitFollower(_ stream: StreamID, of user: UInt32) throws(APIError) {
        let maximum = self.limits.followersMax
        guard self.followers.values.count(where: { $0 == user }) < maximum else {
            let words = "has \(maximum) streams of events, the most of a user (limits.followers); end some, or raise it"
            throw self.tooMany("TooManyStreams", words, user)
        }
        self.followers[stream] = user
    }

    private func tooMany(_ reason: String, _ words: String, _ user: UInt32) -> APIError {
        self.log.write(.limitMet, ["limit": "limits.followers", "user": "\(user)"])
        return APIError(429, reason, "User \(user) \(words).")
    }

    private static func command(of request: Request) throws(APIError) -> AgentCommand {
        let target = request.path.string
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = (parts.first ?? "").split(separator: "/", omittingEmptySubsequences: true)
        let method = request.method.string
        var methods: [Substring] = []
        for operation in AgentOperation.allCases {
            guard let names = operation.names(in: path) else { continue }
            guard operation.method == method else {
                methods.append(operation.method)
                continue
            }
            if request.isBodyTooLarge || request.shortage != .none {
                throw APIError(413, "TooLarge", "The body has more than \(self.bodyBytesMax) bytes; send less.")
            }
            let body = operation.hasBody ? try self.body(of: request) : nil
            return try operation.decode(names, AgentQuery(parts.count == 2 ? parts[1] : ""), body)
        }
        guard methods.isEmpty else {
            let allowed = methods.joined(separator: ", ")
            let message = "\(method.prefix(16)) is not taken here; use \(allowed)."
            var error = APIError(405, "MethodNotAllowed", message)
            error.allow = allowed
            throw error
        }
        throw APIError(404, "UnknownRoute", "There is no such route; GET /v1/sessions and GET /v1/status are.")
    }

    private static func body(of request: Request) throws(APIError) -> JSONValue {
        do throws(JSONFault) {
            return try JSONReader.read(request.body.string, refusingRepeatedNames: true)
        } catch {
            guard error.kind == .unreadable else {
                let subject = error.member ?? "The body"
                throw APIError(400, "BadJSON", "\(subject) cannot be read: \(error.what); send it once.")
            }
            throw APIError(400, "BadJSON", "The body is not JSON (byte \(error.column): \(error.what)); correct it.")
        }
    }

    // MARK: Sending

    private func send(_ stream: StreamID, _ answer: AgentAnswer, allow: String? = nil) {
        self.response.begin(status: answer.status)
        // RFC 9110 §15.5.6: an answer with status 405 lists the permitted methods.
        allow?.withByteView { self.response.add("allow", $0) }
        if answer.body.isEmpty {
            self.loop.respond(stream, self.response)
            return
        }
        if answer.isJSON {
            self.response.add("content-type", "application/json")
        } else {
            self.response.add("content-type", "text/plain; version=0.0.4")
        }
        answer.body.withByteView { body in _ = self.loop.respond(stream, self.response, body: body) }
    }

    package func woken() {
        for output in self.output.take() {
            switch output {
            case .answer(let stream, let answer):
                self.followers[stream] = nil
                self.send(stream, answer)
            case .begin(let stream, let bytes):
                self.response.beginEventStream()
                guard self.loop.beginStreaming(stream, self.response) else { continue }
                self.streams.insert(stream)
                self.written.insert(stream)
                bytes.withByteView { _ = self.loop.write(stream, $0) }
            case .write(let stream, let bytes):
                if self.streams.contains(stream) { bytes.withByteView { self.write(stream, $0) } }
            case .confirm(let stream, let announcement):
                guard self.streams.contains(stream) else { continue }
                self.announcements[stream] = announcement
                self.unconfirmed.insert(stream)
            case .finish(let stream):
                if self.streams.contains(stream) { self.loop.finish(stream) }
                self.forget(stream)
            }
        }
    }

    private func forget(_ stream: StreamID) {
        self.streams.remove(stream)
        self.followers[stream] = nil
        self.behind.remove(stream)
        self.unconfirmed.remove(stream)
        self.announcements[stream] = nil
    }

    /// Writes events to a follower. Closes the connection if the follower has left too many bytes unread.
    private func write(_ stream: StreamID, _ bytes: ByteView) {
        guard let queued = self.loop.write(stream, bytes), self.written.insert(stream).inserted else { return }
        // Data is sent at the end of each turn. If data is still queued at the first write of the next turn, the
        // follower has not accepted it.
        let unread = queued - bytes.count
        if unread > 0 { self.behind.insert(stream) } else { self.behind.remove(stream) }
        if unread > Self.unreadBytesMax { self.loop.close(stream.connection) }
    }

    package func streamClosed(_ stream: StreamID) {
        // Data that was written in this turn has not been sent yet.
        let isUnread = self.behind.contains(stream) || self.written.contains(stream) || self.loop.endsUnread
        self.collected.append(.gone(stream, hasRead: isUnread ? nil : self.announcements[stream]))
        self.forget(stream)
    }

    package func connectionClosed(_ connection: ConnectionID) {
        self.users[connection] = nil
    }

    package func turnEnded() {
        self.written.removeAll(keepingCapacity: true)
        guard !self.collected.isEmpty else { return }
        self.post(self.collected)
        self.collected.removeAll(keepingCapacity: true)
    }

    package func secondPassed(_ monotonicMilliseconds: Int64) {
        for stream in self.unconfirmed where self.loop.hasBeenRead(stream.connection) {
            self.unconfirmed.remove(stream)
            if let announcement = self.announcements[stream] {
                self.collected.append(.read(stream, announcement: announcement))
            }
        }
        guard monotonicMilliseconds >= self.keepAliveAt else { return }
        self.keepAliveAt = monotonicMilliseconds + Self.keepAliveEvery
        for stream in self.streams { self.write(stream, ByteView(": keep-alive\n\n")) }
    }
}

/// An operation of the agent's API: its method and its path, in which `*` matches any name.
package enum AgentOperation: String, CaseIterable, Sendable {
    case putSession = "PUT v1/sessions/*"
    case sessions = "GET v1/sessions"
    case session = "GET v1/sessions/*"
    case deleteSession = "DELETE v1/sessions/*"
    case submit = "POST v1/sessions/*/transfers"
    case transfers = "GET v1/sessions/*/transfers"
    case transfer = "GET v1/sessions/*/transfers/*"
    case cancel = "DELETE v1/sessions/*/transfers/*"
    case take = "POST v1/sessions/*/transfers/*/take"
    case events = "GET v1/sessions/*/events"
    case status = "GET v1/status"
    case metrics = "GET metrics"
    case openAPI = "GET openapi.json"
    case health = "GET healthz"

    var method: Substring { self.rawValue.prefix { $0 != " " } }

    /// True if a body is required.
    var hasBody: Bool { [.putSession, .submit, .take].contains(self) }

    /// Returns the names in a path of this operation; nil if the path belongs to another operation.
    func names(in parts: [Substring]) -> [String]? {
        let path = self.rawValue.dropFirst(self.method.count + 1).split(separator: "/")
        guard parts.count == path.count, zip(parts, path).allSatisfy({ $1 == "*" || $0 == $1 }) else { return nil }
        return zip(parts, path).compactMap { $1 == "*" ? String($0) : nil }
    }

    /// Decodes a request, given the names in its path, its query and its body.
    func decode(_ names: [String], _ query: AgentQuery, _ body: JSONValue?) throws(APIError) -> AgentCommand {
        let session = names.isEmpty ? "" : try AgentInput.session(names[0])
        switch self {
        case .putSession: return .putSession(session, try AgentInput.change(body))
        case .sessions: return .sessions
        case .session: return .session(session)
        case .deleteSession: return .deleteSession(session)
        case .submit: return .submit(session, try AgentInput.submission(body))
        case .transfers:
            let states = TransferState.allCases.map(\.name).joined(separator: ", ")
            let state = try query.value("state", "one of \(states)") { text in
                TransferState.allCases.first { $0.name == text }
            }
            let limits = 1...AgentEngine.listMax
            let limit = try query.value("limit", "a number from 1 to \(AgentEngine.listMax)") { text in
                Int(text).flatMap { limits.contains($0) ? $0 : nil }
            }
            let after = try query.value("after", "the id of a transfer of the session") { TransferID($0) }
            return .transfers(session, state: state, limit: limit ?? 1000, after: after)
        case .transfer: return .transfer(session, try AgentInput.transfer(names[1]))
        case .cancel:
            let keeps = try query.value("keep", "keep=1, or nothing") { ["0": false, "1": true][$0] }
            return .cancel(session, try AgentInput.transfer(names[1]), keeps: keeps ?? false)
        case .take:
            let (path, replaces) = try AgentInput.place(body)
            return .take(session, try AgentInput.transfer(names[1]), to: path, replaces: replaces)
        case .events: return .events(session)
        case .status: return .status
        case .metrics: return .metrics
        case .openAPI: return .openAPI
        case .health: return .health
        }
    }
}

/// The query of a request.
package struct AgentQuery: Sendable {
    private var values: [String: String] = [:]

    package init(_ text: Substring) {
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            self.values[String(parts[0])] = parts.count == 2 ? String(parts[1]) : ""
        }
    }

    /// Returns the value of a parameter; nil if it is missing.
    func value<Value>(
        _ name: String,
        _ remedy: String,
        _ read: (String) -> Value?
    ) throws(APIError) -> Value? {
        guard let text = self.values[name] else { return nil }
        guard let value = read(text) else {
            throw APIError(400, "BadQuery", "\(name) is \"\(text)\"; write \(remedy).")
        }
        return value
    }
}
