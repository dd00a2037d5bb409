package import Engine
import Wire

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
