package import Platform
package import Settings

/// What metrics show that the engine does not know.
package struct GatewayFigures: Sendable {
    let process: ProcessFigures
    /// When the gateway started, in milliseconds since 1970.
    let startedAt: Int64
    /// Open connections by listener's role.
    let connections: [(role: ListenerRole, count: Int)]
    /// When the edge's certificate ends, in seconds since 1970; nil when there is none.
    let certificateExpiry: Int64?
    /// The topics that the configuration names, which are shown by name.
    let topics: [String]

    package init(
        process: ProcessFigures,
        startedAt: Int64,
        connections: [(role: ListenerRole, count: Int)],
        certificateExpiry: Int64?,
        topics: [String]
    ) {
        self.process = process
        self.startedAt = startedAt
        self.connections = connections
        self.certificateExpiry = certificateExpiry
        self.topics = topics
    }
}
