package import HTTPTransport
package import Wire

/// What the connections, workers' streams and bounded requests of one loop count under; how many there are of each
/// credential, all loops know together.
package final class CredentialCounts {
    private let connections: ConnectionCounts<Credential>
    private let workerStreams: ConnectionCounts<StreamHolder>
    private let rates: CredentialRates
    private let tally: LimitTally<GatewayCountedLimit>
    /// The ids of the bearer tokens that connections are counted under.
    private var bearers: [ConnectionID: String] = [:]
    /// Whom workers' streams are counted under, from the moment they are asked for.
    private var holders: [StreamID: StreamHolder] = [:]
    /// The connections that are too many of their credentials, and have been told so.
    private var excess: Set<ConnectionID> = []

    /// - `tally`: hears how often a bound was met.
    package init(
        connections: ConnectionCounts<Credential>,
        workerStreams: ConnectionCounts<StreamHolder>,
        rates: CredentialRates,
        tally: LimitTally<GatewayCountedLimit>
    ) {
        self.connections = connections
        self.workerStreams = workerStreams
        self.rates = rates
        self.tally = tally
    }

    // MARK: Connections

    /// Counts a connection under the bearer token it shows; one that shows several in turn counts under the last.
    ///
    /// - Throws: `tooManyConnections` when there are as many with that token as there may be.
    package func count(_ token: BearerToken, on connection: ConnectionID) throws(APIError) {
        let before = self.bearers[connection]
        guard before != token.id else { return }
        guard self.connections.begin(.bearerToken(token.id)) else {
            self.exceeded(connection)
            throw .tooManyConnections
        }
        if let before { self.connections.end(.bearerToken(before)) }
        self.bearers[connection] = token.id
    }

    /// Counts a connection under the subject of its certificate.
    ///
    /// - Returns: false when there are as many of it as there may be.
    package func count(certificateOf subject: String) -> Bool {
        guard !self.connections.begin(.certificate(subject)) else { return true }
        self.tally.met(.connectionsPerCredentialMax)
        return false
    }

    /// A connection that counted under a certificate's subject does so no more.
    package func uncount(certificateOf subject: String) {
        self.connections.end(.certificate(subject))
    }

    /// A connection is one too many of its credential, and is answered so: it ends within a second.
    ///
    /// Not with the answer itself: GOAWAY overtakes the answer's body, and some clients read nothing after it.
    package func exceeded(_ connection: ConnectionID) {
        guard self.excess.insert(connection).inserted else { return }
        self.tally.met(.connectionsPerCredentialMax)
    }

    /// Takes the connections that are to end by now.
    package func takeExcess() -> Set<ConnectionID> {
        defer { self.excess.removeAll() }
        return self.excess
    }

    /// Forgets which token a connection was counted under.
    package func connectionClosed(_ connection: ConnectionID) {
        self.excess.remove(connection)
        if let token = self.bearers.removeValue(forKey: connection) { self.connections.end(.bearerToken(token)) }
    }

    // MARK: Requests

    /// Counts a request that a credential may send so often a minute.
    ///
    /// - `now`: by the monotonic clock, in milliseconds.
    /// - Throws: the error that names the bound, when it is one too many.
    package func count(_ rate: CredentialRate, of holder: StreamHolder, now: Int64) throws(APIError) {
        guard !self.rates.count(rate, of: holder, now: now) else { return }
        self.tally.met(rate.limit)
        throw .tooOften(limit: rate.limit.rawValue)
    }

    // MARK: Workers' streams

    /// Counts a worker's stream under what its worker showed, or where it comes from.
    ///
    /// - Throws: `tooManyStreams` when there are as many as there may be.
    package func count(_ stream: StreamID, of holder: StreamHolder) throws(APIError) {
        guard self.workerStreams.begin(holder) else {
            self.tally.met(.streamsPerCredentialMax)
            throw .tooManyStreams
        }
        self.holders[stream] = holder
    }

    /// A stream has ended, or was never one of a worker's.
    package func uncount(_ stream: StreamID) {
        guard let holder = self.holders.removeValue(forKey: stream) else { return }
        self.workerStreams.end(holder)
    }
}
