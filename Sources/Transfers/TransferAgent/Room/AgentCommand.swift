package import HTTPTransport
import Wire

/// A change of a session; what is nil stays.
package struct SessionChange: Hashable, Sendable {
    package var device: String?
    package var topic: String?
    package var isDiscretionary: Bool?
    package var sendsLaunchEvents: Bool?
    package var allowsMetered: Bool?
    package var allowsConstrained: Bool?
    package var continuesAfterForceQuit: Bool?
    package var acceptsEarlyAnswers: Bool?
    package var requestTimeout: Int64?
    package var resourceTimeout: Int64?
    package var connectionsPerHost: Int?

    package init() {}

    package func applied(to session: TransferSession) -> TransferSession {
        var changed = session
        if let device = self.device { changed.device = device }
        if let topic = self.topic { changed.topic = topic }
        if let value = self.isDiscretionary { changed.isDiscretionary = value }
        if let value = self.sendsLaunchEvents { changed.sendsLaunchEvents = value }
        if let value = self.allowsMetered { changed.allowsMetered = value }
        if let value = self.allowsConstrained { changed.allowsConstrained = value }
        if let value = self.continuesAfterForceQuit { changed.continuesAfterForceQuit = value }
        if let value = self.acceptsEarlyAnswers { changed.acceptsEarlyAnswers = value }
        if let value = self.requestTimeout { changed.requestTimeout = value }
        if let value = self.resourceTimeout { changed.resourceTimeout = value }
        if let value = self.connectionsPerHost { changed.connectionsPerHost = value }
        return changed
    }
}

/// A transfer that somebody asks for.
package struct TransferSubmission: Hashable, Sendable {
    package var kind: TransferKind
    package var spec: TransferSpec
    /// Scheme, name and port of the server.
    package var host: String
    package var earliestBegin: Int64
    /// The milliseconds after which the whole transfer is given up; nil for the session's.
    package var resourceTimeout: Int64?

    package init(kind: TransferKind, spec: TransferSpec, host: String, earliestBegin: Int64) {
        self.kind = kind
        self.spec = spec
        self.host = host
        self.earliestBegin = earliestBegin
    }
}

/// What a caller asks of the agent.
package enum AgentCommand: Hashable, Sendable {
    case putSession(String, SessionChange)
    case sessions
    case session(String)
    case deleteSession(String)
    case submit(String, TransferSubmission)
    case transfers(String, state: TransferState?, limit: Int, after: TransferID?)
    case transfer(String, TransferID)
    case cancel(String, TransferID, keeps: Bool)
    case take(String, TransferID, to: String, replaces: Bool)
    case events(String)
    case status
    case metrics
    case health
    case openAPI
}

/// What a caller is answered.
package struct AgentAnswer: Hashable, Sendable {
    package var status: Int
    package var body: [UInt8]
    /// Whether the body is JSON, and no text for Prometheus.
    package var isJSON = true

    package init(_ status: Int, _ body: [UInt8] = []) {
        self.status = status
        self.body = body
    }

    init(_ error: APIError) {
        var json = JSONWriter()
        error.write(to: &json)
        self.init(error.status, json.buffer.view.array)
    }
}

/// What leaves for callers.
package enum AgentOutput: Sendable {
    case answer(StreamID, AgentAnswer)
    /// A stream of events begins with these bytes.
    case begin(StreamID, [UInt8])
    case write(StreamID, [UInt8])
    /// Requests a `read` message with this number as soon as the follower has read all earlier writes. The number
    /// counts the ends of the session that followers were informed of.
    case confirm(StreamID, telling: Int)
    case finish(StreamID)
}

/// What the agent's thread is given.
package enum AgentMessage: Sendable {
    case command(StreamID, AgentCommand)
    /// The follower of a stream of events has read all writes before the `confirm` with this number.
    case read(StreamID, telling: Int)
    /// The follower of a stream of events is gone. It has read all writes before the `confirm` with this number; nil if
    /// it has not read all, or there was none.
    case gone(StreamID, hasRead: Int?)
    case attempt(TransferID, number: Int, AttemptNews)
    case moved(StreamID, TransferID, StateFiles.TakeFault?)
    case outbox(sequence: Int64, OutboxSender.Outcome)
    case machine(MachineState)
    /// The gateway's answer to whether the app was force-quit on a device; nil if there was no answer.
    case forceQuit(device: String, Bool?)
}
