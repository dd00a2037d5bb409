import Synchronization
import Testing
import WakeGateTestKit
import WakeWorker
import Wire

@Suite("A worker that handles background tasks", .serialized, .timeLimit(.minutes(15)))
struct BackgroundTaskRunTests {
    private struct Fault: Error {}

    @Test("A subscription names the handlers; each wake gets its handler, a scheduler of its device, and its outcome")
    func outcomes() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker(resources: .gpu)
        let seen = Mutex<[String: BackgroundTaskContext]>([:])
        for task in [BackgroundTask.appRefresh("com.a"), .processing("com.export.*"), .urlSession("photos")] {
            try worker.backgroundTask(task) { context in
                seen.withLock { $0[context.id] = context }
                if context.id == "bad" { throw Fault() }
                if context.id == "good" { try await context.scheduler.submit(.appRefresh(context.identifier)) }
            }
        }
        let run = Task { try await worker.runTasks() }
        let query = "task=com.a&task=com.export.*&session=photos&push=0&resource=gpu"
        #expect(try await gateway.request("/wakes").path == "/v1/topics/t/wakes?slots=4&name=n&\(query)")

        try await gateway.answer("POST", "/tasks", 201, #"{"identifier":"com.a","disposition":"scheduled"}"#)
        try await gateway.wake("good", "appRefresh", #""task":"com.a","traceparent":"00-a-b-01""#)
        let submitted = try await gateway.request("/tasks")
        #expect(submitted.path == "/v1/devices/\(String(repeating: "ab", count: 16))/tasks")
        #expect(try await gateway.request("/v1/wakes/good").body == #"{"success":true}"#)
        try await gateway.wake("bad", "processing", #""task":"com.export.film""#)
        #expect(try await gateway.request("/v1/wakes/bad").body == #"{"success":false}"#)
        try await gateway.wake("done", "urlSession", #""session":"photos","count":7"#)
        #expect(try await gateway.request("/v1/wakes/done").body == #"{"success":true}"#)
        let contexts = seen.withLock { $0 }
        let (good, bad) = (try #require(contexts["good"]), try #require(contexts["bad"]))
        #expect(good.kind == .appRefresh && good.identifier == "com.a" && good.attempt == 2 && good.submittedAt == 7)
        #expect(good.deviceToken == String(repeating: "ab", count: 16) && good.expirationReason == nil)
        #expect(good.timeLeft > .seconds(1) && good.timeLeft <= .seconds(600))
        #expect(good.traceparent == "00-a-b-01" && good.tracestate == nil && bad.traceparent == nil)
        #expect(bad.kind == .processing && bad.identifier == "com.export.film")
        #expect(contexts["done"]?.identifier == "photos" && contexts["done"]?.finishedTransferCount == 7)
        try await gateway.end(worker, run)
    }

    @Test("A subscription's warning is an event, and is not repeated while it stays the same")
    func warnings() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        try worker.backgroundTask(.appRefresh("com.a")) { _ in }
        let warning = "task-not-permitted; t does not permit com.a; permit it"
        try await gateway.answer("GET", "/wakes", 200, headers: ["wakegate-warning": warning])
        try await gateway.answer("GET", "/wakes", 200, headers: ["wakegate-warning": warning])
        let run = Task { try await worker.runTasks() }
        let first = try await gateway.request("/wakes")
        try await gateway.endStream()
        #expect(try await gateway.request("/wakes").path == first.path)
        // An answer to a wake shows that the worker has started its second stream.
        try await gateway.wake("w", "appRefresh", #""task":"com.a""#)
        try await gateway.request("/v1/wakes/w")
        let events = try await gateway.events(of: worker, run)
        #expect(events.count { if case .subscribed = $0 { true } else { false } } == 2)
        #expect(events.compactMap { if case .warned(let text) = $0 { text } else { nil } } == [warning])
    }

    @Test("Pushes and tasks arrive on one stream, each with its answer; unhandled wakes are ignored")
    func both() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        try worker.backgroundTask(.appRefresh("com.a")) { _ in }
        let run = Task { try await worker.run { _ in .noData } }
        #expect(try await gateway.request("/wakes").path.hasSuffix("&task=com.a"))
        try await gateway.wake("other", "appRefresh", #""task":"com.b""#)
        try await gateway.wake("push", "push", #""payload":{}"#)
        #expect(try await gateway.request("/v1/wakes/push").body == #"{"result":"noData"}"#)
        try await gateway.wake("task", "appRefresh", #""task":"com.a""#)
        #expect(try await gateway.request("/v1/wakes/task").body == #"{"success":true}"#)
        var (refused, delivered): ([String], [String]) = ([], [])
        for event in try await gateway.events(of: worker, run) {
            switch event {
            case .refused(let wake, _): refused.append(wake)
            case .delivered(let wake, .noData), .taskDelivered(let wake, true): delivered.append(wake)
            default: break
            }
        }
        #expect(refused == ["other"] && delivered == ["push", "task"])
    }

    @Test("Each reason of the gateway has its case")
    func reasons() {
        let known = BackgroundTaskExpiration.allCases.map(\.rawValue)
        #expect(known == ExpirationReason.allCases.map(\.rawValue))
    }

    @Test("A task that asks for more time gets it")
    func extended() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let left = Mutex<Duration?>(nil)
        try worker.backgroundTask(.processing("com.a")) { context in
            let granted = try await context.extend(by: .seconds(90))
            left.withLock { $0 = granted }
            try #require(context.timeLeft > .seconds(60))
        }
        try await gateway.answer("POST", "/w/extend", 200, #"{"timeLeft":90000}"#)
        let run = try await gateway.run(worker)
        try await gateway.wake("w", "processing", #""task":"com.a""#)
        #expect(try await gateway.request("/w/extend").body == #"{"seconds":90}"#)
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":true}"#)
        #expect(left.withLock { $0 } == .seconds(90))
        try await gateway.end(worker, run)
    }

    @Test("Handlers with callbacks complete their tasks, or fail by silence")
    func callbacks() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let (expirations, source) = AsyncStream<Void>.makeStream()
        let held = Mutex<[ScheduledTask]>([])
        try worker.scheduler.register(forTaskWithIdentifier: "com.*") { task in
            switch task.identifier {
            case "com.good": task.setTaskCompleted(success: true)
            case "com.bad": task.setTaskCompleted(success: false)
            case "com.late":
                task.expirationHandler = {
                    // As on iOS, this call is too late to have an effect.
                    task.setTaskCompleted(success: true)
                    source.finish()
                }
                held.withLock { $0.append(task) }
            default: break
            }
        }
        let run = try await gateway.run(worker)
        for (name, outcome) in [("good", true), ("bad", false), ("silent", false)] {
            try await gateway.wake(name, "appRefresh", #""task":"com.\#(name)""#)
            #expect(try await gateway.request("/v1/wakes/\(name)").body == #"{"success":\#(outcome)}"#)
        }
        try await gateway.wake("late", "appRefresh", #""task":"com.late""#)
        for await event in worker.events { if case .started("late") = event { break } }
        try await gateway.send("expired", #"{"wake":"late","reason":"deadline"}"#)
        for await _ in expirations {}
        #expect(try await gateway.request("/v1/wakes/late").body == #"{"success":false}"#)
        try await gateway.end(worker, run)
    }

    @Test("Changed conditions are delivered to a worker that asked for them")
    func conditions() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let changes = worker.conditionsChanges
        let run = Task { try await worker.run { _ in .noData } }
        #expect(try await gateway.request("/wakes").path.hasSuffix("&name=n&conditions=1"))
        let fields = #""appState":"active","batteryLevel":0.5,"charging":true,"lowPowerMode":false,"network":true"#
        try await gateway.send("conditions", #"{"device":"ab",\#(fields),"thermalState":"fair"}"#)
        for await change in changes {
            #expect(change.deviceToken == "ab" && change.conditions.appState == .active)
            #expect(change.conditions.batteryLevel == 0.5 && change.conditions.thermalState == .fair)
            break
        }
        try await gateway.end(worker, run)
    }
}
