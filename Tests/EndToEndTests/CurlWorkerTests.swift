import Foundation
import Testing

@Suite("curl is a working worker", .serialized, .timeLimit(.minutes(15)))
struct CurlWorkerTests {
    private let topic = "com.example.curl"
    private let token = String(repeating: "00c0ffee", count: 8)

    @Test("One curl shows the wake, another answers it, over TLS and in HTTP/1.1", arguments: [false, true])
    func wake(plain: Bool) throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic, plain: plain)
        let answer = try gateway.push(
            self.token.uppercased(),
            topic: self.topic,
            payload: #"{"aps":{"content-available":1},"news":"\u00e9\n"}"#
        )
        #expect(answer.headers["wakegate-disposition"] == "launched")

        let wake = try #require(try worker.next())
        #expect(wake.name == "wake")
        let id = try #require(wake.data["wake"] as? String)
        #expect(wake.id == id)
        #expect(wake.data["device"] as? String == self.token)
        #expect(wake.data["topic"] as? String == self.topic)
        #expect(wake.data["kind"] as? String == "push")
        #expect(wake.data["apnsID"] as? String == answer.headers["apns-id"])
        #expect(wake.data["coalesced"] as? Int == 0)
        #expect(wake.data["attempt"] as? Int == 1)
        #expect((wake.data["payload"] as? [String: Any])?["news"] as? String == "é\n")

        let base = plain ? "http://\(gateway.plain)" : "https://\(gateway.edge)"
        let report = try ChildProcess.run(
            "curl",
            gateway.curlOptions + ["--include", "-d", #"{"result":"newData"}"#, "\(base)/v1/wakes/\(id)"]
        )
        #expect(try Answer(curlOutput: report.output).status == 204)
        let stats = try gateway.stats()
        #expect(stats.integer("wakes", "results", "newData") == 1)
        #expect(stats.integer("pushes", "completed") == 1)
    }

    @Test("A worker that goes away loses its wake, and the next worker gets it as a second attempt")
    func lost() throws {
        let gateway = try RunningGateway()
        do {
            let first = try gateway.curlWorker(topic: self.topic)
            #expect(try gateway.push(self.token, topic: self.topic).status == 200)
            #expect(try first.next()?.data["attempt"] as? Int == 1)
        }
        try gateway.eventually("no worker") { try gateway.stats().integer("workers", "connected") == 0 }
        let second = try gateway.curlWorker(topic: self.topic)
        let wake = try #require(try second.next())
        #expect(wake.data["attempt"] as? Int == 2)
        #expect(try gateway.stats().integer("wakes", "results", "lost") == 1)
    }

    @Test("A wake that is not answered in time ends with an expired event, and a late answer is refused")
    func expired() throws {
        let gateway = try RunningGateway(["--set", "policy.executionWindow=1"])
        let worker = try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let id = try #require(try worker.next()?.id)
        let expired = try #require(try worker.next())
        #expect(expired.name == "expired")
        #expect(expired.data["wake"] as? String == id)
        let late = try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#)
        #expect(late.status == 409)
        #expect(late.reason == "WakeEnded")
        #expect(late.value("outcome") as? String == "expired")
    }
}
