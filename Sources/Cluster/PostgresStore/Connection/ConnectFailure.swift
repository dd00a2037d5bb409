/// What libpq says when a connection cannot be made.
enum ConnectFailure {
    /// Reads the text of one attempt, in which the server's code stands when it was the server who refused.
    static func read(_ text: String, server: String) -> PostgresError {
        let message = self.line(text) ?? "the connection cannot be made"
        guard let state = self.state(in: message) else {
            // Without a code it is libpq that speaks: of the network, of TLS, or of a missing password.
            let kind: PostgresError.Kind =
                if message.contains("no password supplied") {
                    .notAllowed
                } else if message.contains("certificate") || message.contains("does not support SSL") {
                    .untrusted
                } else {
                    .unreachable
                }
            return PostgresError(kind: kind, message: message, server: server)
        }
        // PostgreSQL takes every startup parameter that a gateway sends; pgbouncer names the first that it does not.
        if message.contains("unsupported startup parameter") {
            return PostgresError(
                kind: .pool,
                state: state,
                message: "this is a connection pool such as pgbouncer, and no PostgreSQL "
                    + "(\(self.dropping(state, of: message)))",
                server: server
            )
        }
        return PostgresError(state: state, message: self.dropping(state, of: message), server: server)
    }

    /// One error for the attempts at all servers of an address: the kind is that of the first server that answered.
    static func sum(of attempts: [PostgresError]) -> PostgresError {
        guard attempts.count != 1, let telling = attempts.first(where: { $0.kind != .unreachable }) ?? attempts.first
        else { return attempts.first ?? PostgresError(kind: .unreachable, message: "there is no server to connect to") }
        return PostgresError(
            kind: telling.kind,
            state: telling.state,
            message: attempts.map { "\($0.server): \($0.message)" }.joined(separator: "; ")
        )
    }

    /// A text of several lines as one, without what only PostgreSQL's developers need; nil when nothing is left.
    static func line(_ text: String) -> String? {
        let lines = text.split(separator: "\n").map(self.trimmed).filter { line in
            !line.isEmpty && !line.hasPrefix("LOCATION:") && !line.hasPrefix("This probably means the server")
                && !line.hasPrefix("before or while processing") && !line.hasPrefix("Is the server running")
        }
        return lines.isEmpty ? nil : lines.joined(separator: ", ")
    }

    private static func trimmed(_ line: Substring) -> String {
        var line = line.drop(while: \.isWhitespace)
        while let last = line.last, last.isWhitespace || last == "." { line.removeLast() }
        return String(line)
    }

    /// The code behind the severity: `FATAL:  28P01: password authentication failed`.
    private static func state(in message: String) -> String? {
        let words = message.split(separator: " ")
        for (word, next) in zip(words, words.dropFirst()) where word.hasSuffix(":") && next.hasSuffix(":") {
            let code = next.dropLast()
            // Severities are words of letters alone, and FATAL is as long as a code.
            let isCode =
                code.utf8.count == 5 && code.utf8.contains { (0x30...0x39).contains($0) }
                && code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
            if isCode { return String(code) }
        }
        return nil
    }

    private static func dropping(_ state: String, of message: String) -> String {
        message.split(separator: " ").filter { $0 != "\(state):" }.joined(separator: " ")
    }
}
