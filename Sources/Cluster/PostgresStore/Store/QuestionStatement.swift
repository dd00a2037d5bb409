/// The statements of the connection for questions, prepared once: each reads, and locks no row.
enum QuestionStatement: Int, CaseIterable {
    case standing, clock, readTokens, readTasks, readInOrder, readTopicsInOrder, count

    /// The name under which it is prepared.
    var name: String { "wakegate_\(self)" }

    /// - Parameter clock: an expression for the primary's clock in milliseconds since 1970.
    func sql(clock: String) -> String {
        switch self {
        // Only the server that has the gateway's number, and takes writes, is the one that commits go to.
        case .standing:
            "SELECT alive AND NOT pg_is_in_recovery() FROM wakegate.gateway WHERE number = $1::integer"
        case .clock: "SELECT \(clock), shift, oldest FROM wakegate.meta"
        case .readTokens: CommitStatement.tokensAndWakes
        case .readTasks: Self.tasksSQL
        case .readInOrder: Self.behind()
        case .readTopicsInOrder: Self.behind(" AND d.topic = ANY($3::integer[])")
        case .count: Self.countSQL
        }
    }

    private static let tasksSQL = """
        \(CommitStatement.row) WHERE d.has_tasks AND d.token > $2::bytea AND ($1::integer IS NULL OR d.topic = $1)
        ORDER BY d.token LIMIT $3::integer
        """

    private static func behind(_ filter: String = "") -> String {
        "\(CommitStatement.row) WHERE d.token > $1::bytea\(filter) ORDER BY d.token LIMIT $2::integer"
    }

    private static let countSQL = """
        SELECT 0, topic, counts FROM wakegate.books WHERE $1::integer[] IS NULL OR topic = ANY($1)
        UNION ALL
        SELECT 1, topic, content FROM (
            SELECT DISTINCT ON (gateway, topic) topic, content FROM wakegate.rejection
            WHERE $1::integer[] IS NULL OR topic = ANY($1) ORDER BY gateway, topic, number DESC) r
        """
}
