import Foundation
import Glibc
import Testing

@Suite("Shutdown", .serialized, .timeLimit(.minutes(15)))
struct DrainTests {
    private let topic = "com.example.drain"
    private let token = String(repeating: "d1a1d1a1", count: 8)

    @Test("A stopping gateway refuses new work, accepts the results of open wakes, and exits with 0")
    func drain() throws {
        let gateway = try RunningGateway(["--set", "drainTimeout=300"])
        let worker = try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.admin("/readyz").status == 200)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let id = try #require(try worker.next()?.id)

        gateway.process.send(SIGTERM)
        try gateway.eventually("not ready") { try gateway.admin("/readyz").status == 503 }
        #expect(try gateway.admin("/healthz").status == 200)
        let refused = try gateway.push(self.token, topic: self.topic)
        #expect(refused.status == 503)
        #expect(refused.reason == "Shutdown")
        #expect(refused.headers["retry-after"] != nil)
        #expect(try gateway.stats().integer("pushes", "rejected", "Shutdown") == 1)
        let subscription = try gateway.edge("/v1/topics/\(self.topic)/wakes?slots=1")
        #expect(subscription.status == 503)
        #expect(subscription.reason == "Shutdown")

        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try worker.next() == nil)
        #expect(try gateway.process.finish().status == 0)
    }

    @Test(
        "An idle gateway ends immediately, and an open connection receives the reason in a GOAWAY, as from APNs",
        arguments: [SIGTERM, SIGINT]
    )
    func goAway(signal: Int32) throws {
        let gateway = try RunningGateway(["--set", "drainTimeout=300"])
        let client = try gateway.hearing()
        #expect(try client.line() == "settings")
        gateway.process.send(signal)
        #expect(try client.line() == #"goaway 0 0 {"reason":"Shutdown"}"#)
        #expect(try client.finish().status == 0)
        #expect(try gateway.process.finish(within: 15).status == 0)
    }

    @Test("A client that stops at GOAWAY and asks on a new connection gets its complete answer")
    func answerBeforeGoAway() throws {
        let gateway = try RunningGateway(["--set", "drainTimeout=60"])
        let worker = try gateway.curlWorker(topic: self.topic)
        let ids = try ["a", "b"].map { digit in
            let token = String(repeating: digit, count: 64)
            #expect(try gateway.push(token, topic: self.topic).status == 200)
            return try #require(try worker.next()?.id)
        }
        gateway.process.send(SIGTERM)
        try gateway.eventually("not ready") { try gateway.admin("/readyz").status == 503 }

        func ask(_ path: String, _ body: String, _ headers: String...) throws -> String {
            let url = "https://\(gateway.edge)\(path)"
            let arguments = ["once", gateway.certificateAuthority, url, body] + headers
            let ended = try ChildProcess(client: "ask_httpx.py", arguments).finish()
            #expect(ended.status == 0, "\(ended.errors)")
            return ended.output
        }
        let device = "/3/device/\(self.token)"
        for _ in 0..<10 {
            let answer = try ask(device, RunningGateway.payload, "apns-topic: \(self.topic)")
            #expect(answer == "503 {\"reason\":\"Shutdown\"}\n")
        }
        let result = #"{"result":"newData"}"#
        for wake in ids { #expect(try ask("/v1/wakes/\(wake)", result) == "204 \n") }
        #expect(try gateway.process.finish().status == 0)
    }

    @Test("A new connection without a request does not delay the shutdown", arguments: [true, false])
    func silentConnection(sendsPreface: Bool) throws {
        let gateway = try RunningGateway(["--set", "drainTimeout=300", "--set", "limits.handshakeSeconds=300"])
        let worker = try gateway.curlWorker(topic: self.topic)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let id = try #require(try worker.next()?.id)
        gateway.process.send(SIGTERM)
        try gateway.eventually("not ready") { try gateway.admin("/readyz").status == 503 }

        let port = try #require(gateway.plain.split(separator: ":").last)
        let bare = "exec 3<>/dev/tcp/127.0.0.1/$0; echo connected; cat <&3 >/dev/null"
        let script = #"""
            exec 3<>/dev/tcp/127.0.0.1/$0
            printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0' >&3
            head -c 9 <&3 >/dev/null && echo connected && cat <&3 >/dev/null
            """#
        let silent = try ChildProcess("bash", ["-c", sendsPreface ? script : bare, String(port)])
        #expect(try silent.line() == "connected")
        #expect(try gateway.edge("/v1/wakes/\(id)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try gateway.process.finish().status == 0)
    }

    private struct Held: Decodable {
        let completed: [String]
    }

    @Test("A shutdown under pushes at full rate, with 200 wakes in flight, loses no push and no wake")
    func underLoad() throws {
        let (devices, slots) = (200_000, 200)
        let folder = try RestartFolder()
        let gateway = try folder.start(["--set", "drainTimeout=60"])
        let (edge, authority) = (gateway.edge, gateway.certificateAuthority)
        let arguments = [edge, authority, self.topic, "\(slots)"]
        let worker = try ChildProcess(client: "holding_worker.py", arguments, isInputOpen: true)
        let provider = try FullRateClient(edge: edge, authority: authority, topic: self.topic, devices: devices)
        #expect(try worker.line() == "holding")
        #expect(try gateway.stats().integer("pushes", "inFlight") == slots)

        gateway.process.send(SIGTERM)
        try gateway.eventually("not ready") { try gateway.admin("/readyz").status == 503 }
        let late = try gateway.push(self.token, topic: self.topic)
        #expect(late.status == 503 && late.reason == "Shutdown" && late.headers["retry-after"] != nil)
        // The client was asked to leave, and none of its requests is left open.
        let outcome = try provider.outcome()
        #expect(outcome.goaway && outcome.processed == 0 && outcome.retriable, "\(outcome)")
        #expect(Set(outcome.statuses.keys).isSubset(of: ["200", "503 Shutdown"]), "\(outcome.statuses)")
        let accepted = try #require(outcome.statuses["200"])
        #expect(accepted >= 1000 && accepted == outcome.accepted.count)
        // Half of the wakes are answered during the shutdown and count. The others are left to the next start.
        try worker.endInput()
        #expect(try worker.line() == "answered")
        // The second signal ends the drain, so that its time limit may be long.
        gateway.process.send(SIGTERM)
        let held = try JSONDecoder().decode(Held.self, from: Data(try worker.finish().output.utf8))
        #expect(held.completed.count == slots / 2)
        #expect(try gateway.process.finish().status == 0)

        let next = try folder.start()
        let stats = try next.stats()
        #expect(stats.integer("pushes", "accepted") == accepted)
        #expect(stats.integer("pushes", "completed") == slots / 2)
        #expect(stats.integer("pushes", "pending") == accepted - slots / 2)
        #expect(stats.integer("wakes", "results", "lost") == slots / 2)
        let refused = outcome.statuses["503 Shutdown"] ?? 0
        #expect(stats.integer("pushes", "rejected", "Shutdown") == refused + 1)
        let waiting = Set(outcome.accepted).subtracting(held.completed)
        for token in waiting.sorted().suffix(20) + waiting.sorted().prefix(20) {
            #expect(try next.admin("/v1/devices/\(token)").value("pending", "apnsID") is String, "\(token)")
        }
    }
}
