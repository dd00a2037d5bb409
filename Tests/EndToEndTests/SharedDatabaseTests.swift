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

        second.process.send(SIGTERM)
        _ = try second.process.finish()
        try first.eventually("one gateway") {
            (try first.stats().value("gateways") as? [[String: Any]])?.count == 1
        }
        try first.eventually("no difference any more") {
            (try first.stats().value("configurationDifferences") as? [String])?.isEmpty == true
        }
    }

    /// Starts psql with an open transaction after a statement that locks something.
    private func editor(of address: String, on server: PostgresServer, _ statement: String) throws -> ChildProcess {
        let database = address.split(separator: "/").last.map(String.init) ?? ""
        let editor = try ChildProcess("psql", ["-XAtq", "-d", address], isInputOpen: true)
        try editor.write("BEGIN;")
        try editor.write("\(statement);")
        let locked = """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = '\(database)' AND application_name = 'psql' AND state = 'idle in transaction'
                AND starts_with(query, '\(statement.prefix(6))')
            """
        try server.wait(for: "1", of: locked)
        return editor
    }

    @Test("A session that has locked devices delays no other device, and questions about these are answered")
    func lockedDevices() throws {
        let server = try PostgresServer.shared()
        let address = try server.database()
        let gateway = try RunningGateway(["--set", "store=\(address)"])
        let tokens = (1...40).map { String(repeating: String(format: "%02x", $0), count: 32) }
        for token in tokens { #expect(try gateway.push(token, topic: self.topic).status == 200) }
        let held = tokens.prefix(12).map { "'\\x\($0)'" }.joined(separator: ", ")
        let editor = try self.editor(
            of: address,
            on: server,
            "SELECT 'locked' FROM wakegate.device WHERE token IN (\(held)) FOR UPDATE"
        )

        for path in ["", "/tasks", "/events", "/pushes"] {
            let answer = try gateway.admin("/v1/devices/\(tokens[0])\(path)", "--max-time", "10")
            #expect(answer.status == 200, "\(path) \(answer.body)")
        }
        let replayed = try gateway.admin("/v1/topics/\(self.topic)/what-if?launchInterval=600", "--max-time", "30")
        #expect(replayed.integer("devices") == 40 && replayed.integer("pushes") == 40, "\(replayed.body)")
        #expect(replayed.value("isWhole") as? Bool == true)
        let waiting = try tokens.prefix(12).map { token in
            try ChildProcess("curl", gateway.curlOptions + self.push(token, to: gateway))
        }
        for token in tokens.dropFirst(12) {
            let ended = try ChildProcess.run(
                "curl",
                gateway.curlOptions + ["--max-time", "5"] + self.push(token, to: gateway)
            )
            #expect(ended.output.contains("200"), "\(ended)")
        }
        for child in waiting {
            let ended = try child.finish()
            #expect(ended.output.contains("503") && ended.output.contains("retry-after"), "\(ended)")
            #expect(!ended.output.contains("psql") && !ended.output.contains("pid "), "\(ended)")
        }
        let refused = try gateway.admin("/v1/devices/\(tokens[1])/pending", "-X", "DELETE")
        // An operator of all topics learns which session holds the lock.
        #expect(refused.status == 503 && refused.body.contains("application psql"), "\(refused.body)")
        #expect(refused.headers["retry-after"] != nil)
        try gateway.eventually("the log line") { gateway.process.errors.contains("devicesLocked") }
        #expect(gateway.process.errors.contains("application psql"), "\(gateway.process.errors)")
        try gateway.eventually("the metric") {
            try gateway.admin("/metrics").body.contains("wakegate_cluster_locked_devices{session=\"pid ")
        }
        #expect(try gateway.admin("/readyz").status == 200)
        try editor.write("COMMIT;")
        try editor.endInput()
        _ = try editor.finish()
        for token in tokens { #expect(try gateway.push(token, topic: self.topic).status == 200) }
        try gateway.eventually("the lock's end") { gateway.process.errors.contains("devicesUnlocked") }
    }

    @Test("A gateway is not ready while a table is locked, and is ready again once the lock ends")
    func lockedTable() throws {
        let server = try PostgresServer.shared()
        let address = try server.database()
        let gateway = try RunningGateway(["--set", "store=\(address)"])
        let token = String(repeating: "0c", count: 32)
        #expect(try gateway.push(token, topic: self.topic).status == 200)
        let editor = try self.editor(of: address, on: server, "LOCK TABLE wakegate.device IN EXCLUSIVE MODE")
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

    /// Returns the arguments with which curl sends a push.
    private func push(_ token: String, to gateway: RunningGateway) -> [String] {
        [
            "--include", "-H", "apns-topic: \(self.topic)", "-H", "apns-push-type: background", "-H",
            "apns-priority: 5", "--data-binary", RunningGateway.payload, "https://\(gateway.edge)/3/device/\(token)",
        ]
    }
}
