import Foundation
import Testing

@Suite("Malformed pushes over the wire", .serialized, .timeLimit(.minutes(15)))
struct MalformedPushTests {
    struct Case: CustomTestStringConvertible {
        let testDescription: String
        var path = "/3/device/" + Self.token
        /// The header fields of the push, instead of valid ones.
        var fields = ["apns-topic: com.example.bad"]
        /// Bytes to append to the last field.
        var lastFieldEnd: [UInt8] = []
        var body = RunningGateway.payload
        var method = "POST"
        var status = 400
        let reason: String

        static let token = String(repeating: "ba", count: 32)
    }

    static let topic = "apns-topic: com.example.bad"

    static let cases: [Case] = [
        Case(testDescription: "GET", method: "GET", status: 405, reason: "MethodNotAllowed"),
        Case(testDescription: "the root", path: "/", status: 404, reason: "BadPath"),
        Case(testDescription: "a query", path: "/3/device/\(Case.token)?a=b", status: 404, reason: "BadPath"),
        Case(testDescription: "no token", path: "/3/device/", reason: "MissingDeviceToken"),
        Case(testDescription: "a short token", path: "/3/device/abcd", reason: "BadDeviceToken"),
        Case(testDescription: "a repeated field", fields: [Self.topic, Self.topic], reason: "DuplicateHeaders"),
        Case(testDescription: "an apns-id", fields: [Self.topic, "apns-id: 1"], reason: "BadMessageId"),
        Case(
            testDescription: "an expiration",
            fields: [Self.topic, "apns-expiration: 1.5"],
            reason: "BadExpirationDate"
        ),
        Case(testDescription: "a priority", fields: [Self.topic, "apns-priority: 7"], reason: "BadPriority"),
        Case(
            testDescription: "a push type",
            fields: [Self.topic, "apns-push-type: silent"],
            reason: "InvalidPushType"
        ),
        Case(
            testDescription: "a collapse id of 65 bytes",
            fields: [Self.topic, "apns-collapse-id: " + String(repeating: "c", count: 65)],
            reason: "BadCollapseId"
        ),
        Case(
            testDescription: "a collapse id that is not UTF-8",
            fields: [Self.topic, "apns-collapse-id: caf"],
            lastFieldEnd: [0xE9],
            reason: "BadCollapseId"
        ),
        Case(testDescription: "no topic", fields: [], reason: "MissingTopic"),
        Case(testDescription: "a topic", fields: ["apns-topic: a b"], reason: "BadTopic"),
        Case(
            testDescription: "a dry run that is not asked for with 1",
            fields: [Self.topic, "wakegate-dry-run: true"],
            reason: "BadDryRun"
        ),
        Case(testDescription: "no payload", body: "", reason: "PayloadEmpty"),
        Case(
            testDescription: "4097 bytes",
            body: #"{"a":""# + String(repeating: "a", count: 4089) + #""}"#,
            status: 413,
            reason: "PayloadTooLarge"
        ),
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
            #expect(answer.status == each.status, "\(each.testDescription)")
            #expect(answer.reason == each.reason, "\(each.testDescription)")
            #expect(answer.headers["apns-id"] != nil, "\(each.testDescription)")
            #expect(answer.headers["content-type"] == "application/json", "\(each.testDescription)")
            #expect(answer.headers["allow"] == (each.status == 405 ? "POST" : nil), "\(each.testDescription)")
            #expect(
                try gateway.push(Case.token, topic: "com.example.bad").status == 200,
                "after \(each.testDescription)"
            )
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
