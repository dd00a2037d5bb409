import Testing
import WakeWorker

@Suite("What handlers of background tasks are registered for", .timeLimit(.minutes(15)))
struct BackgroundTaskTableTests {
    private static func name(_ text: String, isSession: Bool = false) -> BackgroundTaskName {
        BackgroundTaskName(text, isSession: isSession)
    }

    @Test("An identifier of its own counts before all patterns, and of those the longest")
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
        "What is no identifier or pattern is refused, and named",
        arguments: ["", ".*", "a*", "a.*.b", "a b", "é", "*"]
    )
    func unusable(text: String) {
        var table = BackgroundTaskTable<Int>()
        do throws(WakeWorkerError) {
            try table.register(Self.name(text), 1)
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .badArgument && error.message.contains("\"\(text)\""), "\(error)")
        }
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

    @Test("One name has one handler, and the error names it; tasks and sessions are two things")
    func twice() throws {
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t")
        try worker.backgroundTask(.appRefresh("com.example.a")) { _ in }
        try worker.backgroundTask(.urlSession("com.example.a")) { _ in }
        for again in [
            BackgroundTask.appRefresh("com.example.a"), .processing("com.example.a"), .urlSession("com.example.a"),
        ] {
            do throws(WakeWorkerError) {
                try worker.backgroundTask(again) { _ in }
                Issue.record("\(again) was taken twice")
            } catch {
                #expect(error.code == .duplicateTask && error.message.contains("com.example.a"), "\(error)")
            }
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

    @Test("A handler that is registered after the worker has run is an error, and so is a run with nothing to do")
    func late() async throws {
        let idle = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t")
        await #expect(throws: WakeWorkerError.self) { try await idle.runTasks() }
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t")
        let run = Task { try await worker.run { _ in .noData } }
        run.cancel()
        try await run.value
        do throws(WakeWorkerError) {
            try worker.backgroundTask(.processing("com.example.late")) { _ in }
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .alreadyRunning && error.message.contains("com.example.late"), "\(error)")
        }
    }

    @Test("A subscription says what its worker takes")
    func offer() {
        let pushes = SubscriptionOffer(tasks: [], sessions: [], takesPushes: true, wantsConditions: false)
        #expect(pushes.query.isEmpty)
        let tasks = SubscriptionOffer(tasks: ["a", "b.*"], sessions: ["s"], takesPushes: false, wantsConditions: true)
        #expect(tasks.query == ["task=a", "task=b.*", "session=s", "push=0", "conditions=1"])
    }
}
