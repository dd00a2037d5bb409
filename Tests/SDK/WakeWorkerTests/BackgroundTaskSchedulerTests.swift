import Foundation
import Testing
import WakeGateTestKit
import WakeWorker
import Wire

@Suite("A scheduler and its gateway", .serialized, .timeLimit(.minutes(15)))
struct BackgroundTaskSchedulerTests {
    private static let token = String(repeating: "ab", count: 16)

    @Test("Requests are submitted, listed and cancelled for the worker's device, or for one that is named")
    func requests() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker(devices: [Self.token])
        let answer =
            #"{"identifier":"a.b","kind":"appRefresh","disposition":"scheduled","eligibleAt":5000,"held":null}"#
        try await gateway.answer("POST", "/tasks", 201, answer)
        let submission = try await worker.scheduler.submit(.appRefresh("a.b"))
        #expect(submission.disposition == .scheduled && submission.eligibleAt == Date(timeIntervalSince1970: 5))
        let submitted = try await gateway.request("/tasks")
        #expect(submitted.path == "/v1/devices/\(Self.token)/tasks")
        #expect(submitted.body == #"{"identifier":"a.b","kind":"appRefresh"}"#)

        let waiting = #"{"identifier":"a.b","kind":"appRefresh","submittedAt":1,"attempts":0,"why":"It waits."}"#
        try await gateway.answer("GET", "/tasks", 200, #"{"waiting":[\#(waiting)],"running":[]}"#)
        let pending = try await worker.scheduler.pendingRequests()
        #expect(pending.map(\.identifier) == ["a.b"])
        #expect(try await gateway.request("/tasks").method == "GET")

        try await worker.scheduler.cancel("a.b")
        let cancelled = try await gateway.request("/tasks/a.b")
        #expect(cancelled.method == "DELETE" && cancelled.path == "/v1/devices/\(Self.token)/tasks/a.b")
        let other = String(repeating: "cd", count: 16)
        try await worker.scheduler(for: other).cancelAll()
        let all = try await gateway.request("/tasks")
        #expect(all.method == "DELETE" && all.path == "/v1/devices/\(other)/tasks")
    }

    @Test(
        "Each refusal has its own code, by which it is caught, and the gateway's message",
        arguments: [
            (403, "NotPermitted", BackgroundTaskError.notPermitted),
            (409, "Unavailable", BackgroundTaskError.unavailable),
            (409, "NotForeground", .notForeground), (409, "ImmediateRunIneligible", .immediateRunIneligible),
            (409, "TooManyPendingTaskRequests", .tooManyPendingTaskRequests),
            (400, "BadTaskRequest", .badTaskRequest), (404, "UnknownDevice", .unknownDevice),
            (410, "Unregistered", .unregistered), (418, "NeverHeardOf", .failed),
        ] as [(Int, String, BackgroundTaskError.Code)]
    )
    func refusals(status: Int, reason: String, code: BackgroundTaskError.Code) async throws {
        let gateway = try await TaskGateway()
        try await gateway.answer("POST", "/tasks", status, #"{"reason":"\#(reason)","message":"Do otherwise."}"#)
        let scheduler = try gateway.worker(devices: [Self.token]).scheduler
        let error = try await #require(throws: BackgroundTaskError.self) {
            try await scheduler.submit(.processing("a"))
        }
        #expect(error.code == code && error.message.contains("Do otherwise."), "\(error)")
        #expect(error.retryAfter == nil && error.cause != nil)
        let errors: [any Error] = [error, BackgroundTaskError(.shutdown, ""), CancellationError()]
        let isCaught = errors.map { code ~= $0 }
        #expect(isCaught == [true, false, false])
    }

    @Test("A limit that is reached says when to try again")
    func limits() async throws {
        let gateway = try await TaskGateway()
        let scheduler = try gateway.worker(devices: [Self.token]).scheduler
        let body = #"{"reason":"TooManyRequests","message":"Wait."}"#
        try await gateway.answer("DELETE", "/tasks", 429, body, headers: ["retry-after": "60"])
        let error = try await #require(throws: BackgroundTaskError.self) { try await scheduler.cancelAll() }
        #expect(error.code == .tooManyRequests && error.retryAfter == .seconds(60), "\(error)")
    }

    @Test("Finished transfers are reported with an id, and a retry uses the same id")
    func transfers() async throws {
        let gateway = try await TaskGateway()
        let scheduler = try gateway.worker(devices: [Self.token]).scheduler
        try await gateway.answer("POST", "/sessions/photos", 503, #"{"reason":"Shutdown","message":"Wait."}"#)
        try await scheduler.transfersFinished(session: "photos", count: 3)
        let (first, second) = (
            try await gateway.request("/sessions/photos"), try await gateway.request("/sessions/photos")
        )
        #expect(first.body.hasPrefix(#"{"finished":3,"id":""#) && first.body == second.body)
        #expect(first.path == "/v1/devices/\(Self.token)/sessions/photos")
        try await scheduler.transfersFinished(session: "photos", id: #"a"\"#)
        #expect(try await gateway.request("/sessions/photos").body == #"{"finished":1,"id":"a\"\\"}"#)
        try await gateway.answer("POST", "/sessions/ninth", 409, #"{"reason":"TooManySessions","message":"No."}"#)
        let error = try await #require(throws: BackgroundTaskError.self) {
            try await scheduler.transfersFinished(session: "ninth")
        }
        #expect(error.code == .tooManySessions, "\(error)")
    }
}

@Suite("Requests of background tasks", .timeLimit(.minutes(15)))
struct BackgroundTaskRequestTests {
    @Test(
        "A request is written with all its fields",
        arguments: [
            (.appRefresh("a.b"), #"{"identifier":"a.b","kind":"appRefresh"}"#),
            (
                .appRefresh("a.b", earliestBegin: Date(timeIntervalSince1970: 1.5) + .minutes(15)),
                #"{"identifier":"a.b","kind":"appRefresh","earliestBegin":901500}"#
            ),
            (.processing("c"), #"{"identifier":"c","kind":"processing"}"#),
            (
                .processing("c", requiresNetworkConnectivity: true, requiresExternalPower: true),
                #"{"identifier":"c","kind":"processing","requiresNetworkConnectivity":true,"#
                    + #""requiresExternalPower":true}"#
            ),
            (
                .processing(
                    "c",
                    requiresExternalPower: true,
                    earliestBegin: Date(timeIntervalSince1970: 0) + .hours(1)
                ),
                #"{"identifier":"c","kind":"processing","earliestBegin":3600000,"requiresExternalPower":true}"#
            ),
            (.continued("e"), #"{"identifier":"e","kind":"continued"}"#),
            (
                .continued("e", title: "A\"b", subtitle: "c", strategy: .fail, requiredResources: .gpu),
                #"{"identifier":"e","kind":"continued","title":"A\"b","subtitle":"c","strategy":"fail","#
                    + #""resources":["gpu"]}"#
            ),
        ] as [(BackgroundTaskRequest, String)]
    )
    func written(request: BackgroundTaskRequest, text: String) throws {
        #expect(String(decoding: try request.json(), as: UTF8.self) == text)
    }

    @Test("An invalid request is refused with the wrong field, and is not sent")
    func bad() async throws {
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t", devices: ["ab"])
        let faults: [(BackgroundTaskRequest, String)] = [
            (.appRefresh(""), "identifier"), (.processing("a b"), "identifier"),
            (.appRefresh("a", earliestBegin: Date(timeIntervalSince1970: -1)), "earliestBegin"),
            (.appRefresh("a", earliestBegin: Date(timeIntervalSince1970: .infinity)), "earliestBegin"),
            (.continued("a", title: String(repeating: "é", count: 129)), "title"),
            (.continued("a", subtitle: String(repeating: "s", count: 257)), "subtitle"),
        ]
        for (request, field) in faults {
            let error = try await #require(throws: BackgroundTaskError.self, "\(request)") {
                try await worker.scheduler.submit(request)
            }
            #expect(error.code == .badTaskRequest && error.message.contains(field), "\(error)")
        }
        for (session, count, id) in [("a b", 1, "x"), ("a", 0, "x"), ("a", 100_001, "x"), ("a", 1, "")] {
            let error = try await #require(throws: BackgroundTaskError.self, "\(session) \(count) \(id)") {
                try await worker.scheduler.transfersFinished(session: session, count: count, id: id)
            }
            #expect(error.code == .badTaskRequest, "\(error)")
        }
    }

    @Test("A worker without its own device says how to name one", arguments: [0, 2])
    func device(count: Int) async throws {
        let devices = Array(repeating: String(repeating: "ab", count: 16), count: count)
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t", devices: devices)
        let error = try await #require(throws: BackgroundTaskError.self) { try await worker.scheduler.cancelAll() }
        #expect(error.code == .noDevice && error.message.contains("scheduler(for:"), "\(error)")
    }

    @Test("Answers are read")
    func answers() throws {
        let submission = try JSONReader.read(
            #"{"identifier":"a","kind":"processing","disposition":"replaced","eligibleAt":1500,"held":"power"}"#
        )
        let read = try #require(BackgroundTaskSubmission(submission))
        #expect(read.identifier == "a" && read.disposition == .replaced && read.held == "power")
        #expect(read.eligibleAt == Date(timeIntervalSince1970: 1.5))
        let launched = try JSONReader.read(
            #"{"identifier":"a","disposition":"launched","eligibleAt":null,"held":null}"#
        )
        #expect(BackgroundTaskSubmission(launched)?.eligibleAt == nil)
        #expect(try BackgroundTaskSubmission(JSONReader.read(#"{"identifier":"a"}"#)) == nil)
        let pending = try JSONReader.read(
            #"""
            {"identifier":"a","kind":"processing","submittedAt":2000,"earliestBegin":3000,"attempts":1,
            "requiresExternalPower":true,"eligibleAt":null,"held":"power","why":"It waits for power."}
            """#
        )
        let request = try #require(PendingTaskRequest(pending))
        #expect(request.identifier == "a" && request.kind == .processing && request.attemptCount == 1)
        #expect(request.requiresExternalPower && !request.requiresNetworkConnectivity && request.eligibleAt == nil)
        #expect(request.submittedAt == Date(timeIntervalSince1970: 2))
        #expect(request.earliestBegin == Date(timeIntervalSince1970: 3))
        #expect(request.held == "power" && request.why == "It waits for power.")
    }
}

@Suite("Registered handlers of background tasks", .timeLimit(.minutes(15)))
struct BackgroundTaskTableTests {
    private static func name(_ text: String, isSession: Bool = false) -> BackgroundTaskName {
        BackgroundTaskName(text, isSession: isSession)
    }

    @Test("An exact identifier precedes all patterns, and of those the longest wins")
    func closest() throws {
        var table = BackgroundTaskTable<Int>()
        for (number, text) in ["com.a.b", "com.a.b.*", "com.a.*", "com.*"].enumerated() {
            try table.register(Self.name(text), number)
        }
        try table.register(Self.name("com.a.b", isSession: true), 9)
        let found = ["com.a.b", "com.a.b.c", "com.a.b.c.d", "com.a.c", "com.b", "com.", "com", "org.a", "com.a.b."]
            .map { table.handler(for: Self.name($0)) }
        #expect(found == [0, 1, 1, 2, 3, nil, nil, nil, 2])
        #expect(table.handler(for: Self.name("com.a.b", isSession: true)) == 9)
        #expect(table.handler(for: Self.name("com.a.c", isSession: true)) == nil)
        #expect(table.names(ofSessions: false) == ["com.*", "com.a.*", "com.a.b", "com.a.b.*"])
        #expect(table.names(ofSessions: true) == ["com.a.b"])
    }

    @Test(
        "An invalid identifier or pattern is refused and quoted",
        arguments: ["", ".*", "a*", "a.*.b", "a b", "é", "*"]
    )
    func unusable(text: String) throws {
        var table = BackgroundTaskTable<Int>()
        let error = try #require(throws: WakeWorkerError.self) { try table.register(Self.name(text), 1) }
        #expect(error.code == .badArgument && error.message.contains("\"\(text)\""), "\(error)")
    }

    @Test("An identifier is 255 characters long at most, and a pattern too")
    func length() throws {
        var table = BackgroundTaskTable<Int>()
        let longest = String(repeating: "a", count: 255)
        try table.register(Self.name(longest), 1)
        try table.register(Self.name("\(longest.dropLast(2)).*"), 1)
        #expect(throws: WakeWorkerError.self) { try table.register(Self.name(longest + "a"), 1) }
        #expect(throws: WakeWorkerError.self) { try table.register(Self.name("\(longest.dropLast()).*"), 1) }
    }

    @Test("A second handler for a name is an error with the name; tasks and sessions have separate names")
    func twice() throws {
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t")
        try worker.backgroundTask(.appRefresh("com.example.a")) { _ in }
        try worker.backgroundTask(.urlSession("com.example.a")) { _ in }
        for again in [
            BackgroundTask.appRefresh("com.example.a"), .processing("com.example.a"), .urlSession("com.example.a"),
        ] {
            let error = try #require(throws: WakeWorkerError.self, "\(again)") {
                try worker.backgroundTask(again) { _ in }
            }
            #expect(error.code == .duplicateTask && error.message.contains("com.example.a"), "\(error)")
        }
        #expect(throws: WakeWorkerError.self) {
            try worker.scheduler.register(forTaskWithIdentifier: "com.example.a") { _ in }
        }
    }

    @Test("So many names are the most")
    func many() throws {
        var table = BackgroundTaskTable<Int>()
        for number in 0..<BackgroundTaskTable<Int>.namesMax { try table.register(Self.name("a\(number)"), number) }
        try table.register(Self.name("a", isSession: true), 0)
        #expect(throws: WakeWorkerError.self) { try table.register(Self.name("one-more"), 1) }
    }

    @Test("A run with nothing to do is an error, and a run that is cancelled as it begins ends without one")
    func idle() async throws {
        let idle = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t")
        let error = await #expect(throws: WakeWorkerError.self) { try await idle.runTasks() }
        #expect(error?.code == .badArgument)
        let run = Task { try await idle.run { _ in .noData } }
        run.cancel()
        try await run.value
    }
}
