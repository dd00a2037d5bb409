import Platform
import Settings

/// What metrics show that the engine does not know.
struct GatewayFigures: Sendable {
    let process: ProcessFigures
    /// When the gateway started, in milliseconds since 1970.
    let startedAt: Int64
    /// Open connections by listener's role.
    let connections: [(role: ListenerRole, count: Int)]
    /// When the edge's certificate ends, in seconds since 1970; nil when there is none.
    let certificateExpiry: Int64?
    /// The topics that the configuration names, which are shown by name.
    let topics: [String]
}
