internal import Platform

/// One connection to a database, which never waits for the network. It has one user at a time, on any thread.
///
/// The connection is made by `advance` whenever `descriptor` is ready for what `phase` says, or `deadline` has passed,
/// until `phase` is `ready` or `failed`. Then statements are sent in runs: `prepare`, `query` and `execute` as often as
/// is liked, one `sync`, and `flush` until nothing is left. Further runs may follow before the first is answered. When
/// `descriptor` is readable, `consume` takes what has come, and `next` gives it, event by event, in the order of the
/// statements. A run is one transaction, unless BEGIN stands in it.
///
/// Names of hosts are looked up by `advance`, which waits for that: give addresses (hostaddr) where names are slow.
package final class PostgresLink {
    package enum Phase: Hashable, Sendable {
        /// The connection is being made, and waits for the descriptor to be readable.
        case reading
        /// The connection is being made, and waits for the descriptor to be writable.
        case writing
        /// The connection is made, and was not lost so far as `consume` and `flush` know.
        case ready
        /// The connection could not be made: `failure` says why.
        case failed
    }

    /// What of that which was to be sent is left.
    package enum Flush: Hashable, Sendable {
        case nothingLeft
        /// To be called again when the descriptor is writable; what is readable must be consumed meanwhile.
        case someLeft
        /// The connection is lost; `next` may still give what came before.
        case failed
    }

    package let address: PostgresAddress
    package private(set) var phase = Phase.writing
    /// Why the connection could not be made, or was lost; nil while it is made and after.
    package private(set) var failure: PostgresError?
    /// When `advance` is to be called although the descriptor is not ready: milliseconds of `SystemClock.monotonic`;
    /// nil once it is made.
    package private(set) var deadline: Int64?

    private let application: String
    private let settings: [PostgresSetting]
    private let hostMilliseconds: Int64
    private let firstHost: Int
    private var connection: LibPQ?
    /// How many servers were tried before the one that is.
    private var triedCount = -1
    private var attempts: [PostgresError] = []
    private var endsInARow = 0

    /// Begins to make a connection, to one server of the address after the other.
    ///
    /// - Parameters:
    ///   - address: where to.
    ///   - application: what the server shows in `pg_stat_activity`.
    ///   - settings: of the session, such as `idle_session_timeout`.
    ///   - firstHost: the place of the server that is tried first; those behind it follow, then those before it.
    ///   - hostMilliseconds: how long each server is waited for; one that stands still is passed over then.
    ///   - now: milliseconds of `SystemClock.monotonic`.
    package init(
        _ address: PostgresAddress,
        application: String,
        settings: [PostgresSetting] = [],
        firstHost: Int = 0,
        hostMilliseconds: Int64 = 5_000,
        now: Int64 = SystemClock.monotonic
    ) {
        self.address = address
        self.application = application
        self.settings = settings
        self.firstHost = firstHost
        self.hostMilliseconds = hostMilliseconds
        self.tryNextHost(now)
    }

    // MARK: Making it

    /// The socket; -1 when there is none. It may be another after each `advance`.
    package var descriptor: Int32 { self.connection?.descriptor ?? -1 }

    /// Who it is connected to, such as `db1:5432`.
    package var server: String {
        guard let connection, !connection.host.isEmpty else { return self.tried }
        return PostgresHost(name: connection.host, address: "", port: connection.port).description
    }

    /// The place of the server that is tried, or was connected to, among those of the address.
    package var hostIndex: Int { (self.firstHost + max(0, self.triedCount)) % max(1, self.address.hosts.count) }

    /// The number of the server's process for this session, as notifications and `pg_stat_activity` have it.
    package var backend: Int32 { self.connection?.backend ?? 0 }

    /// The server's version, such as 150018; 0 before it is connected.
    package var version: Int { self.connection?.version ?? 0 }

    package var isEncrypted: Bool { self.connection?.isEncrypted ?? false }

    /// Where the session stands in a transaction, so far as the answers that were read say.
    package var transaction: PostgresTransaction { self.connection?.transaction ?? .unknown }

    /// Goes on with making the connection, as far as it does without waiting for the server.
    ///
    /// - Parameter now: milliseconds of `SystemClock.monotonic`.
    package func advance(now: Int64 = SystemClock.monotonic) {
        guard self.phase == .reading || self.phase == .writing else { return }
        if let deadline = self.deadline, now >= deadline {
            let seconds = Double(self.hostMilliseconds) / 1000
            self.hostFailed(
                PostgresError(kind: .unreachable, message: "no answer within \(seconds) s", server: self.tried),
                now
            )
            return
        }
        switch self.connection?.poll() {
        case .readable: self.phase = .reading
        case .writable: self.phase = .writing
        case .nothing: self.begin(now)
        case .failed, nil: self.hostFailed(self.connectError, now)
        }
    }

    private var tried: String {
        self.address.hosts.indices.contains(self.hostIndex)
            ? self.address.hosts[self.hostIndex].description : self.address.description
    }

    private var connectError: PostgresError {
        ConnectFailure.read(self.connection?.message ?? "", server: self.tried)
    }

    private func begin(_ now: Int64) {
        guard self.connection?.beginPipeline() == true else {
            self.hostFailed(PostgresError(kind: .client, message: "libpq takes no pipeline", server: self.tried), now)
            return
        }
        self.deadline = nil
        self.phase = .ready
    }

    private func hostFailed(_ error: PostgresError, _ now: Int64) {
        self.attempts.append(error)
        self.tryNextHost(now)
    }

    private func tryNextHost(_ now: Int64) {
        while true {
            self.connection = nil
            self.triedCount += 1
            guard self.triedCount < max(1, self.address.hosts.count) else { break }
            do throws(PostgresError) {
                try self.start()
                self.phase = .writing
                self.deadline = now + self.hostMilliseconds
                return
            } catch {
                self.attempts.append(error)
            }
        }
        self.phase = .failed
        self.deadline = nil
        self.failure = ConnectFailure.sum(of: self.attempts)
    }

    private func start() throws(PostgresError) {
        let hosts = self.address.hosts
        let host = hosts.isEmpty ? nil : hosts[self.hostIndex]
        let words = ConnectionWords(
            self.address,
            host: host,
            application: self.application,
            settings: self.settings
        )
        let connection = LibPQ(words)
        self.connection = connection
        // Nothing was sent yet. What is in force is known now, with what a service file and the environment say.
        guard let options = ConnectionOptions(of: connection) else {
            throw PostgresError(kind: .client, message: "out of memory for a connection", server: self.tried)
        }
        for host in PostgresHost.list(in: options) { try self.address.check(host, options) }
        if connection.isBad { throw self.connectError }
    }

    // MARK: Sending

    /// Sends a statement to be executed by its name from now on; the types of its parameters are the server's to find.
    package func prepare(_ name: String, _ sql: String) {
        if self.connection?.prepare(name, sql) != true { self.lose() }
    }

    /// Sends a statement without parameters; its rows come in binary.
    package func query(_ sql: String) {
        if self.connection?.query(sql) != true { self.lose() }
    }

    /// Sends a statement with parameters; its rows come in binary.
    package func query(_ sql: String, _ parameters: borrowing PostgresParameters) {
        if self.connection?.query(sql, parameters) != true { self.lose() }
    }

    /// Sends the execution of a prepared statement; its rows come in binary.
    package func execute(_ name: String, _ parameters: borrowing PostgresParameters) {
        if self.connection?.execute(name, parameters) != true { self.lose() }
    }

    /// Sends the execution of a prepared statement without parameters.
    package func execute(_ name: String) {
        self.execute(name, PostgresParameters())
    }

    /// Ends a run of statements.
    package func sync() {
        if self.connection?.sync() != true { self.lose() }
    }

    /// Hands what was sent to the system, as far as the socket takes it.
    package func flush() -> Flush {
        guard !self.isLost, let connection else { return .failed }
        switch connection.flush() {
        case 0: return .nothingLeft
        case 1: return .someLeft
        case _:
            self.lose()
            return .failed
        }
    }

    // MARK: Reading

    /// Takes what has come, without waiting; `next` gives it.
    ///
    /// - Returns: false when the connection is lost: `next` may still give what came before, and then nothing more.
    package func consume() -> Bool {
        guard self.connection?.consume() == true else {
            self.lose()
            return false
        }
        return !self.isLost
    }

    /// Whether the connection is lost, or could not be made.
    package var isLost: Bool {
        if self.failure != nil { return true }
        guard let connection, connection.isBad || connection.ending != nil, self.phase == .ready else { return false }
        self.lose()
        return true
    }

    /// The next thing that came of what was sent; nil when the rest is not here yet, or nothing more is expected.
    package func next() -> PostgresEvent? {
        guard let connection else { return nil }
        while !connection.isBusy {
            guard let result = connection.next() else {
                // One ends a statement; a second says that nothing was sent after it.
                self.endsInARow += 1
                guard self.endsInARow < 2 else {
                    self.endsInARow = 0
                    return nil
                }
                continue
            }
            self.endsInARow = 0
            switch result.status {
            case .synced: return .synced
            case .aborted: return .aborted
            case .rows: return .rows(PostgresRows(result))
            case .failed:
                let fields = result.fields
                let error = PostgresError(fields, server: self.server)
                if fields.isFatal { self.failure = self.failure ?? error }
                return .failed(error)
            }
        }
        return nil
    }

    /// What the server told besides answers since the last call; of very many the first ones.
    package func takeNotices() -> [PostgresNotice] { self.connection?.takeNotices() ?? [] }

    /// The next notification that `consume` brought; nil when there is none.
    package func notification() -> PostgresNotification? { self.connection?.notification() }

    /// Notes why the connection is lost, unless that is known.
    private func lose() {
        guard self.failure == nil else { return }
        if let ending = self.connection?.ending {
            self.failure = PostgresError(state: ending.state, message: ending.message, server: self.server)
            return
        }
        self.failure = PostgresError(
            kind: .connectionLost,
            message: ConnectFailure.line(self.connection?.message ?? "") ?? "the connection is lost",
            server: self.server
        )
    }

    // MARK: For who waits

    /// Carries out statements that stand behind each other, as one transaction, and waits for that. Nothing else may be
    /// under way.
    func script(_ sql: String) throws(PostgresError) {
        if let failure = self.failure { throw failure }
        guard let connection, connection.endPipeline() else {
            throw PostgresError(kind: .client, message: "a statement is under way", server: self.server)
        }
        let result = connection.script(sql)
        guard !self.isLost, connection.beginPipeline(), let result else {
            throw self.failure ?? PostgresError(kind: .client, message: "no answer", server: self.server)
        }
        if result.status == .failed { throw PostgresError(result.fields, server: self.server) }
    }

    /// Counts the connection as lost from now on.
    package func abandon(_ message: String) {
        self.failure = self.failure ?? PostgresError(kind: .connectionLost, message: message, server: self.server)
    }
}

/// Where a session stands in a transaction.
package enum PostgresTransaction: Hashable, Sendable {
    case none
    case open
    /// The transaction is open and has failed: it can only be rolled back.
    case failed
    /// A statement is being carried out.
    case busy
    /// The connection is lost.
    case unknown
}

/// What a server tells besides answers: a warning, or why it is about to end the connection.
package struct PostgresNotice: Hashable, Sendable {
    /// The SQLSTATE.
    package let state: String
    /// Such as `WARNING`, `NOTICE` or `FATAL`, never translated.
    package let severity: String
    /// One line.
    package let message: String

    /// Whether the commit that is answered now waited for standbys and did not get their word: it is on this server
    /// alone.
    package var isUnreplicatedCommit: Bool {
        self.severity == "WARNING" && self.message.contains("synchronous replication")
    }
}

/// What somebody sent with NOTIFY to a channel that this session listens on.
package struct PostgresNotification: Hashable, Sendable {
    package let channel: String
    package let payload: String
    /// The server's process of the sender's session, to know one's own by `PostgresLink.backend`.
    package let sender: Int32

    package init(channel: String, payload: String, sender: Int32) {
        self.channel = channel
        self.payload = payload
        self.sender = sender
    }
}
