import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("A gateway's state that is moved into a database", .serialized, .timeLimit(.minutes(15)))
struct StateImportTests {
    private let topic = "com.example.moved"
    private let tokens = ["a1", "a2", "a3"].map { String(repeating: $0, count: 32) }

    private func run(_ folder: RestartFolder, _ address: String) throws -> ChildProcess.Ended {
        let arguments = ["import", "--from", folder.state.path, "--set", "store=\(address)"]
        return try ChildProcess.wakegate(arguments, folder: folder.folder)
    }

    /// Returns the counters that must be equal, and the sum of the accepted pushes.
    private func counts(_ stats: Answer) -> [String: Int] {
        var counts: [String: Int] = [:]
        for name in ["accepted", "completed", "coalesced", "pending", "inFlight", "noWake"] {
            counts[name] = stats.integer("pushes", name)
        }
        let discarded = stats.value("pushes", "discarded") as? [String: Int] ?? [:]
        counts["discarded"] = discarded.values.reduce(0, +)
        counts["registered"] = stats.integer("devices", "registered")
        return counts
    }

    /// Returns the events of a device, newest first.
    private func events(_ gateway: RunningGateway, _ token: String) throws -> [[String: Any]] {
        try gateway.admin("/v1/devices/\(token)/events").value("events") as? [[String: Any]] ?? []
    }

    /// Returns the events without the consequences of the gateway's end, and without their times, which each successor
    /// calculates again with a deviation of about a millisecond.
    private func told(_ events: [[String: Any]]) -> [String] {
        events.filter { $0["detail"] as? String != "lost" }.map { event in
            event.keys.filter { $0 != "at" }.sorted().map { "\($0) \(event[$0] ?? "")" }.joined(separator: ", ")
        }
    }

    @Test("An import keeps devices, pending pushes and counters, the pushes launch, and a second import is refused")
    func moved() throws {
        let server = try PostgresServer.shared()
        let address = try server.database()
        let folder = try RestartFolder()
        let before = try folder.start()
        // One push is handled, so that budget is spent. One device has two pushes, which are coalesced.
        let worker = try before.curlWorker(topic: self.topic)
        #expect(try before.push(self.tokens[0], topic: self.topic).status == 200)
        #expect(try worker.next()?.name == "wake")
        // The wake is in flight and is lost with the gateway.
        for token in self.tokens.dropFirst() {
            let payload = #"{"aps":{"content-available":1},"n":1}"#
            #expect(try before.push(token, topic: self.topic, payload: payload).status == 200)
            #expect(try before.push(token, topic: self.topic).status == 200)
        }
        let beside = try self.run(folder, address)
        #expect(beside.status == 1)
        #expect(beside.errors.contains("another gateway is using the state folder"), "\(beside.errors)")
        #expect(beside.errors.contains("stop it, or choose another with --from STATE"), "\(beside.errors)")
        try before.process.end(SIGKILL)

        // The same state on its own store, for comparison.
        let copy = try RestartFolder()
        try FileManager.default.copyItem(at: folder.state, to: copy.state)
        let alone = try copy.start()
        let wanted = self.counts(try alone.stats())
        let since = try alone.stats().value("since") as? String
        let explained = try alone.admin("/v1/devices/\(self.tokens[1])")
        let logs = try self.tokens.map { try self.events(alone, $0) }
        // Registered, pushed, a worker subscribed, launched, lost. The other devices have received a second push.
        #expect(logs.map(\.count) == [5, 6, 6])
        let first = try #require(logs[1].last { $0["apnsID"] is String }?["apnsID"] as? String)
        try alone.process.end(SIGKILL)
        #expect(wanted["accepted"] == 5)

        let moved = try self.run(folder, address)
        #expect(moved.status == 0, "\(moved.errors)")
        #expect(moved.output.contains("devices moved             3\n"), "\(moved.output)")
        // Those above, and the names of the workers, which take more events the longer they are.
        let events = moved.output.firstMatch(of: /events of the log +([0-9]+)\n/).flatMap { Int($0.1) }
        #expect(try #require(events) > 14, "\(moved.output)")
        let again = try self.run(folder, address)
        #expect(again.status == 1)
        #expect(again.errors.contains("was moved into this database before"), "\(again.errors)")

        let after = try RunningGateway(["--set", "store=\(address)"])
        try after.eventually("the imported counters") { try self.counts(after.stats()) == wanted }
        let device = try after.admin("/v1/devices/\(self.tokens[1])")
        #expect(device.part("pending", "apnsID") == explained.part("pending", "apnsID"))
        #expect(device.integer("policyVersion") == explained.integer("policyVersion"))
        #expect(try after.stats().value("since") as? String == since)
        for (token, log) in zip(self.tokens, logs) {
            #expect(self.told(try self.events(after, token)) == self.told(log))
        }
        // The history of a push continues where the previous gateway ended.
        #expect(try after.admin("/v1/pushes/\(first)").value("state") as? String == "coalesced")
        let receiver = try after.curlWorker(topic: self.topic)
        var woken: Set<String> = []
        for _ in self.tokens {
            let wake = try #require(try receiver.next())
            woken.insert(wake.data["device"] as? String ?? "")
        }
        #expect(woken.count == 3)
        let newest = try self.events(after, self.tokens[1])
        #expect(newest.count == logs[1].count + 2 && newest.first?["event"] as? String == "launch", "\(newest)")
        let stats = self.counts(try after.stats())
        let found = ["completed", "coalesced", "pending", "inFlight", "discarded"].reduce(0) { $0 + (stats[$1] ?? 0) }
        #expect(stats["accepted"] == found)
    }

    @Test("An interrupted import resumes where it stopped, and imports everything once")
    func cutOff() throws {
        let server = try PostgresServer.shared()
        let address = try server.database()
        let name = String(address.split(separator: "/").last ?? "")
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let pushes = [
            "--parallel", "--output", "/dev/null", "--write-out", "%{http_code}\n", "-H", "apns-topic: \(self.topic)",
            "-H", "apns-push-type: background", "-H", "apns-priority: 5", "--data-binary", RunningGateway.payload,
            "https://\(gateway.edge)/3/device/\(String(repeating: "0", count: 60))[1001-2600]",
        ]
        let sent = try ChildProcess.run("curl", gateway.curlOptions + pushes)
        #expect(sent.output.split(separator: "\n").count { $0 == "200" } == 1600, "\(sent.errors)")
        let wanted = self.counts(try gateway.stats())
        try gateway.process.end(SIGTERM)

        // The tables exist; add a thousand devices to them.
        let first = try RunningGateway(["--set", "store=\(address)"])
        try first.process.end()
        try server.query(
            """
            CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT count(*) FROM wakegate.device) >= 1000 THEN RAISE EXCEPTION 'cut off'; END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER cut BEFORE INSERT ON wakegate.device FOR EACH STATEMENT EXECUTE FUNCTION cut();
            """,
            database: name
        )
        let cut = try self.run(folder, address)
        #expect(cut.status == 1)
        #expect(cut.errors.contains("cut off"), "\(cut.errors)")
        #expect(try server.query("SELECT count(*) FROM wakegate.device", database: name).hasPrefix("1000"))
        try server.query("DROP TRIGGER cut ON wakegate.device", database: name)

        let rest = try self.run(folder, address)
        #expect(rest.status == 0, "\(rest.errors)")
        #expect(rest.output.contains("moved before            1000\n"), "\(rest.output)")
        #expect(try server.query("SELECT count(*) FROM wakegate.device", database: name).hasPrefix("1600"))
        let after = try RunningGateway(["--set", "store=\(address)"])
        try after.eventually("the imported counters") { try self.counts(after.stats()) == wanted }
    }

    @Test("A folder without a state, a database with its topics and a configuration without a database are refused")
    func refused() throws {
        let server = try PostgresServer.shared()
        let address = try server.database()
        let folder = try RestartFolder()
        try folder.start().end(SIGTERM)
        let none = try ChildProcess.wakegate(["import", "--from", folder.state.path])
        #expect(none.status == EX_CONFIG)
        #expect(none.errors.contains("store names no database"), "\(none.errors)")
        let empty = folder.folder.appendingPathComponent("empty")
        try FileManager.default.createDirectory(at: empty, withIntermediateDirectories: false)
        _ = unsafe chmod(empty.path, 0o700)
        let nothing = try ChildProcess.wakegate(["import", "--from", empty.path, "--set", "store=\(address)"])
        #expect(nothing.status == 1)
        #expect(nothing.errors.contains("No gateway's state is in"), "\(nothing.errors)")

        let sharing = try RunningGateway(["--set", "store=\(address)"])
        #expect(try sharing.push(self.tokens[0], topic: self.topic).status == 200)
        let gateway = try folder.start()
        #expect(try gateway.push(self.tokens[1], topic: self.topic).status == 200)
        try gateway.process.end(SIGTERM)
        let taken = try self.run(folder, address)
        #expect(taken.status == 1)
        #expect(taken.errors.contains("has topics of this state already: \(self.topic)"), "\(taken.errors)")
    }
}
