import Foundation
import Glibc
import Testing

@Suite("Paused topics, and what people do to what waits, over HTTP", .serialized, .timeLimit(.minutes(15)))
struct PauseTests {
    private let topic = "com.example.app"
    private let token = String(repeating: "ba", count: 32)
    private let other = String(repeating: "cd", count: 32)

    @Test(
        "A worker gets nothing of a paused topic, through a restart, until it is resumed",
        arguments: [SIGKILL, SIGTERM]
    )
    func pause(signal: Int32) throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let script = #"echo "$WAKEGATE_DEVICE"; cat >> payloads"#
        let worker = try WorkerProcess(first, topic: self.topic, script: script)
        let paused = try first.admin("/v1/topics/\(self.topic)/pause", "-X", "POST")
        #expect(paused.status == 200 && paused.value("paused") as? Bool == true)
        #expect(paused.value("topic") as? String == self.topic)
        let answer = try first.push(self.token, topic: self.topic)
        #expect(answer.status == 200 && answer.headers["wakegate-disposition"] == "scheduled")
        #expect(answer.headers["wakegate-held"] == "paused" && answer.headers["wakegate-eligible-at"] == nil)
        let explained = try first.admin("/v1/devices/\(self.token)")
        #expect(explained.value("held") as? [String] == ["paused"])
        let why = try #require(explained.value("why") as? String)
        #expect(why.hasPrefix("The topic \(self.topic) is paused, and nothing of it launches by itself"), "\(why)")
        #expect(try first.stats().integer("devices", "held", "paused") == 1)
        #expect(try first.admin("/metrics").body.contains(#"wakegate_devices_held{reason="paused"} 1"#))
        worker.process.send(SIGKILL)
        try folder.end(first, signal)

        let second = try folder.start()
        let next = try WorkerProcess(second, topic: self.topic, script: script)
        #expect(try second.push(self.other, topic: self.topic).headers["wakegate-held"] == "paused")
        let list = try second.wakegate("topic", "list").output
        #expect(list.contains("\(self.topic)  2        1        2        0          paused"), "\(list)")
        #expect(try second.stats().integer("wakes", "launched") == 0)
        #expect(try second.wakegate("device", "launch", self.other).status == 0)
        #expect(try next.line() == self.other, "a person launches what is paused")
        try second.eventually("its result") { try second.stats().integer("pushes", "completed") == 1 }
        #expect(try second.stats().integer("wakes", "launched") == 1)
        #expect(try second.wakegate("topic", "resume", self.topic).status == 0)
        #expect(try next.line() == self.token)
        try second.eventually("both results") { try second.stats().integer("pushes", "completed") == 2 }
        #expect(try second.stats().integer("devices", "held", "paused") == 0)
        next.process.send(SIGKILL)
        try folder.end(second, signal)
        let list2 = try folder.start().wakegate("topic", "list").output
        #expect(!list2.contains("paused"), "\(list2)")
    }

    @Test("What waits is shown with its payload and dropped, and the log says that it was cancelled")
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

    @Test("An operator's push goes the way of a provider's where it is permitted, and nowhere else")
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
        for wrong in [
            "{}", #"{"payload":{},"priority":3}"#, #"{"payload":{},"topic":"a b"}"#, #"{"payload":{},"x":1}"#,
        ] {
            #expect(try gateway.admin(path, "-d", wrong).status == 400, "\(wrong)")
        }
        let other = try RunningGateway(["--set", "operatorTestPushes=false"]).admin(path, "-d", body)
        #expect(other.status == 403 && other.value("reason") as? String == "NotPermitted")
        #expect((other.value("message") as? String)?.contains("operatorTestPushes") == true)
    }
}
