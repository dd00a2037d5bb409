import Foundation
import Glibc
import Testing

@Suite("An overloaded gateway", .serialized, .timeLimit(.minutes(15)))
struct OverloadTests {
    struct Noise: Decodable {
        let noisy: Int
        let overtaken: [Int]
        let statuses: [String: Int]
    }

    struct Crowd: Decodable {
        let statuses: [String: Int]
        let times: Int
        let `operator`: Int?
        let after: Int
    }

    @Test("A topic at full rate lets a quiet topic's pushes through in their turn")
    func noisyTopic() throws {
        let gateway = try RunningGateway(["--set", "store=memory"])
        let arguments = [gateway.edge, gateway.certificateAuthority, "20"]
        let ended = try ChildProcess(client: "noisy_topic.py", arguments).finish(within: 600)
        let noise = try JSONDecoder().decode(Noise.self, from: Data(ended.output.utf8))
        #expect(Set(noise.statuses.keys) == ["200"])
        #expect(noise.overtaken.count == 20)
        // Each quiet push was overtaken at most by the pushes that had already arrived and by one connection's read.
        #expect(noise.overtaken.allSatisfy { $0 <= 900 }, "\(noise.overtaken)")
        #expect(noise.noisy >= 20 * 900)
    }

    @Test("At the connection limit open connections are served, operators get in, and the others are refused")
    func crowd() throws {
        // Of 200 descriptors, 128 are reserved for the rest of the process.
        // The silent crowd outlasts the wait for the operator's answer.
        let settings = ["--set", "limits.handshakeSeconds=600"]
        let gateway = try RunningGateway(settings, under: ["prlimit", "--nofile=200:200"])
        let crowd = try self.come(to: gateway, size: 100, meeting: "connectionsMax") {}
        #expect(crowd.operator == 200)
    }

    @Test("Without free descriptors open connections are served, and accepting is not retried in a loop")
    func noDescriptors() throws {
        let gateway = try RunningGateway()
        let limit = "--nofile=\(try self.descriptors(of: gateway) + 20)"
        _ = try self.come(to: gateway, size: 100, meeting: "openFiles") {
            let ended = try ChildProcess.run("prlimit", ["--pid", "\(gateway.process.identifier)", limit])
            #expect(ended.status == 0, "\(ended.errors)")
        }
    }

    private func descriptors(of gateway: RunningGateway) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(gateway.process.identifier)/fd").count
    }

    /// Opens many connections while other clients are served.
    ///
    /// - Parameter prepare: called before the connections are opened.
    private func come(
        to gateway: RunningGateway,
        size: Int,
        meeting bound: String,
        _ prepare: () throws -> Void
    ) throws -> Crowd {
        let arguments = [RunningGateway.client("crowd.py"), gateway.plain, gateway.admin, "\(size)", bound]
        let client = try ChildProcess("python3", arguments, isInputOpen: true)
        #expect(try client.line() == "ready")
        try prepare()
        try client.endInput()
        let line = try client.line(within: 300)
        let crowd = try JSONDecoder().decode(Crowd.self, from: Data(try #require(line, "\(client.errors)").utf8))
        #expect(crowd.statuses == ["200": 200])
        #expect(crowd.after == 200)
        // Each listener of each loop pauses for a second. Without that pause, the count would be in the thousands.
        #expect((1...300).contains(crowd.times), "\(crowd.times)")
        return crowd
    }
}

@Suite("Workers that read slowly", .serialized, .timeLimit(.minutes(15)))
struct SlowWorkerTests {
    private let topic = "com.example.slow"

    @Test("A stream whose reader stops gets no more wakes at its limit, and gets them once it reads again")
    func pause() throws {
        let gateway = try RunningGateway(["--set", "limits.streamingBytesSoftMax=16384"])
        // nghttp grants a stream 1,023 bytes at a time, so the rest waits in the gateway.
        let url = "http://\(gateway.plain)/v1/topics/\(self.topic)/wakes?slots=64"
        let worker = try ChildProcess("nghttp", ["--window-bits=10", url])
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        worker.send(SIGSTOP)
        let payload = #"{"aps":{"content-available":1},"news":"\#(String(repeating: "n", count: 4000))"}"#
        var pushes = 0
        try gateway.eventually("a pause") {
            pushes += 1
            let token = String(repeating: String(format: "%08x", pushes), count: 8)
            let answer = try gateway.push(token, topic: self.topic, payload: payload)
            return answer.headers["wakegate-held"] == "worker"
        }
        #expect(pushes >= 5 && pushes < 64, "\(pushes) pushes")
        #expect(try gateway.stats().integer("workers", "busy") == pushes - 1)

        worker.send(SIGCONT)
        try gateway.eventually("a wake for the last push") { try gateway.stats().integer("workers", "busy") == pushes }
    }
}
