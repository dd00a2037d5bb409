import Platform

/// A connection with its unanswered statements.
///
/// Statements are sent in exchanges, which are batches that the server answers together. After the first failure, the
/// server skips the remaining statements of the exchange.
final class Session<Purpose> {
    /// The result of an exchange.
    struct Outcome {
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

    private struct Exchange {
        let purpose: Purpose
        /// The time on the monotonic clock, in milliseconds.
        let sentAt: Int64
        var outcome = Outcome()
    }

    private let link: PostgresLink
    private var exchanges: [Exchange] = []
    private var isConnected = false
    private var hasUnsent = false

    /// Starts to connect one of a store's connections.
    init(_ state: StoreState, _ settings: [PostgresSetting]) {
        self.link = PostgresLink(
            state.settings.address,
            application: "wakegate",
            settings: settings,
            firstHost: state.firstHost,
            hostMilliseconds: StoreSettings.connectMilliseconds
        )
    }

    var server: PostgresLink { self.link }
    var isReady: Bool { self.isConnected }
    /// True if no exchange waits for an answer.
    var isQuiet: Bool { self.exchanges.isEmpty }
    /// The time of the oldest unanswered exchange; nil if there is none.
    var waitsSince: Int64? { self.exchanges.first?.sentAt }

    // MARK: Sending

    /// Sends a batch of statements; its outcome is reported under `purpose`.
    func exchange(_ purpose: Purpose, _ body: (SessionSender) -> Void) {
        self.exchanges.append(Exchange(purpose: purpose, sentAt: SystemClock.monotonic))
        body(SessionSender(link: self.link))
        self.link.sync()
        self.hasUnsent = self.link.flush() == .someLeft
    }

    /// Sends the statements of `body` as a batch. Its outcome is reported under the purpose that `body` returns.
    func exchange(_ body: (SessionSender) -> Purpose) {
        let sentAt = SystemClock.monotonic
        self.exchanges.append(Exchange(purpose: body(SessionSender(link: self.link)), sentAt: sentAt))
        self.link.sync()
        self.hasUnsent = self.link.flush() == .someLeft
    }

    // MARK: Waiting and reading

    /// The events of the descriptor to wait for.
    var waits: [Descriptor.Wait] {
        let descriptor = self.link.descriptor
        guard descriptor >= 0 else { return [] }
        if !self.isConnected {
            return [Descriptor.Wait(descriptor, self.link.phase == .writing ? .writable : .readable)]
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
    func advance(into answered: inout [(purpose: Purpose, outcome: Outcome)]) -> Turn {
        guard self.isConnected else { return self.connect() }
        if self.hasUnsent {
            let left = self.link.flush()
            self.hasUnsent = left == .someLeft
            if left == .failed { self.hasUnsent = false }
        }
        let isWhole = self.link.consume()
        self.read(into: &answered)
        guard isWhole, !self.link.isLost else { return .ended(self.ending) }
        return .continues
    }

    private func connect() -> Turn {
        self.link.advance()
        switch self.link.phase {
        case .reading, .writing: return .continues
        case .ready:
            self.isConnected = true
            return .connected
        case .failed: return .ended(self.ending)
        }
    }

    private func read(into answered: inout [(purpose: Purpose, outcome: Outcome)]) {
        while let event = self.link.next() {
            guard !self.exchanges.isEmpty else { continue }
            switch event {
            case .rows(let rows): self.exchanges[0].outcome.results.append(rows)
            case .failed(let failure):
                if self.exchanges[0].outcome.failure == nil { self.exchanges[0].outcome.failure = failure }
            case .aborted: ()
            case .synced:
                var exchange = self.exchanges.removeFirst()
                exchange.outcome.notices = self.link.takeNotices()
                answered.append((exchange.purpose, exchange.outcome))
            }
        }
    }

    private var ending: PostgresError {
        self.link.failure ?? PostgresError(kind: .connectionLost, message: "the connection is lost")
    }

    /// Returns the notifications since the last call.
    func takeNotifications() -> [PostgresNotification] {
        var notifications: [PostgresNotification] = []
        while let notification = self.link.notification() { notifications.append(notification) }
        return notifications
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

/// Appends statements to the output of one connection.
struct SessionSender: StatementRunner {
    fileprivate let link: PostgresLink

    func prepare(_ name: String, _ sql: String) { self.link.prepare(name, sql) }

    func query(_ sql: String) { self.link.query(sql) }

    func query(_ sql: String, _ parameters: borrowing PostgresParameters) { self.link.query(sql, parameters) }

    func run(_ statement: CommitStatement) { self.link.execute(statement.name) }

    func run(_ statement: CommitStatement, _ parameters: borrowing PostgresParameters) {
        self.link.execute(statement.name, parameters)
    }

    func run(_ statement: QuestionStatement) { self.link.execute(statement.name) }

    func run(_ statement: QuestionStatement, _ parameters: borrowing PostgresParameters) {
        self.link.execute(statement.name, parameters)
    }

    func run(_ statement: ControlStatement) { self.link.execute(statement.name) }

    func run(_ statement: ControlStatement, _ parameters: borrowing PostgresParameters) {
        self.link.execute(statement.name, parameters)
    }
}
