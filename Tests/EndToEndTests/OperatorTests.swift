import Foundation
import Testing

@Suite("What an operator and a careful provider may ask", .serialized, .timeLimit(.minutes(15)))
struct OperatorTests {
    private let topic = "com.example.operator"
    private let token = String(repeating: "0be5", count: 16)

    @Test("A simulated launch wakes with nothing pending, a second finds it in flight, a simulated expiration ends it")
    func simulate() throws {
        let gateway = try RunningGateway()
        let device = "/v1/devices/\(self.token)"
        let registered = try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", #"{"token":"\#(self.token)"}"#)
        #expect(registered.status == 201)
        #expect(registered.value("token") as? String == self.token)
        let worker = try gateway.curlWorker(topic: self.topic)

        #expect(try gateway.admin("\(device)/simulate-launch", "-X", "POST").status == 202)
        let wake = try #require(try worker.next())
        #expect(wake.data["apnsID"] is NSNull)
        let again = try gateway.admin("\(device)/simulate-launch", "-X", "POST")
        #expect(again.status == 409)
        #expect(again.reason == "WakeInFlight")

        #expect(try gateway.admin("\(device)/simulate-expiration", "-X", "POST").status == 202)
        let expired = try #require(try worker.next())
        #expect(expired.name == "expired")
        #expect(expired.data["wake"] as? String == wake.id)
        let stats = try gateway.stats()
        #expect(stats.integer("wakes", "launched") == 1)
        #expect(stats.integer("wakes", "results", "expired") == 1)
        #expect(stats.integer("pushes", "accepted") == 0)
    }

    @Test("Devices are found without knowing any of their tokens, over HTTP and by the command")
    func devices() throws {
        let gateway = try RunningGateway()
        for number in 1...5 {
            let token = String(repeating: "\(number)0be5", count: 16).prefix(64)
            #expect(try gateway.push(String(token), topic: self.topic).status == 200)
        }
        let page = try gateway.admin("/v1/devices?topic=\(self.topic)&state=held&hold=worker&limit=2")
        #expect(page.status == 200)
        let devices = try #require(page.value("devices") as? [[String: Any]])
        #expect(devices.map { ($0["token"] as? String)?.first } == ["1", "2"])
        #expect(devices.first?["held"] as? [String] == ["worker"])
        let next = try #require(page.value("next") as? String)
        let rest = try gateway.admin("/v1/devices?limit=1000&after=\(next)")
        #expect((rest.value("devices") as? [Any])?.count == 3 && rest.value("next") is NSNull)
        #expect(try gateway.admin("/v1/devices?state=asleep").reason == "BadQuery")
        #expect(try gateway.admin("/v1/devices?after=xyz").reason == "BadQuery")

        let listed = try gateway.wakegate("device", "list", "--limit", "4")
        #expect(listed.status == 0)
        #expect(listed.output.split(separator: "\n").count == 5, "\(listed.output)")
        #expect(listed.errors.contains("--after 4"), "\(listed.errors)")
    }

    @Test("What waits for the devices of a list is dropped once somebody has agreed to their number")
    func dropList() throws {
        let gateway = try RunningGateway()
        for number in 1...3 {
            let token = String(repeating: "\(number)0be5", count: 16).prefix(64)
            #expect(try gateway.push(String(token), topic: self.topic).status == 200)
        }
        let unasked = try gateway.wakegate("device", "drop", "--topic", self.topic)
        #expect(unasked.status == 1 && unasked.errors.contains("3 devices to be dropped"), "\(unasked.errors)")
        #expect(unasked.errors.contains("nothing was done"), "\(unasked.errors)")
        let none = try gateway.wakegate("device", "expire", "--topic", self.topic, "--yes")
        #expect(none.status == 0 && none.errors.contains("0 devices"), "\(none.errors)")
        let dropped = try gateway.wakegate("device", "drop", "--hold", "worker", "--yes")
        #expect(dropped.status == 0 && dropped.errors.contains("3 dropped"), "\(dropped.errors)")
        #expect(try gateway.stats().integer("pushes", "discarded", "cancelled") == 3)
        let unnamed = try gateway.wakegate("device", "launch")
        #expect(unnamed.status == 64 && unnamed.errors.contains("--topic or --hold"), "\(unnamed.errors)")
        let both = try gateway.wakegate("device", "launch", self.token, "--topic", self.topic)
        #expect(both.status == 64 && both.errors.contains("leave TOKEN out"), "\(both.errors)")
    }

    @Test("A dry run is answered as the push would be, and changes nothing")
    func dryRun() throws {
        let gateway = try RunningGateway()
        let path = "/3/device/\(self.token)"
        let dry = try gateway.edge(
            path,
            "-H",
            "apns-topic: \(self.topic)",
            "-H",
            "wakegate-dry-run: 1",
            "-d",
            RunningGateway.payload
        )
        #expect(dry.status == 200)
        #expect(dry.headers["wakegate-disposition"] == "scheduled")
        #expect(try gateway.stats().integer("pushes", "accepted") == 0)
        #expect(try gateway.stats().integer("devices", "registered") == 0)
        #expect(try gateway.admin("/v1/devices/\(self.token)").status == 404)
    }

    @Test("The answer to a push that waits says from when it may launch; explain says why in a sentence")
    func eligible() throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let id = try #require(try worker.next()?.id)
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        let other = try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"failed"}"#)
        #expect(other.status == 409)
        #expect(other.value("outcome") as? String == "newData")

        let waiting = try gateway.push(self.token, topic: self.topic)
        #expect(waiting.headers["wakegate-disposition"] == "scheduled")
        let eligibleAt = try #require(waiting.headers["wakegate-eligible-at"].flatMap { Double($0) })
        let explained = try gateway.admin("/v1/devices/\(self.token)")
        let nextEligibleAt = try #require(explained.integer("nextEligibleAt"))
        // The header is in whole seconds, rounded up, so that a sender who waits until then is never early.
        #expect((0..<1000.0).contains(eligibleAt * 1000 - Double(nextEligibleAt)))
        #expect((explained.value("why") as? String)?.contains("900 s apart") == true)
        #expect(explained.value("pending", "apnsID") as? String == waiting.headers["apns-id"])
        try self.tellTheSameSecond(gateway, seconds: eligibleAt, milliseconds: nextEligibleAt, explained)
    }

    /// One moment, in every answer and on the page, is told as one second.
    private func tellTheSameSecond(
        _ gateway: RunningGateway,
        seconds: Double,
        milliseconds: Int,
        _ explained: Answer
    ) throws {
        let moment = Date(timeIntervalSince1970: seconds).formatted(.iso8601)
        #expect((explained.value("why") as? String)?.contains("waits until \(moment): ") == true)
        let shown = try gateway.wakegate("stats", "--device", self.token).output
        for text in ["waits until \(moment): ", "next eligible       \(moment)\n"] {
            #expect(shown.contains(text), "\(shown)")
        }
        #expect(try gateway.wakegate("device", "list").output.contains(moment))
        let pushed = try gateway.wakegate("push", self.token, "--topic", self.topic).output
        #expect(pushed.contains("(\(moment))") && !pushed.contains("15 min 1 s"), "\(pushed)")
        let page = RunningGateway.root.appendingPathComponent("Sources/Server/Gateway/Edge/Dashboard/format.js").path
        let script = """
            import("data:text/javascript," + encodeURIComponent(require("fs").readFileSync(process.argv[1])))
                .then((page) => console.log(page.day(Number(process.argv[2]))))
            """
        let told = try ChildProcess.run("env", ["TZ=UTC", "node", "-e", script, page, "\(milliseconds)"])
        #expect(told.output.hasSuffix(", \(moment.dropFirst(11).prefix(8))\n"), "\(told.output) \(told.errors)")
    }
}

@Suite(.serialized, .timeLimit(.minutes(15)))
struct PushListTests {
    @Test("Pushes are found without knowing any of their names, over HTTP and by the command")
    func pushes() throws {
        let gateway = try RunningGateway()
        for number in 1...3 {
            let token = String(repeating: "\(number)0be5", count: 16).prefix(64)
            #expect(try gateway.push(String(token), topic: "com.example.list").status == 200)
        }
        let page = try gateway.admin("/v1/pushes?topic=com.example.list&outcome=pending&limit=2")
        #expect(page.status == 200, "\(page.body)")
        let pushes = try #require(page.value("pushes") as? [[String: Any]])
        #expect(pushes.count == 2 && pushes.allSatisfy { $0["topic"] as? String == "com.example.list" })
        let next = try #require(page.value("next") as? String)
        let rest = try gateway.admin("/v1/pushes?after=\(next)")
        #expect((rest.value("pushes") as? [Any])?.count == 1 && rest.value("next") is NSNull)
        #expect(try gateway.admin("/v1/pushes?outcome=lost").reason == "BadQuery")
        #expect(try gateway.admin("/v1/pushes?after=xyz").reason == "BadQuery")

        let listed = try gateway.wakegate("push", "list", "--since", "1h", "--limit", "2")
        #expect(listed.status == 0, "\(listed.errors)")
        #expect(listed.output.split(separator: "\n").count == 3, "\(listed.output)")
        #expect(listed.errors.contains("--after "), "\(listed.errors)")
    }
}
