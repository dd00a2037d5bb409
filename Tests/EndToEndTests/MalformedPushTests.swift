import Foundation
import Testing

@Suite("Malformed pushes over the wire", .serialized, .timeLimit(.minutes(15)))
struct MalformedPushTests {
    /// A push that is valid except for what it sets.
    struct Case {
        let name: String
        let reason: String
        var status = 400
        var method = "POST"
        var path = "/3/device/" + Self.token
        var fields = [MalformedPushTests.topic]
        /// Bytes to append to the last field.
        var lastFieldEnd: [UInt8] = []
        var body = RunningGateway.payload

        static let token = String(repeating: "ba", count: 32)
    }

    static let topic = "apns-topic: com.example.bad"

    private static func field(_ name: String, _ reason: String, _ field: String, end: [UInt8] = []) -> Case {
        Case(name: name, reason: reason, fields: [Self.topic, field], lastFieldEnd: end)
    }

    private static let long = String(repeating: "c", count: 65)
    private static let large = #"{"a":""# + String(repeating: "a", count: 4089) + #""}"#

    static let cases: [Case] = [
        Case(name: "GET", reason: "MethodNotAllowed", status: 405, method: "GET"),
        Case(name: "the root", reason: "BadPath", status: 404, path: "/"),
        Case(name: "a query", reason: "BadPath", status: 404, path: "/3/device/\(Case.token)?a=b"),
        Case(name: "no token", reason: "MissingDeviceToken", path: "/3/device/"),
        Case(name: "a short token", reason: "BadDeviceToken", path: "/3/device/abcd"),
        field("a repeated field", "DuplicateHeaders", Self.topic),
        field("an apns-id", "BadMessageId", "apns-id: 1"),
        field("an expiration", "BadExpirationDate", "apns-expiration: 1.5"),
        field("a priority", "BadPriority", "apns-priority: 7"),
        field("a push type", "InvalidPushType", "apns-push-type: silent"),
        field("a collapse id of 65 bytes", "BadCollapseId", "apns-collapse-id: \(Self.long)"),
        field("a collapse id that is not UTF-8", "BadCollapseId", "apns-collapse-id: caf", end: [0xE9]),
        Case(name: "no topic", reason: "MissingTopic", fields: []),
        Case(name: "a topic", reason: "BadTopic", fields: ["apns-topic: a b"]),
        field("a dry run that is not asked for with 1", "BadDryRun", "wakegate-dry-run: true"),
        Case(name: "no payload", reason: "PayloadEmpty", body: ""),
        Case(name: "4097 bytes", reason: "PayloadTooLarge", status: 413, body: Self.large),
    ]

    @Test("Each malformed push is refused with its status and reason, and the next valid push is accepted")
    func table() throws {
        let gateway = try RunningGateway()
        let body = gateway.folder.appendingPathComponent("body")
        let headers = gateway.folder.appendingPathComponent("headers")
        for each in Self.cases {
            try Data(each.body.utf8).write(to: body)
            let options = ["--include", "--request", each.method, "--data-binary", "@\(body.path)"]
            try (Data(each.fields.joined(separator: "\n").utf8) + each.lastFieldEnd).write(to: headers)
            let url = "https://\(gateway.edge)\(each.path)"
            let ended = try ChildProcess.run("curl", gateway.curlOptions + options + ["-H", "@\(headers.path)", url])
            let answer = try Answer(curlOutput: ended.output)
            #expect(answer.status == each.status && answer.reason == each.reason, "\(each.name): \(answer)")
            #expect(answer.headers["apns-id"] != nil, "\(each.name)")
            #expect(answer.headers["content-type"] == "application/json", "\(each.name)")
            #expect(answer.headers["allow"] == (each.status == 405 ? "POST" : nil), "\(each.name)")
            #expect(try gateway.push(Case.token, topic: "com.example.bad").status == 200, "after \(each.name)")
        }
        let stats = try gateway.stats()
        #expect(stats.integer("pushes", "accepted") == Self.cases.count)
        #expect(stats.integer("pushes", "rejected", "BadDeviceToken") == 1)
        #expect(stats.integer("pushes", "rejected", "BadPath") == 2)
        #expect(stats.integer("pushes", "rejected", "PayloadTooLarge") == 1)
        #expect(stats.integer("pushes", "rejected", "BadDryRun") == 1)
    }

    @Test("A wrong content-available and priority 10 for a background push are named in the answer and in dev's log")
    func warnings() throws {
        let gateway = try RunningGateway()
        let payload = #"{"aps":{"content-available":true}}"#
        let answer = try gateway.push(Case.token, topic: "com.example.bad", payload: payload)
        #expect(answer.status == 200)
        #expect(answer.headers["wakegate-disposition"] == "no-wake")
        #expect(answer.headers["wakegate-warning"]?.hasPrefix("content-available;") == true, "\(answer.headers)")
        let push = ["push", Case.token, "--topic", "com.example.bad", "--push-type", "background", "--priority", "10"]
        let told = try ChildProcess.wakegate(push, folder: gateway.folder)
        #expect(told.status == 0)
        #expect(told.errors.contains("warning: background-priority;"), "\(told.errors)")
        try gateway.eventually("two lines of the log") {
            let log = gateway.process.errors
            return log.contains("warning pushWarning ") && log.contains("warning=content-available")
                && log.contains("warning=background-priority")
        }
        // The answer to an operator's push contains the same warning.
        let body = #"{"payload":{"aps":{"content-available":"1"}}}"#
        let test = try gateway.admin("/v1/devices/\(Case.token)/push", "--data", body)
        #expect(test.body.contains(#""warnings":["content-available;"#), "\(test.body)")
    }

    @Test("A body far beyond the limit is answered immediately, and then stopped without an error")
    func megabyte() throws {
        let gateway = try RunningGateway()
        let body = gateway.folder.appendingPathComponent("body")
        try Data((#"{"a":""# + String(repeating: "a", count: 1_000_000) + #""}"#).utf8).write(to: body)
        let url = "https://\(gateway.edge)/3/device/\(Case.token)"
        let ended = try ChildProcess.run("nghttp", ["--verbose", "--data=\(body.path)", "-H", Self.topic, url])
        #expect(ended.output.contains(":status: 413"))
        #expect(ended.output.contains(#"{"reason":"PayloadTooLarge"}"#))
        #expect(ended.output.contains("(error_code=NO_ERROR(0x00))"))
        #expect(try gateway.push(Case.token, topic: "com.example.bad").status == 200)
    }
}
