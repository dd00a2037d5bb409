import Platform

/// The result of an exchange.
struct ExchangeOutcome {
    /// The results of the statements up to the first that failed, in order.
    var results: [PostgresRows] = []
    var failure: PostgresError?
    /// The server's notices during the exchange.
    var notices: [PostgresNotice] = []

    /// The reason why a commit is on only one server; nil if it is replicated as required.
    var unreplicated: PostgresError? {
        self.notices.first(where: \.isUnreplicatedCommit).map {
            PostgresError(kind: .cancelled, state: $0.state, message: $0.message)
        }
    }
}

/// A connection with its unanswered statements.
///
/// Statements are sent in exchanges, which are batches that the server answers together. After the first failure, the
/// server skips the remaining statements of the exchange. `Statement` has the statements that the connection prepares.
final class Session<Purpose, Statement: PreparedStatement> {
    private struct Exchange {
        let purpose: Purpose
        /// The time on the monotonic clock, in milliseconds.
        let sentAt: Int64
        var outcome = ExchangeOutcome()
    }

    let server: PostgresLink
    private var exchanges: [Exchange] = []
    /// True if the connection was made.
    private(set) var isReady = false
    private var hasUnsent = false

    /// Starts to connect one of a store's connections.
    init(_ state: StoreState, _ settings: [PostgresSetting]) {
        self.server = PostgresLink(
            state.settings.address,
            application: "wakegate",
            settings: settings,
            firstHost: state.firstHost,
            hostMilliseconds: StoreSettings.connectMilliseconds
        )
    }

    /// The time of the oldest unanswered exchange; nil if there is none.
    var waitsSince: Int64? { self.exchanges.first?.sentAt }

    // MARK: Sending

    /// Sends a batch of statements; its outcome is reported under `purpose`.
    func exchange(_ purpose: Purpose, _ body: (SessionSender<Statement>) -> Void) {
        self.exchange { sender in
            body(sender)
            return purpose
        }
    }

    /// Sends the statements of `body` as a batch. Its outcome is reported under the purpose that `body` returns.
    func exchange(_ body: (SessionSender<Statement>) -> Purpose) {
        let sentAt = SystemClock.monotonic
        self.exchanges.append(Exchange(purpose: body(SessionSender(link: self.server)), sentAt: sentAt))
        self.server.sync()
        self.hasUnsent = self.server.flush() == .someLeft
    }

    // MARK: Waiting and reading

    /// The events of the descriptor to wait for.
    var waits: [Descriptor.Wait] {
        let descriptor = self.server.descriptor
        guard descriptor >= 0 else { return [] }
        if !self.isReady {
            return [Descriptor.Wait(descriptor, self.server.phase == .writing ? .writable : .readable)]
        }
        let reading = Descriptor.Wait(descriptor, .readable)
        return self.hasUnsent ? [reading, Descriptor.Wait(descriptor, .writable)] : [reading]
    }

    /// The result of `advance`.
    enum Turn {
        case continues
        /// The connection is made.
        case connected
        /// The connection is lost.
        case ended(PostgresError)
    }

    /// Sends and reads as far as possible without waiting, and appends the answered exchanges.
    func advance(into answered: inout [(purpose: Purpose, outcome: ExchangeOutcome)]) -> Turn {
        guard self.isReady else { return self.connect() }
        if self.hasUnsent { self.hasUnsent = self.server.flush() == .someLeft }
        let isWhole = self.server.consume()
        self.read(into: &answered)
        guard isWhole, !self.server.isLost else { return .ended(self.ending) }
        return .continues
    }

    private func connect() -> Turn {
        self.server.advance()
        switch self.server.phase {
        case .reading, .writing: return .continues
        case .ready:
            self.isReady = true
            return .connected
        case .failed: return .ended(self.ending)
        }
    }

    private func read(into answered: inout [(purpose: Purpose, outcome: ExchangeOutcome)]) {
        while let event = self.server.next() {
            guard !self.exchanges.isEmpty else { continue }
            switch event {
            case .rows(let rows): self.exchanges[0].outcome.results.append(rows)
            case .failed(let failure):
                if self.exchanges[0].outcome.failure == nil { self.exchanges[0].outcome.failure = failure }
            case .aborted: ()
            case .synced:
                var exchange = self.exchanges.removeFirst()
                exchange.outcome.notices = self.server.takeNotices()
                answered.append((exchange.purpose, exchange.outcome))
            }
        }
    }

    private var ending: PostgresError {
        self.server.failure ?? PostgresError(kind: .connectionLost, message: "the connection is lost")
    }

    /// Returns the notifications since the last call.
    func takeNotifications() -> [PostgresNotification] {
        var notifications: [PostgresNotification] = []
        while let notification = self.server.notification() { notifications.append(notification) }
        return notifications
    }
}

/// A connection of the store. The store's thread calls its functions.
protocol StoreLink: AnyObject {
    associatedtype Purpose
    associatedtype Statement: PreparedStatement

    /// The connection; nil while it is closed.
    var session: Session<Purpose, Statement>? { get }

    /// The next time at which `timePassed` has work, on the monotonic clock; nil if there is none.
    var nextMoment: Int64? { get }

    /// Does the work that is due.
    func timePassed(_ now: Int64)

    /// Handles a new connection.
    func connected()

    /// Handles the answer to an exchange.
    func answered(_ purpose: Purpose, _ outcome: ExchangeOutcome)

    /// Handles notifications.
    func hear(_ notifications: [PostgresNotification])

    /// Handles the loss of the connection, or a failure to connect.
    func ended(_ failure: PostgresError)
}

extension StoreLink {
    var waits: [Descriptor.Wait] { self.session?.waits ?? [] }

    func hear(_ notifications: [PostgresNotification]) {}

    /// Sends and reads as far as possible without waiting.
    func advance() {
        guard let session = self.session else { return }
        var answered: [(purpose: Purpose, outcome: ExchangeOutcome)] = []
        let turn = session.advance(into: &answered)
        for (purpose, outcome) in answered where self.session === session { self.answered(purpose, outcome) }
        guard self.session === session else { return }
        self.hear(session.takeNotifications())
        guard self.session === session else { return }
        switch turn {
        case .continues: ()
        case .connected: self.connected()
        case .ended(let failure): self.ended(failure)
        }
    }
}

/// The pauses between attempts to connect. Each pause is twice as long as the previous pause, up to a second.
struct RetryPause {
    private var milliseconds = StoreSettings.pauseMilliseconds.lowerBound

    /// Returns the time of the next attempt, on the monotonic clock.
    mutating func next() -> Int64 {
        defer { self.milliseconds = min(self.milliseconds * 2, StoreSettings.pauseMilliseconds.upperBound) }
        return SystemClock.monotonic + self.milliseconds
    }
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

/// Appends statements to the output of one connection.
struct SessionSender<Statement: PreparedStatement> {
    fileprivate let link: PostgresLink

    /// Prepares every statement.
    func prepareAll(clock: String) {
        for statement in Statement.allCases { self.link.prepare(statement.name, statement.sql(clock: clock)) }
    }

    func query<each Value: PostgresValue>(_ sql: String, _ values: repeat each Value) {
        self.link.query(sql, PostgresParameters(repeat each values))
    }

    func run<each Value: PostgresValue>(_ statement: Statement, _ values: repeat each Value) {
        self.run(statement, PostgresParameters(repeat each values))
    }

    func run(_ statement: Statement, _ parameters: borrowing PostgresParameters) {
        self.link.execute(statement.name, parameters)
    }
}

extension SessionSender: StatementRunner where Statement == CommitStatement {}
