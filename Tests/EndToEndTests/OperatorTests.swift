import Foundation
import Glibc
import Testing

@Suite("Questions of operators and careful providers", .serialized, .timeLimit(.minutes(15)))
struct OperatorTests {
    private let topic = "com.example.operator"
    private let token = String(repeating: "0be5", count: 16)

    @Test("Lists say how to get the next page, and their pending pushes are dropped only after confirmation")
    func lists() throws {
        let gateway = try RunningGateway()
        for number in 1...3 {
            let token = String(repeating: "\(number)0be5", count: 16).prefix(64)
            #expect(try gateway.push(String(token), topic: self.topic).status == 200)
        }
        for words in [["device", "list"], ["push", "list", "--since", "1h"]] {
            let line = words + ["--limit", "2"]
            let listed = try ChildProcess.wakegate(line, folder: gateway.folder)
            #expect(listed.status == 0, "\(listed.errors)")
            #expect(listed.output.split(separator: "\n").count == 3, "\(listed.output)")
            #expect(listed.errors.contains("--after "), "\(listed.errors)")
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
        #expect(unnamed.status == EX_USAGE && unnamed.errors.contains("--topic or --hold"), "\(unnamed.errors)")
        let both = try gateway.wakegate("device", "launch", self.token, "--topic", self.topic)
        #expect(both.status == EX_USAGE && both.errors.contains("leave TOKEN out"), "\(both.errors)")
    }

    @Test("A pending push of a device whose wake is in flight is dropped from a list, too")
    func dropBehindWake() throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        _ = try #require(try worker.next())
        #expect(try gateway.push(self.token, topic: self.topic).headers["wakegate-disposition"] == "scheduled")
        let dropped = try gateway.wakegate("device", "drop", "--topic", self.topic, "--yes")
        #expect(dropped.status == 0 && dropped.errors.contains("1 dropped"), "\(dropped.errors)")
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

    /// Expects that the same instant is shown with the same second in every answer and on the page.
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

    @Test("A pending push is shown with its payload and dropped, and its history says that it was cancelled")
    func drop() throws {
        let gateway = try RunningGateway()
        let pending = "/v1/devices/\(self.token)/pending"
        #expect(try gateway.admin(pending).status == 404)
        let payload = #"{"aps":{"content-available":1},"n":[1.50,{"a":"\u0041"}]}"#
        let answer = try gateway.push(self.token, topic: self.topic, payload: payload)
        let id = try #require(answer.headers["apns-id"])
        let shown = try gateway.admin(pending)
        #expect(shown.status == 200 && shown.value("apnsID") as? String == id)
        #expect(shown.body.contains("\"payload\":\(payload)"), "\(shown.body)")
        #expect(try gateway.wakegate("device", "drop", self.token).errors == "wakegate: the push is dropped\n")
        #expect(
            try gateway.wakegate("device", "drop", self.token).errors == "wakegate: no push waits on this device\n"
        )
        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "discarded", "cancelled") == 1 && stats.integer("pushes", "pending") == 0)
        #expect(try gateway.admin("/metrics").body.contains(#"wakegate_pushes_discarded_total{reason="cancelled"} 1"#))
        let way = try gateway.admin("/v1/pushes/\(id)")
        #expect(way.value("state") as? String == "discarded" && way.value("reason") as? String == "cancelled")
        let nothing = try gateway.admin(pending)
        #expect(nothing.status == 404 && nothing.value("reason") as? String == "NothingPending")
    }

    @Test("An operator's push is handled like a provider's")
    func testPush() throws {
        let gateway = try RunningGateway()
        let path = "/v1/devices/\(self.token)/push"
        let worker = try gateway.curlWorker(topic: self.topic)
        let body = #"{"topic":"\#(self.topic)","collapseID":"a","payload":{"aps":{"content-available":1},"n":1}}"#
        let answer = try gateway.admin(path, "-d", body)
        #expect(answer.status == 200 && answer.value("status") as? Int == 200)
        #expect(answer.value("disposition") as? String == "launched")
        let wake = try #require(try worker.next())
        #expect(wake.data["apnsID"] as? String == answer.value("apnsID") as? String)
        #expect(wake.data["priority"] as? Int == 5 && wake.data["collapseID"] as? String == "a")
        #expect((wake.data["payload"] as? [String: Any])?["n"] as? Int == 1)
        let own = try gateway.admin(path, "-d", #"{"priority":10,"payload":{"aps":{"content-available":1}}}"#)
        #expect(own.value("disposition") as? String == "scheduled" && own.value("eligibleAt") as? Int != nil)
        #expect(try gateway.stats().integer("pushes", "accepted") == 2)
        let long = #"{"payload":{"aps":{"content-available":1},"x":"\#(String(repeating: "x", count: 4100))"}}"#
        let refused = try gateway.admin(path, "-d", long)
        #expect(refused.status == 200 && refused.value("status") as? Int == 413)
        #expect(refused.value("reason") as? String == "PayloadTooLarge")
        #expect(try gateway.stats().integer("pushes", "rejected", "PayloadTooLarge") == 1)
    }

    @Test("A paused topic holds its pushes until it is resumed")
    func pause() throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.wakegate("topic", "pause", self.topic).status == 0)
        #expect(try gateway.push(self.token, topic: self.topic).headers["wakegate-held"] == "paused")
        #expect(try gateway.admin("/metrics").body.contains(#"wakegate_devices_held{reason="paused"} 1"#))
        #expect(try gateway.wakegate("topic", "resume", self.topic).status == 0)
        #expect(try worker.next()?.data["device"] as? String == self.token)
    }
}
