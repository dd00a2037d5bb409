package import HTTPTransport
import Wire

/// A change of a session's settings. A member that is nil leaves the setting unchanged.
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

/// A submitted transfer.
package struct TransferSubmission: Hashable, Sendable {
    package var kind: TransferKind
    package var spec: TransferSpec
    /// The scheme, host and port of the server.
    package var host: String
    package var earliestBegin: Int64
    /// The time after which the whole transfer is abandoned, in milliseconds; nil for the session's value.
    package var resourceTimeout: Int64?

    package init(kind: TransferKind, spec: TransferSpec, host: String, earliestBegin: Int64) {
        self.kind = kind
        self.spec = spec
        self.host = host
        self.earliestBegin = earliestBegin
    }
}

/// A command of a caller.
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

/// The answer to a caller.
package struct AgentAnswer: Hashable, Sendable {
    package var status: Int
    package var body: [UInt8]
    /// True if the body is JSON; false for Prometheus text.
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

/// Output for callers.
package enum AgentOutput: Sendable {
    case answer(StreamID, AgentAnswer)
    /// Begins an event stream with these bytes.
    case begin(StreamID, [UInt8])
    case write(StreamID, [UInt8])
    /// Requests a `read` message with this number when the follower has read all earlier writes. The number is that of
    /// the last announced end of the session.
    case confirm(StreamID, telling: Int)
    case finish(StreamID)
}

/// A message for the agent's thread.
package enum AgentMessage: Sendable {
    case command(StreamID, AgentCommand)
    /// The follower of an event stream has read all writes before the `confirm` with this number.
    case read(StreamID, telling: Int)
    /// The follower of an event stream has disconnected. `hasRead` is the number of the last `confirm` before which all
    /// writes were read; nil if there is none.
    case gone(StreamID, hasRead: Int?)
    case attempt(TransferID, number: Int, AttemptNews)
    case moved(StreamID, TransferID, StateFiles.TakeFault?)
    case outbox(sequence: Int64, OutboxEntry.Outcome)
    case machine(MachineState)
    /// The gateway's answer whether the app was force-quit on a device, or the reason for no answer.
    case forceQuit(device: String, Result<Bool, GatewayFault>)
}
