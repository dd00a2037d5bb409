import Foundation
import Glibc
import Testing

@Suite("Workers that read slowly", .serialized, .timeLimit(.minutes(15)))
struct SlowWorkerTests {
    private let topic = "com.example.slow"

    @Test("A stream whose reader stops gets no more wakes at its bound, and gets them once it reads again")
    func pause() throws {
        let gateway = try RunningGateway(["--set", "limits.streamingBytesSoftMax=16384"])
        // nghttp grants a stream 1,023 bytes at a time: the rest waits in the gateway.
        let url = "http://\(gateway.plain)/v1/topics/\(self.topic)/wakes?slots=64"
        let worker = try ChildProcess("nghttp", ["--window-bits=10", url])
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
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
        try gateway.eventually("a wake for the last push") {
            try gateway.stats().integer("workers", "busy") == pushes
        }
    }
}
