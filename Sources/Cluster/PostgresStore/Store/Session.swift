import Platform

/// One connection, and what was sent on it and is not answered yet.
///
/// Statements go out as exchanges, each a run of statements that the server answers as one: the first that fails has
/// those behind it passed over.
final class Session<Purpose> {
    /// What came of an exchange.
    struct Outcome {
        /// The results of the statements up to the first that failed, in their order.
        var results: [PostgresRows] = []
        var failure: PostgresError?
        /// What the server warned of meanwhile.
        var notices: [PostgresNotice] = []

        /// Why what was committed is on one server alone; nil when it is where it should be.
        var unreplicated: PostgresError? {
            self.notices.first(where: \.isUnreplicatedCommit).map {
                PostgresError(kind: .cancelled, state: $0.state, message: $0.message)
            }
        }
    }

    private struct Exchange {
        let purpose: Purpose
        /// On the clock that never steps, in milliseconds.
        let sentAt: Int64
        var outcome = Outcome()
    }

    private let link: PostgresLink
    private var exchanges: [Exchange] = []
    private var isConnected = false
    private var hasUnsent = false

    /// Begins to make one of a store's connections.
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
    /// Whether nothing that was sent waits for an answer.
    var isQuiet: Bool { self.exchanges.isEmpty }
    /// When the oldest exchange was sent that is not answered yet; nil when there is none.
    var waitsSince: Int64? { self.exchanges.first?.sentAt }

    // MARK: Sending

    /// Sends a run of statements, and reads its outcome under `purpose` later.
    func exchange(_ purpose: Purpose, _ body: (SessionSender) -> Void) {
        self.exchanges.append(Exchange(purpose: purpose, sentAt: SystemClock.monotonic))
        body(SessionSender(link: self.link))
        self.link.sync()
        self.hasUnsent = self.link.flush() == .someLeft
    }

    /// Sends a run of statements whose purpose follows from them.
    func exchange(_ body: (SessionSender) -> Purpose) {
        let sentAt = SystemClock.monotonic
        self.exchanges.append(Exchange(purpose: body(SessionSender(link: self.link)), sentAt: sentAt))
        self.link.sync()
        self.hasUnsent = self.link.flush() == .someLeft
    }

    // MARK: Waiting and reading

    /// What is to be waited for.
    var waits: [Descriptor.Wait] {
        let descriptor = self.link.descriptor
        guard descriptor >= 0 else { return [] }
        if !self.isConnected {
            return [Descriptor.Wait(descriptor, self.link.phase == .writing ? .writable : .readable)]
        }
        let reading = Descriptor.Wait(descriptor, .readable)
        return self.hasUnsent ? [reading, Descriptor.Wait(descriptor, .writable)] : [reading]
    }

    /// What came of a turn.
    enum Turn {
        case goesOn
        /// The connection is made.
        case connected
        /// The connection is gone.
        case ended(PostgresError)
    }

    /// Goes on as far as it does without waiting, and appends the exchanges that are answered.
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
        return .goesOn
    }

    private func connect() -> Turn {
        self.link.advance()
        switch self.link.phase {
        case .reading, .writing: return .goesOn
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

/// The pauses between attempts to make a connection: each is twice as long as the one before, up to a second.
struct RetryPause {
    private var milliseconds = StoreSettings.pauseMilliseconds.lowerBound

    /// Returns the moment of the next attempt, on the monotonic clock.
    mutating func next() -> Int64 {
        defer { self.milliseconds = min(self.milliseconds * 2, StoreSettings.pauseMilliseconds.upperBound) }
        return SystemClock.monotonic + self.milliseconds
    }
}

/// Appends statements to what one connection sends.
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
