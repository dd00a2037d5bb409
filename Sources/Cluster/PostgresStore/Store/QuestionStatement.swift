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
        case .readTasks:
            Self.slice("d.has_tasks AND d.token > $2::bytea", "$1::integer IS NULL OR topic = $1", countMax: "$3")
        case .readInOrder: "\(CommitStatement.row) WHERE d.token > $1::bytea ORDER BY d.token LIMIT $2::integer"
        case .readTopicsInOrder: Self.slice("d.token > $1::bytea", "topic = ANY($3::integer[])", countMax: "$2")
        case .count: Self.countSQL
        }
    }

    /// The most devices that one statement looks at.
    private static let sliceMax = 4096

    /// Reads the rows of a slice that a filter lets through, and a last row without a version that has the slice's end,
    /// if there are devices behind it. However few devices are wanted, a statement is short.
    ///
    /// - Parameters:
    ///   - condition: of the devices that are looked at, in the order of their tokens.
    ///   - filter: of those that are read.
    private static func slice(_ condition: String, _ filter: String, countMax: String) -> String {
        """
        WITH slice AS MATERIALIZED (
            SELECT d.token, d.topic FROM wakegate.device d WHERE \(condition) ORDER BY d.token LIMIT \(self.sliceMax))
        (\(CommitStatement.row) JOIN (
            SELECT token FROM slice WHERE \(filter) ORDER BY token OFFSET 0) s ON s.token = d.token
        ORDER BY s.token LIMIT \(countMax)::integer)
        UNION ALL
        (SELECT s.token, NULL, NULL, NULL, NULL, NULL, NULL FROM slice s
        WHERE (SELECT count(*) FROM slice) = \(self.sliceMax) ORDER BY s.token DESC LIMIT 1)
        """
    }

    private static let countSQL = """
        SELECT 0, topic, counts FROM wakegate.books WHERE $1::integer[] IS NULL OR topic = ANY($1)
        UNION ALL
        SELECT 1, topic, content FROM (
            SELECT DISTINCT ON (gateway, topic) topic, content FROM wakegate.rejection
            WHERE $1::integer[] IS NULL OR topic = ANY($1) ORDER BY gateway, topic, number DESC) r
        """
}
