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
    }
}
