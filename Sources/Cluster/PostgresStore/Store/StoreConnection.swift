import Platform

/// A connection of the store with its unanswered statements. It is made again after a loss.
///
/// Statements are sent in exchanges, which are batches that the server answers together. After the first failure, the
/// server skips the remaining statements of the exchange. `Statement` has the statements that the connection prepares.
final class StoreConnection<Statement: PreparedStatement> {
    private struct Exchange {
        /// The time on the monotonic clock, in milliseconds.
        let sentAt: Int64
        let answered: (PostgresOutcome) -> Void
    }

    fileprivate let state: StoreState
    /// The connection to the server; nil while it is closed.
    private(set) var server: PostgresLink?
    private var exchanges: [Exchange] = []
    /// The time from which a closed connection is made again, on the monotonic clock.
    var retryAt: Int64 = 0
    /// The next pause between two attempts to connect, in milliseconds. Each pause is twice as long as the previous
    /// one, up to a second.
    private var pause = StoreSettings.pauseMilliseconds.lowerBound

    init(_ state: StoreState) {
        self.state = state
    }

    /// True if the connection was made.
    var isReady: Bool { self.server?.phase == .ready }

    /// The time of the oldest unanswered exchange; nil if there is none.
    var waitsSince: Int64? { self.exchanges.first?.sentAt }

    // MARK: Connecting

    /// Starts to connect.
    fileprivate func connect(_ settings: [PostgresSetting]) {
        self.server = PostgresLink(
            self.state.settings.address,
            application: "wakegate",
            settings: settings,
            firstHost: self.state.firstHost,
            hostMilliseconds: StoreSettings.connectMilliseconds
        )
    }

    /// Makes the next attempt to connect wait for the next pause.
    func pauseBeforeRetry() {
        self.retryAt = SystemClock.monotonic + self.pause
        self.pause = min(self.pause * 2, StoreSettings.pauseMilliseconds.upperBound)
    }

    /// Makes the next pause short again.
    func resetPause() { self.pause = StoreSettings.pauseMilliseconds.lowerBound }

    /// Closes the connection. Exchanges that are not answered are forgotten.
    func close() {
        self.server = nil
        self.exchanges = []
    }

    // MARK: Sending

    /// Appends the preparation of every statement to the next exchange.
    func prepareAll() {
        for statement in Statement.allCases { self.server?.prepare(statement.name, self.sql(statement)) }
    }

    /// Returns the text of a statement.
    func sql(_ statement: Statement) -> String { statement.sql(clock: self.state.settings.clock) }

    /// Appends a statement to the next exchange.
    func query<each Value: PostgresValue>(_ sql: String, _ values: repeat each Value) {
        self.server?.query(sql, PostgresParameters(repeat each values))
    }

    /// Appends a prepared statement to the next exchange.
    func run<each Value: PostgresValue>(_ statement: Statement, _ values: repeat each Value) {
        self.run(statement, PostgresParameters(repeat each values))
    }

    /// Appends a prepared statement to the next exchange.
    func run(_ statement: Statement, _ parameters: borrowing PostgresParameters) {
        self.server?.execute(statement.name, parameters)
    }

    /// Sends the appended statements as one exchange.
    ///
    /// - Parameter answered: called with the outcome, unless the connection is closed before.
    func send(_ answered: @escaping (PostgresOutcome) -> Void) {
        guard let server = self.server else { return }
        self.exchanges.append(Exchange(sentAt: SystemClock.monotonic, answered: answered))
        server.sync()
    }

    // MARK: Reading

    /// Connects, or sends and reads, as far as possible without waiting, and reports the result to the owner.
    fileprivate func advance(_ link: some StoreLink) {
        guard let server = self.server else { return }
        let wasReady = self.isReady
        server.advance()
        guard self.isReady == wasReady else { return link.connected() }
        let answered = wasReady ? self.read(server) : []
        let failure = server.isLost ? server.failure : nil
        for (exchange, outcome) in answered where self.server === server { exchange.answered(outcome) }
        guard self.server === server else { return }
        if wasReady {
            var notifications: [PostgresNotification] = []
            while let notification = server.notification() { notifications.append(notification) }
            link.hear(notifications)
        }
        guard self.server === server, let failure else { return }
        link.ended(failure)
    }

    /// Returns the exchanges that are answered.
    private func read(_ server: PostgresLink) -> [(Exchange, PostgresOutcome)] {
        var answered: [(Exchange, PostgresOutcome)] = []
        while let outcome = server.next() {
            if !self.exchanges.isEmpty { answered.append((self.exchanges.removeFirst(), outcome)) }
        }
        return answered
    }
}

extension StoreConnection: StatementRunner where Statement == CommitStatement {}

/// The owner of a connection of the store. The store's thread calls its functions.
protocol StoreLink: AnyObject {
    associatedtype Statement: PreparedStatement

    var connection: StoreConnection<Statement> { get }

    /// True if the connection may be made.
    var mayConnect: Bool { get }

    /// The settings of a session.
    var settings: [PostgresSetting] { get }

    /// The next time at which `workIfDue` has work, on the monotonic clock; nil if there is none.
    var nextWork: Int64? { get }

    /// Does the work of an open connection that is due.
    func workIfDue(_ now: Int64)

    /// Handles a new connection.
    func connected()

    /// Handles notifications.
    func hear(_ notifications: [PostgresNotification])

    /// Handles the loss of the connection, or a failure to connect.
    func ended(_ failure: PostgresError)
}

extension StoreLink {
    var mayConnect: Bool { self.connection.state.mayConnect }

    var isClosed: Bool { self.connection.server == nil }

    var waits: [Descriptor.Wait] { self.connection.server?.waits ?? [] }

    /// The next time at which `timePassed` has work, on the monotonic clock; nil if there is none.
    var nextMoment: Int64? {
        guard let server = self.connection.server else { return self.mayConnect ? self.connection.retryAt : nil }
        return server.deadline ?? self.nextWork
    }

    /// Connects if it is time, or does the work that is due.
    func timePassed(_ now: Int64) {
        guard self.isClosed else { return self.workIfDue(now) }
        if self.mayConnect, now >= self.connection.retryAt { self.connection.connect(self.settings) }
    }

    func hear(_ notifications: [PostgresNotification]) {}

    /// Sends and reads as far as possible without waiting.
    func advance() { self.connection.advance(self) }
}

/// The statements that a connection prepares.
protocol PreparedStatement: CaseIterable {
    /// The name of the prepared statement.
    var name: String { get }

    /// - Parameter clock: an expression for the primary's clock in milliseconds since 1970.
    func sql(clock: String) -> String
}

extension PreparedStatement {
    var name: String { "wakegate_\(self)" }
}
