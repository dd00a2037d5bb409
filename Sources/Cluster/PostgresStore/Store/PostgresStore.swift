package import Engine
import Platform
import Wire

/// The store that gateways share, in one PostgreSQL.
///
/// A thread of its own has all connections: one that holds the gateway's number, one that shares topics, values and
/// notices, and several that commit pushes, each one transaction at a time in two round trips. No policy is in the
/// database: it locks rows, hands them over, and takes them back.
package final class PostgresStore: ClusterStore {
    package let transactionsMax: Int
    private let exchange: StoreExchange
    private let thread: NamedThread

    /// Attaches a store, and waits for that.
    ///
    /// - Parameters:
    ///   - settings: where the database is.
    ///   - ring: called on the store's thread when replies wait to be taken.
    ///   - onWarning: called on the store's thread with each setting of the database that may lose pushes, and its
    ///     remedy.
    /// - Throws: `StoreError` when the database cannot be reached, is older than 15, read-only, of a newer WakeGate, or
    ///   gives the role too few rights.
    package init(
        _ settings: StoreSettings,
        ring: @escaping @Sendable () -> Void,
        onWarning: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StoreError) {
        let exchange = try StoreExchange(ring, warn: onWarning)
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

    package func stop() {
        self.exchange.stop()
        self.thread.join()
    }
}

/// What all gateways share under a name and what never becomes another one, such as a key.
package enum SharedValue {
    /// What is kept under a name; where there is nothing yet, `content` is from here on, for every gateway.
    ///
    /// It waits for the database. The tables must be there: a store that was attached has made them.
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
            var parameters = PostgresParameters()
            parameters.append(name)
            parameters.append(content)
            // Whoever comes second changes nothing, and reads what the first has kept.
            try client.query(
                "INSERT INTO wakegate.value (name, content) VALUES ($1::text, $2::bytea) ON CONFLICT DO NOTHING",
                parameters
            )
            var asked = PostgresParameters()
            asked.append(name)
            let rows = try client.query("SELECT content FROM wakegate.value WHERE name = $1::text", asked)
            guard rows.count == 1 else { throw .odd }
            return rows.bytes(0, 0).array
        } catch { throw StoreError(error) }
    }
}
