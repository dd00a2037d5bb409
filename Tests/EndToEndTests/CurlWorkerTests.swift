import Foundation
import Testing

@Suite("curl is a working worker", .serialized, .timeLimit(.minutes(15)))
struct CurlWorkerTests {
    private let topic = "com.example.curl"
    private let token = String(repeating: "00c0ffee", count: 8)

    @Test("One curl receives the wake, another answers it, over TLS and in HTTP/1.1", arguments: [false, true])
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
}
