import Engine
import Platform

/// The connection that adds topics, stores shared values, and sends and receives notices.
///
/// A separate connection protects the heartbeat of the control connection from delays. Such delays are a commit that
/// waits for a standby, a lock of another session, or a flood of notices.
final class SharedLink: StoreLink {
    /// A value to share with all gateways.
    typealias PendingValue = (name: String, content: [UInt8])

    /// The maximum number of attempts to add the same topics. An attempt fails if another gateway adds topics at the
    /// same time.
    private static let attemptsMax = 20

    private let state: StoreState
    /// The connection that reads shared topics and values.
    private let control: ControlLink
    let connection: StoreConnection<ControlStatement>
    private var notices = NoticeQueue()
    private var isNotifying = false
    private var senders = NoticeSenders()
    /// The requested topics that are not answered yet; nil if there are none.
    private var topics: [String]?
    private var topicAttempts = 0
    private var isMakingTopics = false
    /// True if topics were requested since the current exchange began.
    private var isAskedAgain = false
    /// Values that are not stored yet, in the order of the requests.
    private var pendingValues: [PendingValue] = []
    private var isStoringValue = false

    init(_ state: StoreState, _ control: ControlLink) {
        self.state = state
        self.control = control
        self.connection = StoreConnection(state)
    }

    private var isWorking: Bool { self.connection.isReady }

    var nextWork: Int64? { self.senders.nextMoment }

    /// Checks the senders of notices.
    func workIfDue(_ now: Int64) {
        guard self.isWorking else { return }
        self.senders.timePassed(now)
        self.checkSenders()
    }

    // MARK: Connecting

    var settings: [PostgresSetting] { SessionSetup.shared }

    func connected() {
        self.connection.query(SessionSetup.durable)
        self.connection.query("LISTEN wakegate")
        self.connection.send { self.listenAnswered($0) }
        self.sendTopics()
        self.sendValue()
    }

    private func listenAnswered(_ outcome: PostgresOutcome) {
        if let failure = outcome.failure { return self.ended(failure) }
        self.connection.resetPause()
        // Notices sent before LISTEN were missed.
        self.control.readNews()
        self.notify()
    }

    /// Refuses all requests, which cannot be sent without a connection.
    private func refuseAll(_ error: StoreError) {
        if self.topics != nil { self.refuseTopics(error) }
        for value in self.pendingValues { self.refuse(value, error) }
        self.pendingValues = []
    }

    // MARK: Sharing

    /// Adds topics. The answer has all existing topics, even if no topic was added.
    func addTopics(_ names: [String]) {
        var topics = self.topics ?? []
        for name in names where !topics.contains(name) { topics.append(name) }
        self.topics = topics
        self.isAskedAgain = self.isMakingTopics
        self.sendTopics()
    }

    private func sendTopics() {
        guard self.isWorking, !self.isMakingTopics, let names = self.topics else { return }
        self.isMakingTopics = true
        if !names.isEmpty {
            // A gateway that cannot get the lock adds topics without it; a unique constraint detects equal numbers.
            self.query(.lockTopics)
            self.query(.addTopics, PostgresList(names))
        }
        self.query(.topicsFrom, Int32(0))
        self.connection.send { self.topicsAnswered(names, $0) }
    }

    private func query<each Value: PostgresValue>(_ statement: ControlStatement, _ values: repeat each Value) {
        self.connection.query(self.connection.sql(statement), repeat each values)
    }

    private func topicsAnswered(_ names: [String], _ outcome: PostgresOutcome) {
        self.isMakingTopics = false
        if let failure = outcome.failure ?? outcome.unreplicated {
            self.topicAttempts += 1
            guard failure.kind == .uniqueViolation, self.topicAttempts < Self.attemptsMax else {
                return self.refuseTopics(self.error(failure, "topics"))
            }
            return self.sendTopics()
        }
        guard let rows = outcome.results.last else { return self.refuseTopics(StoreError(.unexpectedAnswer)) }
        self.topicAttempts = 0
        let made = Set(names)
        let left = (self.topics ?? []).filter { !made.contains($0) }
        self.topics = left.isEmpty && !self.isAskedAgain ? nil : left
        self.isAskedAgain = false
        self.control.topicsMade(rows)
        self.notices.append(.topics)
        self.sendTopics()
        self.notify()
    }

    private func refuseTopics(_ error: StoreError) {
        self.topics = nil
        self.topicAttempts = 0
        self.state.replies.append(.topicsRefused(error))
    }

    /// Stores a value under a name.
    func storeValue(_ name: String, _ content: [UInt8]) {
        self.pendingValues.append((name, content))
        self.sendValue()
    }

    private func sendValue() {
        guard self.isWorking, !self.isStoringValue, let value = self.pendingValues.first else { return }
        self.isStoringValue = true
        self.query(.storeValue, value.name, value.content)
        self.connection.send { self.valueAnswered(value, $0) }
    }

    private func valueAnswered(_ value: PendingValue, _ outcome: PostgresOutcome) {
        self.isStoringValue = false
        if !self.pendingValues.isEmpty { self.pendingValues.removeFirst() }
        if let failure = outcome.failure ?? outcome.unreplicated {
            self.refuse(value, self.error(failure, "values"))
        } else if let row = outcome.results.last, row.count == 1 {
            self.control.valueStored(value.name, value.content, version: row.int64(0, 0))
            self.notices.append(.values)
            self.notify()
        } else {
            self.refuse(value, StoreError(.unexpectedAnswer))
        }
        self.sendValue()
    }

    private func refuse(_ value: PendingValue, _ error: StoreError) {
        self.state.replies.append(.valueNotStored(name: value.name, value.content, error))
    }

    /// - `table`: the table whose lock was not available.
    private func error(_ failure: PostgresError, _ table: String) -> StoreError {
        guard failure.kind == .lockNotAvailable else { return StoreError(failure) }
        return StoreError(
            message: "PostgreSQL at \(failure.server): another session has held a lock on \(table) for three seconds. "
                + "See pg_locks and pg_stat_activity for who it is; a gateway that waits for a standby does so, too."
        )
    }

    // MARK: Notices

    /// Sends notices to other gateways.
    func tell(_ notices: [ClusterNotice]) {
        guard self.state.number != nil else { return }
        for notice in notices { self.notices.append(.notice(notice)) }
        self.notify()
    }

    private func notify() {
        guard self.isWorking, !self.isNotifying, let number = self.state.number,
            let payload = self.notices.takePayload(sender: number)
        else { return }
        self.isNotifying = true
        self.query(.light)
        self.query(.notify, payload)
        self.connection.send { _ in
            self.isNotifying = false
            self.notify()
        }
    }

    func hear(_ notifications: [PostgresNotification]) {
        let own = self.connection.server?.backend
        for notification in notifications where notification.sender != own {
            if self.senders.mayHear(notification) { self.hear(notification.payload) }
        }
        guard !self.senders.isFlooded else {
            // Connect again later, because a new session does not receive the notices sent so far.
            self.close()
            self.connection.retryAt = SystemClock.monotonic + StoreSettings.pauseMilliseconds.upperBound
            return
        }
        self.checkSenders()
    }

    private func hear(_ payload: String) {
        guard let number = self.state.number else { return }
        for item in NoticePayload.read(payload, receiver: number) {
            switch item {
            case .notice(let notice): if self.state.isAttached { self.state.replies.append(.notified(notice)) }
            case .topics, .values: self.control.readNews()
            }
        }
    }

    private func checkSenders() {
        guard self.isWorking, let backends = self.senders.takeUnchecked() else { return }
        self.query(.sendersOfGateways, PostgresList(backends))
        self.connection.send { self.sendersChecked($0) }
    }

    private func sendersChecked(_ outcome: PostgresOutcome) {
        let rows = outcome.failure == nil ? outcome.results.last : nil
        let trusted = rows.map { rows in (0..<rows.count).map { rows.int32($0, 0) } } ?? []
        for notification in self.senders.checked(trusted: Set(trusted)) { self.hear(notification.payload) }
        self.checkSenders()
    }

    // MARK: Ending

    /// Handles the loss of the connection, or a failure to connect. After a loss, all requests are retried. After a
    /// failure to connect, they are refused.
    func ended(_ failure: PostgresError) {
        let wasConnecting = !self.isWorking
        self.close()
        if wasConnecting { self.refuseAll(StoreError(failure)) }
        self.connection.pauseBeforeRetry()
    }

    /// Detaches the store. The engine has refused all unanswered requests or will repeat them.
    func detached() {
        self.close()
        self.topics = nil
        self.topicAttempts = 0
        self.pendingValues = []
        self.notices.removeAll()
        self.connection.retryAt = 0
    }

    /// Closes the connection.
    func close() {
        self.connection.close()
        self.isNotifying = false
        self.isMakingTopics = false
        self.isStoringValue = false
        self.senders = NoticeSenders()
    }
}
