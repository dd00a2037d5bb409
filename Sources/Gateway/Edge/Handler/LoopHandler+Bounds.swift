import APNSProtocol
import Access
import Answers
import Bytes
import EngineRoom
import HTTPTransport
import Settings

/// What is refused because somebody has too much of it.
extension LoopHandler {
    /// Answers a request that there was no room for before all of it had arrived: its own client has begun too many, or
    /// all clients together have.
    func refuseForShortage(_ request: Request, _ role: ListenerRole) {
        let isOwnFault = request.shortage == .connection
        guard Operation.isOfProviders(path: request.path, on: role) else {
            return self.answer(request.stream, isOwnFault ? .tooManyRequests : .overloaded)
        }
        let reason: APNSReason = isOwnFault ? .tooManyRequests : .serviceUnavailable
        self.batch.append(.rejected(reason: reason.index, topic: []))
        self.refuse(request.stream, reason, self.newAPNsID(), retryAfterSeconds: Self.shortageSeconds)
    }

    /// What was begun has mostly arrived by then.
    private static let shortageSeconds: UInt32 = 1

    /// Counts a connection under the bearer token it shows; one that shows several in turn counts under the last.
    ///
    /// - Throws: `tooManyConnections` when there are as many with that token as there may be.
    func count(_ token: BearerToken, on connection: ConnectionID) throws(APIError) {
        let before = self.bearers[connection]
        guard before != token.id else { return }
        guard self.shared.credentials.begin(.bearerToken(token.id)) else {
            self.endForCredential(connection)
            throw .tooManyConnections
        }
        if let before { self.shared.credentials.end(.bearerToken(before)) }
        self.bearers[connection] = token.id
    }

    /// Counts a worker's stream under what its worker showed, or where it comes from.
    ///
    /// - Throws: `tooManyStreams` when there are as many as there may be.
    func countStream(_ stream: StreamID, of caller: Caller) throws(APIError) {
        let holder = StreamHolder(caller, from: self.loop.network(of: stream.connection))
        guard self.shared.workerStreams.begin(holder) else {
            self.shared.tally.met(.streamsPerCredentialMax)
            throw .tooManyStreams
        }
        self.streamHolders[stream] = holder
    }

    /// A stream has ended, or was never one of a worker's.
    func uncountStream(_ stream: StreamID) {
        guard let holder = self.streamHolders.removeValue(forKey: stream) else { return }
        self.shared.workerStreams.end(holder)
    }

    /// Forgets under what a connection was counted.
    func connectionOfCredentialClosed(_ connection: ConnectionID) {
        self.excessConnections.remove(connection)
        if let token = self.bearers.removeValue(forKey: connection) {
            self.shared.credentials.end(.bearerToken(token))
        }
        guard let holder = self.authorization.holder(of: connection) else { return }
        self.shared.credentials.end(.certificate(holder.subject))
    }

    /// A connection is one too many of its credential, and is answered so: it ends within a second.
    ///
    /// Not with the answer itself: GOAWAY overtakes the answer's body, and some clients read nothing after it.
    func endForCredential(_ connection: ConnectionID) {
        guard self.excessConnections.insert(connection).inserted else { return }
        self.shared.tally.met(.connectionsPerCredentialMax)
    }

    func endExcessConnections() {
        for connection in self.excessConnections {
            self.loop.goAway(connection, debugData: ByteView("{\"reason\":\"TooManyRequests\"}"))
        }
        self.excessConnections.removeAll()
    }
}
