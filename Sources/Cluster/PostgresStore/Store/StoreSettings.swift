/// How a store reaches its database.
package struct StoreSettings: Sendable {
    /// Where the database is: one server, or several of which one takes writes.
    package var address: PostgresAddress
    /// The number of connections that commit devices. Three more control, share topics and notices, and read for
    /// questions.
    package var connections = 8
    /// For tests: an expression that takes the place of the primary's clock, in milliseconds since 1970.
    package var clock = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    /// How long the server waits for a word of a gateway before it lets go of the gateway's number, and of the rows
    /// that a transaction has locked; in milliseconds.
    package var silenceMilliseconds: Int64 = 3000
    /// The longest wait for the lock under which tables are made, in milliseconds.
    package var schemaLockMilliseconds: Int64 = 30_000

    /// The longest wait of a load for the lock of one row, in milliseconds.
    package var lockMilliseconds: Int64 = 1000

    /// The longest time that one statement of a question may take, in milliseconds.
    package var questionStatementMilliseconds: Int64 = 5000

    package init(address: PostgresAddress) {
        self.address = address
    }

    /// For how long a question waits for the lock of a table, in milliseconds.
    static let questionLockMilliseconds: Int64 = 2000
    /// For how long the server may answer nothing on the connection for questions, in milliseconds.
    static let questionMilliseconds: Int64 = 10_000
    /// How often the control connection says something, in milliseconds.
    static let heartbeatMilliseconds: Int64 = 1000
    /// For how long the server may answer nothing on the control connection, in milliseconds.
    static let answerMilliseconds: Int64 = 5000
    /// For how long making or upgrading the tables may take, in milliseconds.
    static let schemaMilliseconds: Int64 = 600_000
    /// For how long each server of the address is waited for, in milliseconds.
    static let connectMilliseconds: Int64 = 3000
    /// For how long those connections that cannot be made are tried again before the number is let go of, in
    /// milliseconds.
    static let readyMilliseconds: Int64 = 5000
    /// The pause before the store is attached again: the first, and the longest, in milliseconds.
    static let pauseMilliseconds: ClosedRange<Int64> = 50...1000
    /// For how long ended wakes are remembered, in milliseconds.
    static let wakeMemoryMilliseconds: Int64 = 600_000
    /// How many ended wakes are forgotten at a time.
    static let sweepCountMax: Int32 = 2000
}
