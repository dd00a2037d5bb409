import Engine

/// One run of a gateway, as a simulated database knows it.
final class DatabaseSession {
    let number: GatewayNumber
    let store: SimulatedClusterStore
    /// When it was attached, by the primary's clock in milliseconds since 1970.
    let since: Int64
    /// When it last was heard of, in virtual time.
    var heardAt: Int64
    /// What it said last, and when, by the primary's clock.
    var report: (GatewayReport, at: Int64)?
    /// Whether the session stands that holds the lock of its number.
    var isConnected = true
    /// Whether nobody has found yet that it is dead: what it commits is taken.
    var isAlive = true
    var isBuried = false
    /// How many topics it knows, and which versions of values.
    var topicCount = 0
    var values: [String: Int] = [:]

    init(_ number: GatewayNumber, of store: SimulatedClusterStore, since: Int64, heardAt: Int64) {
        self.number = number
        self.store = store
        self.since = since
        self.heardAt = heardAt
    }
}
