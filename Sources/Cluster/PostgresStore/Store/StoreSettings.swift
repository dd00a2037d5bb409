package import Engine

/// The settings of a store's connections to its database.
package struct StoreSettings: Sendable {
    /// The address of the database: one server, or several of which one accepts writes.
    package var address: PostgresAddress
    /// The number of connections that commit devices. Three more connections are the control connection, the shared
    /// connection, and the connection for queries.
    package var connections = 8
    /// For tests: an expression that replaces the primary's clock, in milliseconds since 1970.
    package var clock = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    /// The time without a message after which the server releases a gateway's number and the rows locked by its
    /// transactions, in milliseconds.
    package var silenceMilliseconds: Int64 = 3000
    /// The longest wait for the lock under which tables are created, in milliseconds.
    package var schemaLockMilliseconds: Int64 = 30_000

    /// The longest wait of a load for the lock of one row, in milliseconds.
    package var lockMilliseconds: Int64 = 1000

    /// The longest execution time of one statement of a query, in milliseconds.
    package var questionStatementMilliseconds: Int64 = 5000

    package init(address: PostgresAddress) {
        self.address = address
    }

    /// The longest wait of a query for the lock of a table, in milliseconds.
    static let questionLockMilliseconds: Int64 = 2000
    /// The timeout for an answer on the connection for queries, in milliseconds.
    static let questionMilliseconds: Int64 = 10_000
    /// The interval of heartbeats on the control connection, in milliseconds.
    static let heartbeatMilliseconds: Int64 = 1000
    /// The timeout for an answer on the control connection, in milliseconds.
    static let answerMilliseconds: Int64 = 5000
    /// The timeout for creating or upgrading the tables, in milliseconds.
    static let schemaMilliseconds: Int64 = 600_000
    /// The timeout for connecting to each server of the address, in milliseconds.
    static let connectMilliseconds: Int64 = 3000
    /// The time for which failed connections are retried before the number is released, in milliseconds.
    static let readyMilliseconds: Int64 = 5000
    /// The first and the longest pause between attempts to connect, in milliseconds.
    static let pauseMilliseconds: ClosedRange<Int64> = 50...1000
    /// The time for which ended wakes are remembered, in milliseconds.
    static let wakeMemoryMilliseconds: Int64 = 600_000
    /// The maximum number of ended wakes deleted at a time.
    static let sweepCountMax: Int32 = 2000
}

/// The settings of sessions from their start.
enum SessionSetup {
    /// Planner settings for plans that use the given arrays and the order of the indexes. Otherwise, sessions would
    /// reuse plans that scan whole tables, because the plans were made while the tables were small.
    private static let plans = [
        ("jit", "off"), ("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off"),
    ]

    /// Returns the settings of connections that commit. Statements have no timeout, because a commit takes effect even
    /// if it is cancelled while it waits for a standby.
    static func committing(silenceMilliseconds: Int64) -> [PostgresSetting] {
        self.settings(
            self.plans + self.common + [("idle_in_transaction_session_timeout", "\(silenceMilliseconds)")]
        )
    }

    /// Returns the settings of the control connection. A lock that another session holds must not delay the heartbeat
    /// for long.
    static func control(silenceMilliseconds: Int64) -> [PostgresSetting] {
        self.settings(
            [("jit", "off")] + self.common + [
                ("idle_session_timeout", "\(silenceMilliseconds)"), ("lock_timeout", "2000"),
            ]
        )
    }

    /// The settings of the shared connection, `SharedLink`.
    static let shared = Self.settings([("jit", "off")] + Self.common + [("lock_timeout", "3000")])

    /// A statement that makes the session wait for durable commits, even if settings of the server, the database or the
    /// role change later. A stronger setting, such as remote_apply, remains in effect.
    static let durable = """
        SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
            THEN 'on' ELSE current_setting('synchronous_commit') END, false)
        """

    /// Common settings. With them, the server detects within seconds that a gateway has disappeared.
    private static let common = [
        ("statement_timeout", "0"), ("lock_timeout", "0"), ("default_transaction_isolation", "read committed"),
        ("tcp_keepalives_idle", "2"), ("tcp_keepalives_interval", "1"), ("tcp_keepalives_count", "3"),
        ("tcp_user_timeout", "5000"),
    ]

    private static func settings(_ settings: [(name: String, value: String)]) -> [PostgresSetting] {
        settings.map { PostgresSetting($0.name, $0.value) }
    }
}
