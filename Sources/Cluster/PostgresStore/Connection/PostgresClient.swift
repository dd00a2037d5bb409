package import Engine
internal import Platform

/// A connection with blocking calls, for the history, imports and checks.
///
/// Used by one caller at a time, on any thread. After an error of kind `connectionLost`, every call throws this kind;
/// create another client.
package final class PostgresClient {
    private let link: PostgresLink
    private let answerMilliseconds: Int64

    /// Connects, and blocks until the connection is open or has failed.
    ///
    /// - Parameters:
    ///   - address: the address of the database.
    ///   - application: the name that the server shows in `pg_stat_activity`.
    ///   - settings: the settings of the session.
    ///   - hostMilliseconds: the timeout for each server of the address, in milliseconds.
    ///   - answerMilliseconds: the timeout for an answer in milliseconds, after which the connection counts as lost.
    /// - Throws: the reason why no server of the address can be used.
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
        while let deadline = self.link.deadline { self.advance(by: deadline) }
        if let failure = self.link.failure { throw failure }
    }

    /// The current server, such as `db1:5432`.
    package var server: String { self.link.server }

    /// The process id of the session on the server.
    package var backend: Int32 { self.link.backend }

    /// The server's version, such as 150018.
    package var version: Int { self.link.version }

    /// Executes one statement.
    @discardableResult
    package func query(
        _ sql: String,
        _ parameters: borrowing PostgresParameters
    ) throws(PostgresError) -> PostgresRows {
        // A late answer to an earlier statement is not read.
        guard !self.link.isLost else { throw self.loss }
        self.link.query(sql, parameters)
        return try self.answer()
    }

    /// Executes one statement with these values as parameters.
    @discardableResult
    package func query<each Value: PostgresValue>(
        _ sql: String,
        _ values: repeat each Value
    ) throws(PostgresError) -> PostgresRows {
        try self.query(sql, PostgresParameters(repeat each values))
    }

    private func answer() throws(PostgresError) -> PostgresRows {
        self.link.sync()
        let deadline = SystemClock.monotonic + self.answerMilliseconds
        while true {
            if let outcome = self.link.next() {
                if let failure = outcome.failure { throw failure }
                guard let rows = outcome.results.last else { throw self.loss }
                return rows
            }
            guard !self.link.isLost else { throw self.link.unfinished.failure ?? self.loss }
            guard SystemClock.monotonic < deadline else {
                self.link.abandon("no answer within \(self.answerMilliseconds / 1000) s")
                throw self.loss
            }
            self.advance(by: deadline)
        }
    }

    /// Waits for the server until `deadline`, then sends and reads.
    private func advance(by deadline: Int64) {
        var waits = self.link.waits
        Descriptor.wait(for: &waits, milliseconds: Int32(clamping: max(0, deadline - SystemClock.monotonic)))
        self.link.advance()
    }

    private var loss: PostgresError {
        self.link.failure
            ?? PostgresError(kind: .connectionLost, message: "the answer makes no sense", server: self.link.server)
    }
}
