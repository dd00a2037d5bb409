import Foundation
import Gateway
import HTTPClient
import HTTPTransport
import Platform
import Testing
import Wire

/// Each part of a loop's handler, as seen by clients and by the engine.
@Suite("A loop's handler", .timeLimit(.minutes(15)))
struct LoopHandlerTests {
    private static let wakes = "/v1/topics/\(ServedLoop.topic)/wakes"

    /// Returns the reason in a refusal.
    private func reason(_ response: HTTPResponse) -> String? {
        let object = try? JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
        return object?["reason"] as? String
    }

    // MARK: Pushes

    @Test("A topic with nearly all bytes is busy, even on a connection that began with another topic")
    func flows() throws {
        let body = #"{"aps":{"content-available":1},"fill":"\#(String(repeating: "a", count: 4000))"}"#
        let loop = try ServedLoop()
        _ = try loop.push([(name: "apns-topic", value: "com.example.other")])
        // Bytes received more than a second ago count less, so send much at once.
        for _ in 0..<1000 { _ = try loop.beginPush(body: body) }
        try loop.run("a busy topic") { loop.busyConnectionCount > 0 }
    }

    @Test("While a quiet topic has pushes, the engine holds fewer pushes of a busy one at a time")
    func quietTopic() throws {
        let loop = try ServedLoop()
        let body = #"{"aps":{"content-available":1},"fill":"\#(String(repeating: "a", count: 4000))"}"#
        let other = (name: "apns-topic", value: "com.example.other")
        _ = try loop.push([other], host: "localhost")
        // Bytes received more than a second ago count less, so send many pushes at once, but fewer than the limit. It
        // may take some seconds until the other topic's share of the bytes is no longer large.
        for _ in 0..<100 where loop.busyConnectionCount == 0 {
            let pushes = try (0..<100).map { _ in try loop.beginPush(body: body) }
            try loop.run("answers") { pushes.allSatisfy { loop.answers[$0]?.end != nil } }
        }
        #expect(loop.busyConnectionCount > 0 && loop.shared.tally.times(.requestsAtEngineMax) == 0)
        // The limit is below the usual 512.
        for _ in 0..<200 { _ = try loop.beginPush(body: body) }
        let limit = SystemClock.monotonic + 60_000
        var turn = 0
        while loop.shared.tally.times(.requestsAtEngineMax) == 0 {
            try #require(SystemClock.monotonic < limit && turn < 3_000, "the loop kept reading")
            // At most three hundred are sent.
            if turn.isMultiple(of: 10) { _ = try loop.beginPush([other], host: "localhost") }
            loop.exchange()
            turn += 1
        }
    }

    @Test("A valid push is answered with its id and its disposition")
    func pushes() throws {
        let loop = try ServedLoop()
        let id = "7B3C8A1E-0000-4000-8000-123456789ABC"
        let good = try loop.push([(name: "apns-id", value: id)])
        #expect(good.status == 200 && good.header("apns-id")?.uppercased() == id && good.body.isEmpty)
        #expect(good.header("wakegate-disposition") != nil)
    }

    @Test("A likely mistake in an accepted push is named in its answer, and an ordinary push costs no header")
    func warnings() throws {
        func warnings(_ loop: ServedLoop, _ body: String, _ fields: [(name: String, value: String)]) throws -> [String]
        {
            let answer = try loop.push(fields, body: body)
            #expect(answer.status == 200)
            return answer.headers.filter { $0.name == "wakegate-warning" }.map { String($0.value.prefix { $0 != ";" }) }
        }
        let background = [(name: "apns-push-type", value: "background")]
        let wrong = #"{"aps":{"content-available":true}}"#
        let loop = try ServedLoop()
        #expect(try warnings(loop, ServedLoop.body, background) == [])
        #expect(try warnings(loop, wrong, background) == ["content-available"])
        let dryRun = [(name: "wakegate-dry-run", value: "1")]
        #expect(try warnings(loop, wrong, dryRun) == ["content-available"])
        let development = try ServedLoop { $0.faultRules = [] }
        #expect(try warnings(development, ServedLoop.body, background) == ["background-priority"])
        #expect(try warnings(development, wrong, background) == ["content-available", "background-priority"])
        let considerate = background + [(name: "apns-priority", value: "5")]
        #expect(try warnings(development, ServedLoop.body, considerate) == [])
    }

    @Test("A push may have the length that its type allows")
    func pushBodies() throws {
        let loop = try ServedLoop()
        let text = String(repeating: "x", count: 4_500)
        let body = #"{"aps":{"content-available":1},"text":"\#(text)"}"#
        let long = try loop.push(body: body)
        #expect(long.status == 413 && self.reason(long) == "PayloadTooLarge")
        let voip = try loop.push(
            [
                (name: "apns-push-type", value: "voip"), (name: "apns-topic", value: "\(ServedLoop.topic).voip"),
            ],
            body: body
        )
        #expect(self.reason(voip) != "PayloadTooLarge")
    }

    // MARK: Operations

    @Test("Requests reach their operations, or are refused if there is none")
    func routes() throws {
        let loop = try ServedLoop()
        let missing = try loop.ask("GET /v1/nothing")
        #expect(missing.status == 404 && self.reason(missing) == "BadPath")
        let method = try loop.ask("DELETE \(Self.wakes)")
        #expect(method.status == 405 && method.header("allow") == "GET")
        let statistics = try loop.ask("GET /v1/stats?", at: .admin)
        #expect(statistics.status == 200 && statistics.header("content-type") == "application/json")
        #expect(try loop.ask("GET /v1/stats").status == 404)
    }

    @Test("A request for the other listener is answered with that hint, whatever the status")
    func otherListener() throws {
        let loop = try ServedLoop()
        let device = "/v1/devices/\(ServedLoop.device)"
        for path in ["/", "/readyz", "/metrics?x", "/dashboard/main.js", device] {
            let answer = try loop.ask("GET \(path)")
            #expect(answer.status == 405 && self.reason(answer) == "MethodNotAllowed", "\(path)")
            // Every request counts as a push unless it is for a worker's route.
            #expect((answer.header("apns-id") != nil) == (path != device), "\(path)")
            #expect(String(decoding: answer.body, as: UTF8.self).contains("on the admin listener"), "\(path)")
        }
        for path in ["/nothing", "/3/device/\(ServedLoop.device)"] {
            let answer = try loop.ask("GET \(path)")
            #expect(String(decoding: answer.body, as: UTF8.self) == #"{"reason":"MethodNotAllowed"}"#, "\(path)")
        }
        let launch = "POST /v1/devices/\(ServedLoop.device)/simulate-launch"
        for query in ["?pending=2", "?pendng=1"] {
            #expect(self.reason(try loop.ask(launch + query, at: .admin)) == "BadQuery", "\(query)")
        }
    }

    @Test("A body is accepted up to its operation's limit, several at a time on one connection")
    func bodies() throws {
        let loop = try ServedLoop()
        let large = [UInt8](repeating: UInt8(ascii: " "), count: 5_000)
        let requests = try (0..<6).map { number in
            try loop.begin("POST /v1/wakes/none", body: number % 2 == 0 ? large : Array(#"{"result":"noData"}"#.utf8))
        }
        try loop.run("answers") { requests.allSatisfy { loop.answers[$0]?.end != nil } }
        let statuses = try requests.map { try #require(loop.answers[$0]?.end).get().status }
        #expect(statuses == [413, 404, 413, 404, 413, 404])
    }

    @Test(
        "A request with a foreign host or from another site's page is refused on every path",
        arguments: [
            ("host", ["attacker.example"], false), ("host", ["unix:9197"], false), ("host", ["localhost"], true),
            ("host", ["[::1]:80"], true), ("accept", ["*/*"], true),
            ("origin", ["https://attacker.example"], false), ("origin", ["null"], false),
            ("sec-fetch-site", ["cross-site"], false), ("sec-fetch-site", ["same-site"], false),
            ("sec-fetch-site", [""], false), ("sec-fetch-site", ["None"], false),
            // The last of two values does not hide the first.
            ("sec-fetch-site", ["cross-site", "none"], false),
            ("sec-fetch-site", ["same-origin"], true), ("sec-fetch-site", ["none"], true),
        ] as [(String, [String], Bool)]
    )
    func callers(name: String, values: [String], isTaken: Bool) throws {
        let loop = try ServedLoop()
        let headers = values.map { (name: name, value: $0) }
        for (request, door, status) in [
            ("GET /v1/stats", ServedLoop.Door.admin, 200), ("GET /", .admin, 200), ("GET /v1/nothing", .plain, 404),
        ] {
            let answer = try loop.ask(request, at: door, headers: headers)
            #expect(answer.status == (isTaken ? status : 403), "\(request)")
            if !isTaken { #expect(self.reason(answer) == "Forbidden", "\(request)") }
        }
    }

    @Test(
        "A link from another site leads only to the dashboard's page",
        arguments: [
            ("GET /", "navigate", "document", 200), ("GET /?from=mail", "navigate", "document", 200),
            ("GET /v1/stats", "navigate", "document", 403), ("GET /dashboard/main.js", "navigate", "document", 403),
            ("POST /", "navigate", "document", 403), ("GET /", "navigate", "iframe", 403),
            ("GET /", "navigate", nil, 403), ("GET /", "no-cors", "document", 403), ("GET /", nil, "document", 403),
        ] as [(String, String?, String?, Int)]
    )
    func links(request: String, mode: String?, destination: String?, status: Int) throws {
        let loop = try ServedLoop()
        let fields = ["sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": destination]
        let headers = fields.compactMap { name, value in value.map { (name: name, value: $0) } }
        #expect(try loop.ask(request, at: .admin, headers: headers).status == status)
        // The plain listener has no dashboard.
        #expect(try loop.ask(request, headers: headers).status == 403)
    }

    @Test("A page of another host is refused in the format of the requested interface")
    func foreignPages() throws {
        let loop = try ServedLoop()
        let foreign = [(name: "origin", value: "http://example.com")]
        let page = try loop.ask("GET /v1/stats", at: .admin, headers: foreign)
        #expect(page.status == 403 && self.reason(page) == "Forbidden" && page.header("apns-id") == nil)
        // Some clients find the request of an answer only by its identifier.
        let id = "7b3c8a1e-0000-4000-8000-123456789abc"
        let push = try loop.push(foreign + [(name: "apns-id", value: id)])
        #expect(push.status == 403 && self.reason(push) == "Forbidden" && push.header("apns-id") == id)
    }

    @Test("A push whose header fields are too large is refused with its own id, and any other request with a reason")
    func headerLists() throws {
        let loop = try ServedLoop()
        let large = (name: "x-large", value: String(repeating: "x", count: 9_000))
        let id = "7b3c8a1e-0000-4000-8000-123456789abc"
        // The push has no body, because libcurl 7.88 takes an answer before the body is sent for an error.
        let push = try loop.ask("POST /3/device/\(ServedLoop.device)", headers: [(name: "apns-id", value: id), large])
        #expect(push.status == 431 && push.header("apns-id") == id)
        let other = try loop.ask("GET /v1/stats", at: .admin, headers: [large])
        #expect(other.status == 431 && other.header("apns-id") == nil)
        for answer in [push, other] { #expect(self.reason(answer) == "RequestHeaderFieldsTooLarge") }
    }

    // MARK: Workers

    @Test("Every event stream begins with a comment, and proxies may not delay or change it")
    func greetings() throws {
        let loop = try ServedLoop()
        let greetings = [
            (Self.wakes, ServedLoop.Door.plain, ": wakes follow\n\n"), ("/v1/events", .admin, ": events follow\n\n"),
            ("/v1/live", .admin, ": samples follow, one a second\n\n"),
        ]
        for (path, door, greeting) in greetings {
            let stream = try loop.open(path, at: door)
            let head = try #require(loop.answers[stream]?.head)
            let fields = ["content-type", "cache-control", "x-accel-buffering"].map { head.header($0) ?? "none" }
            #expect(head.status == 200 && fields == ["text/event-stream", "no-cache, no-transform", "no"], "\(path)")
            try loop.run("the greeting of \(path)") { (loop.answers[stream]?.body.count ?? 0) >= greeting.utf8.count }
            #expect(loop.answers[stream]?.text.hasPrefix(greeting) == true, "\(path)")
        }
    }

    @Test("Clients without credentials share one limit of workers' streams, until a stream ends")
    func workerBound() throws {
        let loop = try ServedLoop { $0.limits.streamsPerCredentialMax = 1 }
        let stream = try loop.open(Self.wakes)
        #expect(loop.answers[stream]?.head?.status == 200)
        #expect(try loop.ask("GET \(Self.wakes)").status == 429)
        #expect(loop.shared.tally.times(.streamsPerCredentialMax) == 1)
        // A subscription that never reaches the engine does not count.
        #expect(try loop.ask("GET \(Self.wakes)?slots=none").status == 400)
        loop.cancel(stream)
        var next: HTTPRequestID?
        try loop.run("a free place for another stream") {
            guard let id = next, let answer = loop.answers[id] else {
                next = try? loop.open(Self.wakes)
                return false
            }
            if answer.head?.status == 200 { return true }
            next = nil
            return false
        }
    }

    @Test(
        "A caller over its limit per minute is refused with the limit's name and a retry time, whatever it asks",
        arguments: [
            ("POST /v1/devices/\(ServedLoop.device)/tasks", "submissionsPerCredentialMax"),
            ("POST /v1/devices/\(ServedLoop.device)/sessions/downloads", "submissionsPerCredentialMax"),
            ("POST /v1/wakes/0123456789abcdef0123456789abcdef/progress", "progressPerCredentialMax"),
        ]
    )
    func rates(request: String, limit: String) throws {
        let loop = try ServedLoop { configuration in
            configuration.limits.submissionsPerCredentialMax = 2
            configuration.limits.progressPerCredentialMax = 2
        }
        // If the minute ends in between, counting starts anew, so the fifth request at the latest exceeds the limit.
        var refused: HTTPResponse?
        for _ in 0..<5 where refused == nil {
            let answer = try loop.ask(request, body: "{}")
            if answer.status == 429 { refused = answer }
        }
        let answer = try #require(refused)
        #expect(self.reason(answer) == "TooManyRequests" && answer.header("retry-after") == "60")
        #expect(String(decoding: answer.body, as: UTF8.self).contains("limits.\(limit)"))
        let count = try #require(GatewayCountedLimit(rawValue: limit))
        #expect(loop.shared.tally.times(count) == 1)
        // Other requests are not counted.
        #expect(try loop.ask("GET /v1/devices/\(ServedLoop.device)/tasks").status != 429)
    }

    // MARK: Watchers

    @Test("Live streams are limited by liveStreamsMax")
    func watchers() throws {
        let loop = try ServedLoop { $0.limits.liveStreamsMax = 1 }
        let stream = try loop.open("/v1/live", at: .admin)
        #expect(loop.answers[stream]?.head?.status == 200)
        #expect(try loop.ask("GET /v1/live", at: .admin).status == 503)
        #expect(loop.shared.tally.times(.liveStreamsMax) == 1)
    }

    // MARK: Faults

    @Test("A fault rule's answer has its own timestamp, or none")
    func faults() throws {
        let text = """
            {rules: [
              {when: {nth: 1}, then: {reason: "Unregistered", timestamp: 1454948015990}},
              {when: {nth: 2}, then: {reason: "Unregistered", timestamp: null}},
            ]}
            """
        let rules = try FaultRuleReader.rules(Data(text.utf8), name: "faults.json5").rules
        let loop = try ServedLoop { $0.faultRules = rules }
        #expect(try loop.push().body == Array(#"{"reason":"Unregistered","timestamp":1454948015990}"#.utf8))
        #expect(try loop.push().body == Array(#"{"reason":"Unregistered"}"#.utf8))
        #expect(try loop.push().status == 200)
    }
}
