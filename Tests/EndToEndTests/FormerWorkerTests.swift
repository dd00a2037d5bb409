import Foundation
import Testing

/// The HTTP/1.1 requests that `wakegate worker --report-conditions` of 50ad6a39 writes, byte for byte except for the
/// names of peer, wake and stream, and the event that a gateway of that version sends.
@Suite("A worker of 50ad6a39 at this gateway", .serialized, .timeLimit(.minutes(15)))
struct FormerWorkerTests {
    private static let token = String(repeating: "4f", count: 32)
    private static let conditions = """
        PATCH /v1/devices/\(token)/conditions HTTP/1.1\r
        Host: HOST\r
        Accept: */*\r
        content-type: application/json\r
        Content-Length: 53\r
        \r
        {"batteryLevel":0.42,"charging":false,"network":true}
        """
    private static let subscription = """
        GET /v1/topics/com.example.app/wakes?slots=2&name=old&device=\(token)&task=com.example.app.*\
        &conditions=1 HTTP/1.1\r
        Host: HOST\r
        accept: text/event-stream\r
        \r

        """
    private static let result = """
        POST /v1/wakes/WAKE HTTP/1.1\r
        Host: HOST\r
        Accept: */*\r
        content-type: application/json\r
        Content-Length: 19\r
        \r
        {"result":"noData"}
        """
    private static let drain = """
        POST /v1/streams/STREAM/drain HTTP/1.1\r
        Host: HOST\r
        Accept: */*\r
        \r

        """
    /// The event of a push with all optional members.
    private static let event = [
        "event: wake", "id: WAKE",
        #"data: {"wake":"WAKE","kind":"push","device":"\#(token)","topic":"com.example.app","#
            + #""apnsID":"1A2b3C4d-0000-4000-8000-00000000000A","priority":5,"attempt":1,"coalesced":0,"#
            + #""receivedAt":TIME,"firstReceivedAt":TIME,"deadline":TIME,"timeLeft":30000,"#
            + #""traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"vendor=1","#
            + #""collapseID":"edition","payload":{"aps":{"content-available":1},"edition":7}}"#,
    ]

    /// A connection of the worker to the plain listener.
    private struct Connection {
        let process: ChildProcess
        private let host: String

        init(_ gateway: RunningGateway) throws {
            let script = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/raw_connection.py")
            self.process = try ChildProcess("python3", [script.path, gateway.plain], isInputOpen: true)
            self.host = gateway.plain
        }

        func send(_ request: String, wake: String = "", stream: String = "") throws {
            let text = request.replacing("HOST", with: self.host).replacing("WAKE", with: wake)
                .replacing("STREAM", with: stream)
            try self.process.write(String(decoding: try JSONEncoder().encode(text), as: UTF8.self))
        }

        /// Returns the next line that meets a condition, without its carriage return.
        func line(_ isWanted: (String) -> Bool) throws -> String {
            while let line = try self.process.line() {
                let text = line.hasSuffix("\r") ? String(line.dropLast()) : line
                if isWanted(text) { return text }
            }
            throw ChildProcess.Failure(description: "the connection ended before the line that was expected")
        }
    }

    private func pushed(to gateway: RunningGateway) throws -> Answer {
        let fields = [
            "apns-id: 1A2b3C4d-0000-4000-8000-00000000000A", "apns-collapse-id: edition",
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate: vendor=1",
        ]
        let payload = #"{"aps":{"content-available":1},"edition":7}"#
        return try gateway.push(Self.token, topic: "com.example.app", payload: payload, fields: fields)
    }

    @Test("A former worker's requests are understood, and it gets the event format it knows")
    func worker() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.wakegate("device", "register", Self.token, "--topic", "com.example.app").status == 0)
        let requests = try Connection(gateway)
        try requests.send(Self.conditions)
        _ = try requests.line { $0 == "HTTP/1.1 200 OK" }
        let conditions = try gateway.admin("/v1/devices/\(Self.token)").value("conditions") as? [String: Any]
        #expect(conditions?["batteryLevel"] as? Double == 0.42 && conditions?["charging"] as? Bool == false)

        let stream = try Connection(gateway)
        try stream.send(Self.subscription)
        _ = try stream.line { $0 == "HTTP/1.1 200 OK" }
        let name = try stream.line { $0.hasPrefix("wakegate-stream: ") }.dropFirst("wakegate-stream: ".count)
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        #expect(try self.pushed(to: gateway).status == 200)
        let lines = try ["event: wake", "id: ", "data: "].map { start in try stream.line { $0.hasPrefix(start) } }
        let wake = String(lines[1].dropFirst("id: ".count))
        let told = lines.map { line in
            line.replacing(wake, with: "WAKE")
                .replacingOccurrences(of: "At\":[0-9]{13}", with: "At\":TIME", options: .regularExpression)
                .replacingOccurrences(of: "deadline\":[0-9]{13}", with: "deadline\":TIME", options: .regularExpression)
        }
        #expect(told == Self.event)

        try requests.send(Self.result, wake: wake)
        // The line follows the body of the previous answer, which does not end with a line feed.
        _ = try requests.line { $0.hasSuffix("HTTP/1.1 204 No Content") }
        #expect(try gateway.results("noData") == 1)
        try requests.send(Self.drain, stream: String(name))
        _ = try requests.line { $0.hasSuffix("HTTP/1.1 204 No Content") }
        try gateway.eventually("no worker") { try gateway.workerCount() == 0 }
        _ = try stream.line { $0 == "0" }
    }
}
