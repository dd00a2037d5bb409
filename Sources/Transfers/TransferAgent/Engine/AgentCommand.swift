package import HTTPTransport
import Wire

/// Changes some of a session's settings.
package typealias SessionChange = @Sendable (inout TransferSession) -> Void

/// A submitted transfer.
package struct TransferSubmission: Hashable, Sendable {
    package var kind: TransferKind
    package var spec: TransferSpec
    /// The server as scheme, host and port.
    package var host: String
    package var earliestBegin: Int64
    /// The time after which the whole transfer fails, in milliseconds; nil for the session's value.
    package var resourceTimeout: Int64?

    package init(kind: TransferKind, spec: TransferSpec, host: String, earliestBegin: Int64) {
        self.kind = kind
        self.spec = spec
        self.host = host
        self.earliestBegin = earliestBegin
    }
}

/// A command of a caller.
package enum AgentCommand: Sendable {
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
    /// True if the body is JSON; false if it is Prometheus text.
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

/// Output of the agent's thread for a caller.
package enum AgentOutput: Sendable {
    case answer(StreamID, AgentAnswer)
    /// Begins an event stream with these bytes.
    case begin(StreamID, [UInt8])
    case write(StreamID, [UInt8])
    /// Requests a `read` message with this number when the follower has read all earlier writes. The number is that of
    /// the session's last announcement.
    case confirm(StreamID, announcement: Int)
    case finish(StreamID)
}

/// A message for the agent's thread.
package enum AgentMessage: Sendable {
    case command(StreamID, AgentCommand)
    /// The follower of an event stream has read everything that was written before the `confirm` with this number.
    case read(StreamID, announcement: Int)
    /// The follower of an event stream has disconnected. `hasRead` is the number of the last `confirm` whose earlier
    /// writes the follower has read; nil if there is none.
    case gone(StreamID, hasRead: Int?)
    case attempt(TransferID, number: Int, AttemptNews)
    /// The result of a move. Without a stream, an earlier process began the move.
    case moved(StreamID?, TransferID, StateFiles.TakeFault?)
    case outbox(sequence: Int64, OutboxEntry.Outcome)
    case machine(MachineState)
    /// The gateway's answer to the question whether the app was force-quit on a device, or the reason why there is
    /// none.
    case forceQuit(device: String, Result<Bool, GatewayFault>)
}
