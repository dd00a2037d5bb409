extension PostgresError {
    /// Reads what a statement failed with. Its detail is left out, as it names values of rows.
    init(_ fields: ResultFields, server: String) {
        let message = ConnectFailure.line(fields.message) ?? "the connection is lost"
        if let state = fields.state {
            self.init(state: state, message: message, server: server)
        } else {
            // libpq itself says it, and that is what it says when the connection ends.
            self.init(kind: .connectionLost, message: message, server: server)
        }
    }
}
