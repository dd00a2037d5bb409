import Engine
import Platform
import Policy
import Wire

/// The connection for queries of rows and counts. It takes no row locks and no transaction ids. If the connection ends,
/// unanswered queries are sent once more on the next connection.
final class QuestionLink: StoreLink {
    /// A query. A search through many devices reads one slice per query.
    struct Job {
        enum Subject {
            case read(ReadPlan)
            /// The topics to count; nil for all.
            case count([TopicIndex]?)
        }

        let number: TransactionNumber
        let subject: Subject
        var isRepeated = false
    }

    private let state: StoreState
    let connection: StoreConnection<QuestionStatement>
    /// True if the statements are prepared.
    private var isReady = false
    /// Queries that wait for a connection.
    private var waiting: [Job] = []
    /// Queries that were sent, in order.
    private var sent: [Job] = []

    init(_ state: StoreState) {
        self.state = state
        self.connection = StoreConnection(state)
    }

    /// The time by which the oldest query must be answered.
    var nextWork: Int64? { self.connection.waitsSince.map { $0 + StoreSettings.questionMilliseconds } }

    /// Handles a deadline that has passed.
    func workIfDue(_ now: Int64) {
        guard let deadline = self.nextWork, now >= deadline else { return }
        self.ended(PostgresError(kind: .connectionLost, message: "no answer to a question"))
    }

    // MARK: Connecting

    var settings: [PostgresSetting] {
        SessionSetup.committing(silenceMilliseconds: self.state.settings.silenceMilliseconds)
            + [
                PostgresSetting("lock_timeout", "\(StoreSettings.questionLockMilliseconds)"),
                PostgresSetting("statement_timeout", "\(self.state.settings.questionStatementMilliseconds)"),
            ]
    }

    func connected() {
        guard let gateway = self.state.number else { return }
        // Set this only after connecting, because libpq checks the setting to find a server that accepts writes.
        self.connection.query("SET default_transaction_read_only = on")
        self.connection.prepareAll()
        self.connection.run(.standing, gateway.rawValue)
        self.connection.send { self.setUpEnded($0) }
    }

    private func setUpEnded(_ outcome: PostgresOutcome) {
        if let failure = outcome.failure { return self.ended(failure) }
        guard let standing = outcome.results.last, standing.count == 1, standing.flag(0, 0) else {
            return self.ended(.fenced)
        }
        self.isReady = true
        self.connection.resetPause()
        let waiting = self.waiting
        self.waiting = []
        for job in waiting { self.send(job) }
    }

    // MARK: Asking

    /// Sends a query as soon as a connection is open.
    func ask(_ number: TransactionNumber, _ subject: Job.Subject) {
        let job = Job(number: number, subject: subject)
        if self.isReady { self.send(job) } else { self.waiting.append(job) }
    }

    private func send(_ job: Job) {
        self.sent.append(job)
        switch job.subject {
        case .read(let plan):
            let step = LoadStep(plan, self.connection)
            self.connection.send { outcome in
                let loaded = step.read(outcome.results)
                self.answered(job, outcome, loaded.map { .loaded(job.number, $0.dated(by: &self.state.time)) })
            }
        case .count(let topics):
            var parameters = PostgresParameters()
            parameters.append(
                topics.map { topics in
                    PostgresList([ConnectionCounters.everyTopic] + topics.map { Int32(bitPattern: $0.rawValue) })
                }
            )
            self.connection.run(.count, parameters)
            self.connection.send { self.answered(job, $0, self.counted(job.number, $0)) }
        }
    }

    // MARK: Reading

    /// - `reply`: the reply; nil if the rows do not match the statements.
    private func answered(_ job: Job, _ outcome: PostgresOutcome, _ reply: ClusterReply?) {
        if !self.sent.isEmpty { self.sent.removeFirst() }
        guard outcome.failure == nil, let reply else {
            return self.state.fail(job.number, .refused(self.error(outcome.failure ?? .unexpectedAnswer)))
        }
        self.state.replies.append(reply)
    }

    private func error(_ failure: PostgresError) -> StoreError {
        guard failure.kind == .cancelled else { return StoreError(failure) }
        let milliseconds = self.state.settings.questionStatementMilliseconds
        return StoreError(
            message:
                "PostgreSQL at \(failure.server) ended a question: a statement of a question may take "
                + "\(milliseconds) ms. Ask for less, such as one topic or a smaller page, and see in pg_stat_activity "
                + "what keeps the database busy."
        )
    }

    private func counted(_ number: TransactionNumber, _ outcome: PostgresOutcome) -> ClusterReply? {
        guard let rows = outcome.results.first else { return nil }
        var byTopic: [Int32: ActivityCounters] = [:]
        var rejections: [(topic: UInt32, content: [UInt8])] = []
        for row in 0..<rows.count {
            let topic = rows.int32(row, 1)
            if rows.int32(row, 0) == 0 {
                guard let counters = ActivityCounters(stored: rows.bytes(row, 2)) else { return nil }
                byTopic[topic, default: ActivityCounters()] += counters
            } else {
                rejections.append((UInt32(bitPattern: topic), rows.bytes(row, 2).array))
            }
        }
        let total = byTopic.removeValue(forKey: ConnectionCounters.everyTopic) ?? ActivityCounters()
        let counts = ClusterCounts(
            total: total,
            byTopic: Dictionary(
                uniqueKeysWithValues: byTopic.map { (TopicIndex(rawValue: UInt32(bitPattern: $0.key)), $0.value) }
            ),
            rejections: rejections
        )
        return .counts(number, counts)
    }

    // MARK: Ending

    /// Handles the loss of the connection, or a failure to connect. Queries that were sent once are sent again; queries
    /// that were sent twice fail.
    func ended(_ failure: PostgresError) {
        let error = StoreError(failure)
        for var job in self.sent {
            guard !job.isRepeated else {
                self.state.fail(job.number, .refused(error))
                continue
            }
            job.isRepeated = true
            self.waiting.append(job)
        }
        self.sent = []
        if !self.isReady { self.refuse(error) }
        self.isReady = false
        self.connection.close()
        self.connection.pauseBeforeRetry()
    }

    /// Closes the connection and fails every query with this error.
    func close(_ error: StoreError) {
        self.refuse(error)
        self.isReady = false
        self.connection.close()
        self.connection.retryAt = 0
    }

    private func refuse(_ error: StoreError) {
        for job in self.sent + self.waiting { self.state.fail(job.number, .refused(error)) }
        self.sent = []
        self.waiting = []
    }
}

/// The statements of the connection for queries, prepared once; each reads without locking rows.
enum QuestionStatement: PreparedStatement {
    case standing, clock, readTokens, readTasks, readInOrder, readTopicsInOrder, readPending, count

    func sql(clock: String) -> String {
        switch self {
        // Queries go only to the server that has the gateway's number and accepts writes.
        case .standing:
            "SELECT alive AND NOT pg_is_in_recovery() FROM wakegate.gateway WHERE number = $1::integer"
        case .clock: "SELECT \(clock), shift FROM wakegate.meta"
        case .readTokens: CommitStatement.tokensAndWakes
        case .readTasks:
            Self.slice("d.has_tasks AND d.token > $2::bytea", "$1::integer IS NULL OR topic = $1", countMax: "$3")
        case .readInOrder: "\(CommitStatement.row) WHERE d.token > $1::bytea ORDER BY d.token LIMIT $2::integer"
        case .readTopicsInOrder: Self.slice("d.token > $1::bytea", "topic = ANY($3::integer[])", countMax: "$2")
        case .readPending:
            Self.slice(
                "d.token > $1::bytea",
                "is_pending AND ($3::integer[] IS NULL OR topic = ANY($3))",
                of: "d.token, d.topic, \(Self.isPending) AS is_pending",
                countMax: "$2"
            )
        case .count: CommitStatement.counts("$1::integer[] IS NULL OR topic = ANY($1)")
        }
    }

    /// The maximum number of devices that one statement examines.
    private static let sliceMax = 4096

    /// Returns SQL for the rows of a slice that satisfy a filter. If devices may follow the slice, a last row without a
    /// version has the slice's end. The slice limits the time of a statement, even if few devices match.
    ///
    /// - Parameters:
    ///   - condition: the condition on the devices in the slice, in the order of their tokens.
    ///   - filter: the condition on the rows to return.
    ///   - columns: the columns of the slice that the filter uses.
    ///   - countMax: the parameter with the maximum number of rows.
    private static func slice(
        _ condition: String,
        _ filter: String,
        of columns: String = "d.token, d.topic",
        countMax: String
    ) -> String {
        """
        WITH slice AS MATERIALIZED (
            SELECT \(columns) FROM wakegate.device d WHERE \(condition) ORDER BY d.token LIMIT \(self.sliceMax))
        (\(CommitStatement.row) JOIN (
            SELECT token FROM slice WHERE \(filter) ORDER BY token OFFSET 0) s ON s.token = d.token
        ORDER BY s.token LIMIT \(countMax)::integer)
        UNION ALL
        (SELECT s.token, NULL, NULL, NULL, NULL, NULL, NULL FROM slice s
        WHERE (SELECT count(*) FROM slice) = \(self.sliceMax) ORDER BY s.token DESC LIMIT 1)
        """
    }

    /// An expression that is true for a device with a pending push. A `derived` value that is too short counts as no
    /// pending push.
    private static let isPending = "get_bit(d.derived || '\\x0000'::bytea, \(SharedDevice.pendingBit)) = 1"
}
