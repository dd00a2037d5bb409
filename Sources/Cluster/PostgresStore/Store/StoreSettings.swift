package import Engine

/// How a store reaches its database.
package struct StoreSettings: Sendable {
    /// Where the database is: one server, or several of which one takes writes.
    package var address: PostgresAddress
    /// The number of connections that commit devices. Three more control, share topics and notices, and read for
    /// questions.
    package var connections = 8
    /// For tests: an expression that takes the place of the primary's clock, in milliseconds since 1970.
    package var clock = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    /// How long the server waits for a word of a gateway before it lets go of the gateway's number, and of the rows
    /// that a transaction has locked; in milliseconds.
    package var silenceMilliseconds: Int64 = 3000
    /// The longest wait for the lock under which tables are made, in milliseconds.
    package var schemaLockMilliseconds: Int64 = 30_000

    /// The longest wait of a load for the lock of one row, in milliseconds.
    package var lockMilliseconds: Int64 = 1000

    /// The longest time that one statement of a question may take, in milliseconds.
    package var questionStatementMilliseconds: Int64 = 5000

    package init(address: PostgresAddress) {
        self.address = address
    }

    /// For how long a question waits for the lock of a table, in milliseconds.
    static let questionLockMilliseconds: Int64 = 2000
    /// For how long the server may answer nothing on the connection for questions, in milliseconds.
    static let questionMilliseconds: Int64 = 10_000
    /// How often the control connection says something, in milliseconds.
    static let heartbeatMilliseconds: Int64 = 1000
    /// For how long the server may answer nothing on the control connection, in milliseconds.
    static let answerMilliseconds: Int64 = 5000
    /// For how long making or upgrading the tables may take, in milliseconds.
    static let schemaMilliseconds: Int64 = 600_000
    /// For how long each server of the address is waited for, in milliseconds.
    static let connectMilliseconds: Int64 = 3000
    /// For how long those connections that cannot be made are tried again before the number is let go of, in
    /// milliseconds.
    static let readyMilliseconds: Int64 = 5000
    /// The pause before the store is attached again: the first, and the longest, in milliseconds.
    static let pauseMilliseconds: ClosedRange<Int64> = 50...1000
    /// For how long ended wakes are remembered, in milliseconds.
    static let wakeMemoryMilliseconds: Int64 = 600_000
    /// How many ended wakes are forgotten at a time.
    static let sweepCountMax: Int32 = 2000
}

extension StoreSettings {
    /// - Parameters:
    ///   - text: a URI of libpq.
    ///   - connections: how many connections commit.
    ///   - isInsecureAllowed: servers on other machines need not prove who they are.
    /// - Throws: when it is no address, or would not be safe.
    package init(_ text: String, connections: Int, isInsecureAllowed: Bool) throws(StoreError) {
        do throws(PostgresError) {
            self.init(address: try PostgresAddress(text, isInsecureAllowed: isInsecureAllowed))
        } catch { throw StoreError(error) }
        self.connections = connections
    }
}

/// What is in force in sessions from their first moment.
enum SessionSetup {
    /// Plans that go by the arrays they are given and by the order of indices, never over whole tables: a plan made
    /// while a table was small would stay.
    private static let plans = [
        ("jit", "off"), ("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off"),
    ]

    /// Of connections that commit. There is no time-out of statements: a commit that is given up while it
    /// waits for a standby has happened all the same.
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

    /// The settings of the connection for everything that gateways share besides devices.
    static let shared = Self.settings([("jit", "off")] + Self.common + [("lock_timeout", "3000")])

    /// A statement that has the session wait for durable commits from now on, whatever the settings of the server, the
    /// database and the role are or become. A stronger setting, such as remote_apply, is kept.
    static let durable = """
        SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
            THEN 'on' ELSE current_setting('synchronous_commit') END, false)
        """

    /// A peer that is gone without a word is found within seconds.
    private static let common = [
        ("statement_timeout", "0"), ("lock_timeout", "0"), ("default_transaction_isolation", "read committed"),
        ("tcp_keepalives_idle", "2"), ("tcp_keepalives_interval", "1"), ("tcp_keepalives_count", "3"),
        ("tcp_user_timeout", "5000"),
    ]

    private static func settings(_ settings: [(name: String, value: String)]) -> [PostgresSetting] {
        settings.map { PostgresSetting($0.name, $0.value) }
    }
}
