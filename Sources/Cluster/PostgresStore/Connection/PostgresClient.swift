internal import Platform

/// A connection whose user waits for each answer, for work beside the gateway's own: the history, an import, checks.
///
/// It has one user at a time, on any thread. Once a call has thrown an error of kind `connectionLost`, every further
/// one does: make another.
package final class PostgresClient {
    private let link: PostgresLink
    private let answerMilliseconds: Int64

    /// Connects, and waits for that.
    ///
    /// - Parameters:
    ///   - address: where to.
    ///   - application: what the server shows in `pg_stat_activity`.
    ///   - settings: of the session.
    ///   - hostMilliseconds: how long each server of the address is waited for.
    ///   - answerMilliseconds: how long an answer is waited for before the connection counts as lost.
    /// - Throws: why no server of the address can be used.
    package init(
        _ address: PostgresAddress,
        application: String,
        settings: [PostgresSetting] = [],
        hostMilliseconds: Int64 = 5_000,
        answerMilliseconds: Int64 = 600_000
    ) throws(PostgresError) {
        self.answerMilliseconds = answerMilliseconds
        self.link = PostgresLink(
            address,
            application: application,
            settings: settings,
            hostMilliseconds: hostMilliseconds
        )
        while let deadline = self.link.deadline {
            let readiness: Descriptor.Readiness = self.link.phase == .reading ? .readable : .writable
            let wait = max(0, min(deadline - SystemClock.monotonic, Int64(Int32.max)))
            Descriptor.wait(for: self.link.descriptor, readiness, milliseconds: Int32(wait))
            self.link.advance()
        }
        if let failure = self.link.failure { throw failure }
    }

    /// Who it is connected to, such as `db1:5432`.
    package var server: String { self.link.server }

    /// The number of the server's process for this session.
    package var backend: Int32 { self.link.backend }

    /// The server's version, such as 150018.
    package var version: Int { self.link.version }

    package var transaction: PostgresTransaction { self.link.transaction }

    /// Carries out one statement without parameters.
    @discardableResult
    package func query(_ sql: String) throws(PostgresError) -> PostgresRows {
        self.link.query(sql)
        return try self.answer()
    }

    /// Carries out one statement.
    @discardableResult
    package func query(
        _ sql: String,
        _ parameters: borrowing PostgresParameters
    ) throws(PostgresError) -> PostgresRows {
        self.link.query(sql, parameters)
        return try self.answer()
    }

    /// Has the server keep a statement under a name.
    package func prepare(_ name: String, _ sql: String) throws(PostgresError) {
        self.link.prepare(name, sql)
        _ = try self.answer()
    }

    /// Carries out a prepared statement.
    @discardableResult
    package func execute(
        _ name: String,
        _ parameters: borrowing PostgresParameters
    ) throws(PostgresError) -> PostgresRows {
        self.link.execute(name, parameters)
        return try self.answer()
    }

    /// Carries out statements that stand behind each other, as one transaction; none when one fails.
    package func script(_ sql: String) throws(PostgresError) {
        try self.link.script(sql)
    }

    /// The next notification, which is waited for; nil when none came.
    ///
    /// - Throws: when the connection is lost.
    package func notification(waitingAtMost milliseconds: Int64) throws(PostgresError) -> PostgresNotification? {
        let deadline = SystemClock.monotonic + milliseconds
        while true {
            if let notification = self.link.notification() { return notification }
            let wait = deadline - SystemClock.monotonic
            guard wait > 0 else { return nil }
            Descriptor.wait(for: self.link.descriptor, .readable, milliseconds: Int32(min(wait, 60_000)))
            guard self.link.consume() else { throw self.loss }
        }
    }

    /// What the server told besides answers since the last call.
    package func takeNotices() -> [PostgresNotice] { self.link.takeNotices() }

    private func answer() throws(PostgresError) -> PostgresRows {
        self.link.sync()
        let deadline = SystemClock.monotonic + self.answerMilliseconds
        var rows: PostgresRows?
        var failure: PostgresError?
        while true {
            let flush = self.link.flush()
            let isWhole = flush != .failed && self.link.consume()
            while let event = self.link.next() {
                switch event {
                case .rows(let answer): rows = answer
                case .failed(let error): failure = failure ?? error
                case .aborted: ()
                case .synced:
                    if let failure { throw failure }
                    guard let rows else { throw self.loss }
                    return rows
                }
            }
            guard isWhole else { throw failure ?? self.loss }
            let wait = deadline - SystemClock.monotonic
            guard wait > 0 else {
                self.link.abandon("no answer within \(self.answerMilliseconds / 1000) s")
                throw self.loss
            }
            var waits = [Descriptor.Wait(self.link.descriptor, .readable)]
            if flush == .someLeft { waits.append(Descriptor.Wait(self.link.descriptor, .writable)) }
            Descriptor.wait(for: &waits, milliseconds: Int32(min(wait, 60_000)))
        }
    }

    private var loss: PostgresError {
        self.link.failure
            ?? PostgresError(kind: .connectionLost, message: "the answer makes no sense", server: self.link.server)
    }
}
