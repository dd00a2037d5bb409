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
