import Foundation
import Glibc
import Testing

@Suite("Traces of pushes, from the provider to the worker", .serialized, .timeLimit(.minutes(15)))
struct TracingTests {
    private let topic = "com.example.traces"
    private let token = String(repeating: "7ace", count: 16)

    private func parent(_ number: Int) -> String {
        "00-0af7651916cd43dd8448eb211c8031\(number + 10)-b7ad6b71692033\(number + 10)-01"
    }

    @discardableResult
    private func push(_ gateway: RunningGateway, to token: String? = nil, _ fields: String...) throws -> Answer {
        let answer = try gateway.push(token ?? self.token, topic: self.topic, fields: fields)
        #expect(answer.status == 200, "\(answer)")
        return answer
    }

    @Test("A header that is not as it should be is ignored, and a wake without a trace says nothing of any")
    func ignored() throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        let fields = [
            ["tracestate: a=1"], ["traceparent: 00-nonsense-01", "tracestate: a=1"],
            ["traceparent: \(self.parent(1))", "traceparent: \(self.parent(2))"],
        ]
        for (number, fields) in fields.enumerated() {
            let token = String(repeating: "\(number)bad", count: 16)
            switch fields.count {
            case 1: try self.push(gateway, to: token, fields[0])
            default: try self.push(gateway, to: token, fields[0], fields[1])
            }
            let wake = try #require(try worker.next())
            #expect(wake.data["device"] as? String == token)
            #expect(!wake.data.keys.contains { $0.hasPrefix("trace") }, "\(wake.data)")
            let answer = #"{"result":"newData"}"#
            #expect(try gateway.edge("/v1/wakes/\(wake.id ?? "")", "-d", answer).status == 204)
        }
        let token = String(repeating: "900d", count: 16)
        let long = String(repeating: "x", count: 513)
        try self.push(gateway, to: token, "traceparent: \(self.parent(1))", "tracestate: a=\(long)")
        let wake = try #require(try worker.next())
        #expect(wake.data["traceparent"] as? String == self.parent(1))
        #expect(wake.data["tracestate"] == nil)
    }

    @Test("A background task's wake has the trace of its submission, after a crash as well")
    func task() throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let registration = #"{"token":"\#(self.token)"}"#
        #expect(try first.edge("/v1/topics/\(self.topic)/devices", "-d", registration).status == 201)
        let fields = ["traceparent: \(self.parent(1))", "tracestate: a=1"].flatMap { ["-H", $0] }
        let task = ["-d", #"{"identifier":"com.example.refresh","kind":"appRefresh"}"#]
        let url = "https://\(first.edge)/v1/devices/\(self.token)/tasks"
        #expect(try Answer.curl(first.curlOptions + fields + task + [url]).status == 201)
        try first.process.end(SIGKILL)

        let gateway = try folder.start()
        let worker = try gateway.curlWorker(topic: self.topic, query: "&task=com.example.refresh")
        let wake = try #require(try worker.next())
        #expect(wake.data["traceparent"] as? String == self.parent(1))
        #expect(wake.data["tracestate"] as? String == "a=1" && wake.data["traceLinks"] == nil)
    }
}
