/// Why the server, or the way to it, refused something.
package struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was refused, by what callers tell apart.
    package let kind: Kind
    /// The SQLSTATE of five characters; empty when no server said it.
    package let state: String
    /// What was said, as one line without a full stop at its end. There is never a password in it.
    package let message: String
    /// Who said it, such as `db1:5432`; empty when no server was asked.
    package let server: String

    package init(kind: Kind, state: String = "", message: String, server: String = "") {
        self.kind = kind
        self.state = state
        self.message = message
        self.server = server
    }

    /// An error as the server gives it.
    ///
    /// - Parameters:
    ///   - state: the SQLSTATE.
    ///   - message: one line.
    ///   - server: who says it.
    package init(state: String, message: String, server: String = "") {
        self.init(kind: Kind(state: state), state: state, message: message, server: server)
    }

    /// What is to be done about it, as one sentence.
    package var remedy: String { self.kind.remedy }

    /// One line for a log: the server, what it said, its code and what to do.
    package var description: String {
        let server = self.server.isEmpty ? "" : "\(self.server): "
        let state = self.state.isEmpty ? "" : " (\(self.state))"
        return "PostgreSQL: \(server)\(self.message)\(state). \(self.remedy)"
    }
}
