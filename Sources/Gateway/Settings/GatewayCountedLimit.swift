import HTTPTransport

/// The bounds that are neither the transport's nor the engine's, by their names in the configuration.
package enum GatewayCountedLimit: String, CountedLimit {
    /// A loop stopped reading until the engine had answered.
    case requestsAtEngineMax
    /// A request, or a connection, was refused.
    case connectionsPerCredentialMax
    /// A worker's stream was refused.
    case streamsPerCredentialMax
    /// A stream of somebody who watches was refused.
    case liveStreamsMax
    /// Events were dropped from the history before their time.
    case historyBytesMax
    /// Events were dropped from the history because their time was over.
    case historySeconds
}
