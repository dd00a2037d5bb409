package import Engine
package import Platform

/// A connection to a database that never waits for the network. Used by one caller at a time, on any thread.
///
/// Call `advance` whenever one of `waits` is over or `deadline` has passed. It connects until `phase` is `ready` or
/// `failed`; then it sends and reads.
///
/// Send statements in batches. A batch is any number of `prepare`, `query` and `execute`, and one `sync`. Further
/// batches may be sent before the first is answered. `next` returns the outcomes in the order of the batches. A batch
/// is one transaction, unless it contains BEGIN.
///
/// `advance` blocks while it resolves host names; use addresses (hostaddr) if name lookups are slow.
package final class PostgresLink {
    package enum Phase: Hashable, Sendable {
        /// Connecting; waits for the descriptor to be readable.
        case reading
        /// Connecting; waits for the descriptor to be writable.
        case writing
        /// Connected; `isLost` is true if the connection was lost later.
        case ready
        /// Connecting failed; `failure` has the reason.
        case failed
    }

    package let address: PostgresAddress
    package private(set) var phase = Phase.writing
    /// The reason why connecting failed or the connection was lost; nil otherwise.
    package private(set) var failure: PostgresError?
    /// The latest time for the next `advance`, in milliseconds of `SystemClock.monotonic`; nil once connected.
    package private(set) var deadline: Int64?

    private let application: String
    private let settings: [PostgresSetting]
    private let hostMilliseconds: Int64
    private let firstHost: Int
    private var connection: LibPQ?
    /// The number of servers tried before the current one.
    private var triedCount = -1
    private var attempts: [PostgresError] = []
    private var endsInARow = 0
    /// True if the socket has not accepted all bytes.
    private var hasUnsent = false
    /// The outcome of the batch that is not answered completely.
    package private(set) var unfinished = PostgresOutcome()

    /// Starts to connect to the servers of the address, one after the other.
    ///
    /// - Parameters:
    ///   - address: the address of the database.
    ///   - application: the name that the server shows in `pg_stat_activity`.
    ///   - settings: the settings of the session, such as `idle_session_timeout`.
    ///   - firstHost: the index of the server to try first; the others follow in cyclic order.
    ///   - hostMilliseconds: the timeout for each server in milliseconds, after which the next server is tried.
    package init(
        _ address: PostgresAddress,
        application: String,
        settings: [PostgresSetting] = [],
        firstHost: Int = 0,
        hostMilliseconds: Int64 = 5_000
    ) {
        self.address = address
        self.application = application
        self.settings = settings
        self.firstHost = firstHost
        self.hostMilliseconds = hostMilliseconds
        self.tryNextHost()
    }

    // MARK: Connecting

    /// The events of the socket to wait for. Each `advance` may change them.
    package var waits: [Descriptor.Wait] {
        guard let descriptor = self.connection?.descriptor, descriptor >= 0 else { return [] }
        var waits: [Descriptor.Wait] = []
        if self.phase != .writing { waits.append(Descriptor.Wait(descriptor, .readable)) }
        if self.phase == .writing || self.hasUnsent { waits.append(Descriptor.Wait(descriptor, .writable)) }
        return waits
    }

    /// The current server, such as `db1:5432`.
    package var server: String {
        guard let connection, !connection.host.isEmpty else { return self.tried }
        return PostgresHost(name: connection.host, port: connection.port).description
    }

    /// The index of the current server in the address.
    package var hostIndex: Int { (self.firstHost + max(0, self.triedCount)) % max(1, self.address.hosts.count) }

    /// The process id of the session on the server, as in notifications and `pg_stat_activity`.
    package var backend: Int32 { self.connection?.backend ?? 0 }

    /// The server's version, such as 150018; 0 before the connection is open.
    package var version: Int { self.connection?.version ?? 0 }

    /// Connects, or sends and reads, as far as possible without waiting for the server.
    package func advance() {
        switch self.phase {
        case .reading, .writing: self.continueConnecting()
        case .ready:
            if self.hasUnsent { self.flush() }
            if self.connection?.consume() != true { self.lose() }
        case .failed: ()
        }
    }

    private func continueConnecting() {
        if let deadline = self.deadline, SystemClock.monotonic >= deadline {
            let message = "no answer within \(Double(self.hostMilliseconds) / 1000) s"
            return self.hostFailed(PostgresError(kind: .unreachable, message: message, server: self.tried))
        }
        switch self.connection?.poll() {
        case .readable: self.phase = .reading
        case .writable: self.phase = .writing
        case .nothing: self.begin()
        case .failed, nil: self.hostFailed(self.connectError)
        }
    }

    private var tried: String {
        self.address.hosts.indices.contains(self.hostIndex)
            ? self.address.hosts[self.hostIndex].description : self.address.description
    }

    private var connectError: PostgresError {
        ConnectFailure.read(self.connection?.message ?? "", server: self.tried)
    }

    private func begin() {
        guard self.connection?.beginPipeline() == true else {
            return self.hostFailed(
                PostgresError(kind: .client, message: "libpq takes no pipeline", server: self.tried)
            )
        }
        self.deadline = nil
        self.phase = .ready
    }

    private func hostFailed(_ error: PostgresError) {
        self.attempts.append(error)
        self.tryNextHost()
    }

    private func tryNextHost() {
        while true {
            self.connection = nil
            self.triedCount += 1
            guard self.triedCount < max(1, self.address.hosts.count) else { break }
            do throws(PostgresError) {
                try self.start()
                self.phase = .writing
                self.deadline = SystemClock.monotonic + self.hostMilliseconds
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
        let connection = LibPQ(self.words(host))
        self.connection = connection
        // Before anything is sent, check the effective options, including options of a service file and the
        // environment.
        guard let options = connection.options else {
            throw PostgresError(kind: .client, message: "out of memory for a connection", server: self.tried)
        }
        if !self.address.allowsUnverifiedServers, options["sslmode"] != "verify-full",
            let remote = PostgresHost.list(in: options).first(where: \.isRemote)
        {
            throw PostgresError(
                kind: .insecure,
                message: "sslmode is not verify-full, so that anybody on the way could read and change everything",
                server: remote.description
            )
        }
        if connection.isBad { throw self.connectError }
    }

    /// Returns the keywords and values for a connection to a server, nil if the address names none; the last value of a
    /// keyword is effective.
    private func words(_ host: PostgresHost?) -> [(keyword: String, value: String)] {
        // Defaults that the address may override: a peer that disappears is detected within ten seconds.
        var words: [(keyword: String, value: String)] = [
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
            ("tcp_user_timeout", "10000"),
            // Without this, libpq would try Kerberos encryption before TLS.
            ("gssencmode", "disable"), ("fallback_application_name", self.application), ("dbname", self.address.text),
        ]
        if let host {
            // An empty value would not override the lists in the address.
            if !host.name.isEmpty { words.append(("host", host.name)) }
            if !host.address.isEmpty { words.append(("hostaddr", host.address)) }
            if !host.port.isEmpty {
                words.append(("port", host.port))
            } else if self.address.hosts.count > 1 {
                // libpq reads several hosts without ports as a list of empty ports, which does not fit one host.
                words.append(("port", "5432"))
            }
        }
        words.append(("client_encoding", "UTF8"))
        guard !self.settings.isEmpty else { return words }
        let arguments = [self.address["options"] ?? ""] + self.settings.map(\.argument)
        words.append(("options", arguments.filter { !$0.isEmpty }.joined(separator: " ")))
        return words
    }

    // MARK: Sending

    /// Sends a request to prepare a statement under a name; the server infers the types of its parameters.
    package func prepare(_ name: String, _ sql: String) {
        if self.connection?.prepare(name, sql) != true { self.lose() }
    }

    /// Sends a statement; its rows are returned in binary.
    package func query(_ sql: String, _ parameters: borrowing PostgresParameters = PostgresParameters()) {
        if self.connection?.query(sql, parameters) != true { self.lose() }
    }

    /// Sends the execution of a prepared statement; its rows are returned in binary.
    package func execute(_ name: String, _ parameters: borrowing PostgresParameters) {
        if self.connection?.execute(name, parameters) != true { self.lose() }
    }

    /// Ends a batch of statements.
    package func sync() {
        if self.connection?.sync() != true { self.lose() }
        self.flush()
    }

    /// Passes queued bytes to the system, as far as the socket accepts them.
    private func flush() {
        let left = self.isLost ? 0 : self.connection?.flush() ?? 0
        self.hasUnsent = left > 0
        if left < 0 { self.lose() }
    }

    // MARK: Reading

    /// True if the connection is lost or could not be made; `next` may still return earlier outcomes.
    package var isLost: Bool {
        if self.failure != nil { return true }
        guard let connection, connection.isBad || connection.ending != nil, self.phase == .ready else { return false }
        self.lose()
        return true
    }

    /// Returns the outcome of the next batch; nil if it has not arrived completely.
    package func next() -> PostgresOutcome? {
        guard let connection else { return nil }
        while !connection.isBusy {
            guard let result = connection.next() else {
                // One nil ends a statement; a second nil in a row means that no statement follows.
                self.endsInARow += 1
                guard self.endsInARow < 2 else {
                    self.endsInARow = 0
                    return nil
                }
                continue
            }
            self.endsInARow = 0
            switch result.status {
            case .synced:
                self.unfinished.notices = connection.takeNotices()
                defer { self.unfinished = PostgresOutcome() }
                return self.unfinished
            case .aborted: ()
            case .rows: self.unfinished.results.append(result)
            case .failed:
                let failure = result.failure
                let error = PostgresError(failure, server: self.server)
                if failure.isFatal { self.failure = self.failure ?? error }
                self.unfinished.failure = self.unfinished.failure ?? error
            }
        }
        return nil
    }

    /// Returns the next notification that `advance` read; nil if there is none.
    package func notification() -> PostgresNotification? { self.connection?.notification() }

    /// Records the loss and its reason, if no failure is recorded.
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

    /// Marks the connection as lost.
    package func abandon(_ message: String) {
        self.failure = self.failure ?? PostgresError(kind: .connectionLost, message: message, server: self.server)
    }
}

/// A setting of a session. It overrides the settings of the user and of the database.
package struct PostgresSetting: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The setting as a command-line argument of the server, with spaces escaped.
    var argument: String {
        let value = self.value.reduce(into: "") { text, character in
            if character == " " || character == "\\" { text.append("\\") }
            text.append(character)
        }
        return "-c \(self.name)=\(value)"
    }
}

/// A message of a server: the error of a statement, a warning, or the reason why the server ends the connection.
package struct PostgresNotice: Hashable, Sendable {
    /// The SQLSTATE; empty if the message is from libpq.
    package let state: String
    /// The severity, such as `WARNING`, `NOTICE` or `FATAL`, never translated.
    package let severity: String
    /// The message as one line; may be empty.
    package let message: String
    /// The server's function that reported this; empty if it is not known.
    package let function: String

    /// True if the server ends the connection with this message.
    var isFatal: Bool { self.severity == "FATAL" || self.severity == "PANIC" }

    /// True if a commit is durable only on this server, because it stopped waiting for the standbys.
    package var isUnreplicatedCommit: Bool {
        // The server translates its messages, and the SQLSTATE is that of any warning.
        self.severity == "WARNING" && self.function == "SyncRepWaitForLSN"
    }
}

/// A message sent with NOTIFY to a channel that this session listens on.
package struct PostgresNotification: Hashable, Sendable {
    package let channel: String
    package let payload: String
    /// The process id of the sender's session; equals `PostgresLink.backend` if this session sent the notification.
    package let sender: Int32

    package init(channel: String, payload: String, sender: Int32) {
        self.channel = channel
        self.payload = payload
        self.sender = sender
    }
}
