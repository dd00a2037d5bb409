import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Gateways on one database", .serialized, .timeLimit(.minutes(15)))
struct SharedDatabaseTests {
    private let topic = "com.example.shared"
    private let token = String(repeating: "5d", count: 32)

    @Test("A push at one gateway wakes a worker at the other, and both show both and their differences")
    func pushHereWorkerThere() throws {
        let address = try PostgresServer.shared().database()
        let first = try RunningGateway(["--set", "store=\(address)"])
        let second = try RunningGateway(["--set", "store=\(address)", "--set", "policy.dailyLaunches=7"])
        let worker = try second.curlWorker(topic: self.topic)
        let pushed = try first.push(self.token, topic: self.topic)
        #expect(pushed.status == 200, "\(pushed.body)")
        let wake = try #require(try worker.next())
        #expect(wake.data["device"] as? String == self.token)

        for gateway in [first, second] {
            try gateway.eventually("both gateways") {
                (try gateway.stats().value("gateways") as? [[String: Any]])?.count == 2
            }
            try gateway.eventually("the worker's slots on both gateways") {
                try gateway.stats().integer("workers", "slots") == 4
            }
            #expect(try gateway.stats().integer("pushes", "accepted") == 1)
            #expect(try gateway.stats().value("configurationDifferences") as? [String] == ["policy.dailyLaunches"])
            let metrics = try gateway.admin("/metrics").body
            #expect(metrics.contains("\nwakegate_cluster_gateways 2\n"))
            #expect(metrics.contains("\nwakegate_cluster_attached 1\n"))
            #expect(metrics.contains("\nwakegate_cluster_configuration_differs 1\n"))
            let stats = try gateway.wakegate("stats")
            #expect(stats.output.contains("unlike configurations   policy.dailyLaunches"), "\(stats.output)")
        }
        #expect(first.process.errors.contains("configurationsDiffer"), "\(first.process.errors)")
        let own = (try second.stats().value("gateways") as? [[String: Any]])?.filter { $0["own"] as? Bool == true }
        #expect(own?.count == 1)
        #expect(own?.first?["workers"] as? Int == 1)

        let backup = try first.wakegate("backup", "copy")
        #expect(backup.status != 0)
        #expect(backup.errors.contains("pg_basebackup"), "\(backup.errors)")

        try second.process.end()
        try first.eventually("one gateway") {
            (try first.stats().value("gateways") as? [[String: Any]])?.count == 1
        }
        try first.eventually("no difference any more") {
            (try first.stats().value("configurationDifferences") as? [String])?.isEmpty == true
        }
    }

    @Test("A push to a locked row is refused, with the session in the log; while a table is locked, nothing is ready")
    func locked() throws {
        let server = try PostgresServer.shared()
        let address = try server.database()
        let gateway = try RunningGateway(["--set", "store=\(address)"])
        let token = String(repeating: "0c", count: 32)
        #expect(try gateway.push(token, topic: self.topic).status == 200)
        let editor = try ChildProcess("psql", ["-XAtq", "-d", address], isInputOpen: true)
        func lock(_ statement: String) throws {
            try editor.write("BEGIN;")
            try editor.write("\(statement);")
            let isLocked = """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = '\(address.split(separator: "/").last ?? "")' AND application_name = 'psql'
                    AND state = 'idle in transaction' AND starts_with(query, '\(statement.prefix(4))')
                """
            try server.wait(for: "1", of: isLocked)
        }
        try lock("SELECT 'locked' FROM wakegate.device FOR UPDATE")
        let refused = try gateway.push(token, topic: self.topic)
        #expect(refused.status == 503 && refused.headers["retry-after"] != nil, "\(refused)")
        #expect(!refused.body.contains("psql") && !refused.body.contains("pid "), "\(refused.body)")
        try gateway.eventually("the log line") { gateway.process.errors.contains("devicesLocked") }
        #expect(gateway.process.errors.contains("application psql"), "\(gateway.process.errors)")
        #expect(try gateway.admin("/readyz").status == 200)
        try editor.write("COMMIT;")
        try gateway.eventually("a push to the row") { try gateway.push(token, topic: self.topic).status == 200 }
        try gateway.eventually("the lock's end") { gateway.process.errors.contains("devicesUnlocked") }

        try lock("LOCK TABLE wakegate.device IN EXCLUSIVE MODE")
        // Refused pushes are counted in a transaction that loads no device, so its success does not show that the table
        // is usable.
        try gateway.eventually("not ready") {
            #expect(try gateway.push(token, topic: self.topic).status == 503)
            return try gateway.admin("/readyz").status == 503
        }
        try editor.write("COMMIT;")
        try editor.endInput()
        _ = try editor.finish()
        try gateway.eventually("ready") { try gateway.admin("/readyz").status == 200 }
        try gateway.eventually("a push") { try gateway.push(token, topic: self.topic).status == 200 }
    }
}
