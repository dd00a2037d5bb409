package import Engine
import Platform
import Wire

/// The store in a PostgreSQL database that several gateways share.
///
/// One thread serves all connections: one owns the gateway's number, one shares topics, values and notices, one is for
/// queries, and several commit devices. A transaction takes two round trips. The database applies no policy: it only
/// locks, returns and stores rows.
package final class PostgresStore: ClusterStore {
    package let transactionsMax: Int
    private let exchange: StoreExchange
    private let thread: NamedThread

    /// Attaches the store. Blocks until it is attached or the first attempt fails.
    ///
    /// - Parameters:
    ///   - settings: the address and settings of the database.
    ///   - signal: called on the store's thread when replies are ready for `takeReplies`.
    ///   - onWarning: called on the store's thread with each setting of the database that may lose pushes, and its
    ///     remedy.
    /// - Throws: `StoreError` if the database cannot be reached or used. It cannot be used if it is older than version
    ///   15 or read-only, has tables of a newer WakeGate, or gives the role too few rights.
    package init(
        _ settings: StoreSettings,
        signal: @escaping @Sendable () -> Void,
        onWarning: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StoreError) {
        let exchange = try StoreExchange(signal, warn: onWarning)
        self.transactionsMax = max(1, settings.connections)
        self.exchange = exchange
        do throws(ThreadFailure) {
            self.thread = try NamedThread("store", signals: .blocked) {
                StoreThread(settings, exchange).run()
            }
        } catch {
            throw StoreError(message: error.message)
        }
        do throws(StoreError) {
            try exchange.waitForFirstAttempt()
        } catch {
            self.stop()
            throw error
        }
    }

    package func submit(_ request: ClusterRequest) { self.exchange.submit(request) }

    package func takeReplies(into replies: inout [ClusterReply]) { self.exchange.takeReplies(into: &replies) }

    package func waitForReplies(milliseconds: Int64) { self.exchange.waitForReplies(milliseconds: milliseconds) }

    package func stop() {
        self.exchange.stop()
        self.thread.join()
    }
}

/// A value that all gateways share under a name and that never changes, such as a key.
package enum SharedValue {
    /// Returns the value stored under a name, after storing `content` if the name has none.
    ///
    /// Blocks until the database answers. The tables must exist; attaching a store creates them.
    ///
    /// - Throws: `StoreError` that names the server and the remedy.
    package static func find(
        _ name: String,
        orKeep content: [UInt8],
        _ settings: StoreSettings
    ) throws(StoreError) -> [UInt8] {
        do throws(PostgresError) {
            let client = try PostgresClient(settings.address, application: "wakegate", answerMilliseconds: 10_000)
            try client.query(SessionSetup.durable)
            // Of concurrent inserts, the first succeeds, and all callers read its value.
            try client.query(
                "INSERT INTO wakegate.value (name, content) VALUES ($1::text, $2::bytea) ON CONFLICT DO NOTHING",
                name,
                content
            )
            let rows = try client.query("SELECT content FROM wakegate.value WHERE name = $1::text", name)
            guard rows.count == 1 else { throw .unexpectedAnswer }
            return rows.bytes(0, 0).array
        } catch { throw StoreError(error) }
    }
}
