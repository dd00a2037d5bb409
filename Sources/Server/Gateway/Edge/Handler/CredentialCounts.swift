package import HTTPTransport
package import Wire

/// The connections, workers' streams and rate-limited requests of one loop, each counted under its credential. All
/// loops share the counts.
package final class CredentialCounts {
    private let connections: ConnectionCounts<Credential>
    private let workerStreams: ConnectionCounts<StreamHolder>
    private let rates: CredentialRates
    private let tally: LimitTally<GatewayCountedLimit>
    /// The ids of the bearer tokens under which connections are counted.
    private var bearers: [ConnectionID: String] = [:]
    /// The holders under which workers' streams are counted. A stream is counted from its request on.
    private var holders: [StreamID: StreamHolder] = [:]
    /// The connections that exceed the limit of their credential. They end within a second.
    private var excess: Set<ConnectionID> = []

    /// - `tally`: the counter of reached limits.
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

    /// Counts a connection under its latest bearer token.
    ///
    /// - Throws: `tooManyConnections` if the token has the maximum number of connections.
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
    /// - Returns: false if the subject has the maximum number of connections.
    package func count(certificateOf subject: String) -> Bool {
        guard !self.connections.begin(.certificate(subject)) else { return true }
        self.tally.met(.connectionsPerCredentialMax)
        return false
    }

    /// Stops counting a connection under its certificate's subject.
    package func uncount(certificateOf subject: String) {
        self.connections.end(.certificate(subject))
    }

    /// Records a connection that exceeds the limit of its credential. The connection ends within a second.
    ///
    /// GOAWAY is not sent with the answer. It would precede the body, and some clients do not read anything after
    /// GOAWAY.
    package func exceeded(_ connection: ConnectionID) {
        guard self.excess.insert(connection).inserted else { return }
        self.tally.met(.connectionsPerCredentialMax)
    }

    /// Returns the recorded connections, which the caller must end, and clears the record.
    package func takeExcess() -> Set<ConnectionID> {
        defer { self.excess.removeAll() }
        return self.excess
    }

    /// Stops counting a closed connection.
    package func connectionClosed(_ connection: ConnectionID) {
        self.excess.remove(connection)
        if let token = self.bearers.removeValue(forKey: connection) { self.connections.end(.bearerToken(token)) }
    }

    // MARK: Requests

    /// Counts a request whose rate is limited for each credential and minute.
    ///
    /// - `now`: milliseconds of the monotonic clock.
    /// - Throws: an error that names the limit if the request exceeds it.
    package func count(_ rate: CredentialRate, of holder: StreamHolder, now: Int64) throws(APIError) {
        guard !self.rates.count(rate, of: holder, now: now) else { return }
        self.tally.met(rate.limit)
        throw .tooOften(limit: rate.limit.rawValue)
    }

    // MARK: Workers' streams

    /// Counts a worker's stream under the worker's credential or network.
    ///
    /// - Throws: `tooManyStreams` if the holder has the maximum number of streams.
    package func count(_ stream: StreamID, of holder: StreamHolder) throws(APIError) {
        guard self.workerStreams.begin(holder) else {
            self.tally.met(.streamsPerCredentialMax)
            throw .tooManyStreams
        }
        self.holders[stream] = holder
    }

    /// Stops counting a stream; has no effect if the stream is not counted.
    package func uncount(_ stream: StreamID) {
        guard let holder = self.holders.removeValue(forKey: stream) else { return }
        self.workerStreams.end(holder)
    }
}
