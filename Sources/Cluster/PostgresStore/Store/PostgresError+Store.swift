import Engine

extension PostgresError {
    /// The error code with which `wakegate.mark` refuses a commit.
    static let fencedState = "WG001"

    /// The error of a gateway that others have marked as dead, or of a connection that a newer connection has replaced.
    static let fenced = PostgresError(state: Self.fencedState, message: "the gateway's number is dead")
    static let unexpectedAnswer = PostgresError(kind: .client, message: "an answer that no statement of WakeGate has")

    /// True if an immediate retry of the transaction may succeed.
    var isConflict: Bool {
        switch self.kind {
        case .uniqueViolation, .deadlock, .serialization, .lockNotAvailable, .idleTimeout: true
        default: false
        }
    }

    /// True if another server of the same database may succeed, because the cause may be this server.
    var isOfServer: Bool {
        guard self.state != Self.fencedState, !self.isConflict else { return false }
        return switch self.kind {
        case .insecure, .noDatabase, .wrongSchema, .insufficientPrivilege: false
        default: true
        }
    }
}

extension StoreError {
    static let unknown = StoreError(message: "The connection to PostgreSQL was lost.")

    /// Describes the server's error and its remedy.
    init(_ error: PostgresError) {
        guard error.state == PostgresError.fencedState else {
            self.init(message: error.description)
            return
        }
        self.init(
            message: "PostgreSQL: other gateways took this one for dead, as it said nothing for three seconds. It "
                + "begins anew; see what made it stand still."
        )
    }
}
