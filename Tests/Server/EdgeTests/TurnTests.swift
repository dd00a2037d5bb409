import Engine
import Gateway
import HTTPClient
import HTTPTransport
import Platform
import Synchronization
import Testing
import Wire

@Suite("A loop's messages to the engine", .timeLimit(.minutes(15)))
struct EngineOutboxTests {
    private let mailbox = Mailbox<CommandBatch>()

    /// Returns the number of answers due for the batch handed over since the last call; nil if there was none.
    private func taken() -> Int? {
        var batch = CommandBatch()
        _ = self.mailbox.take(into: &batch, waitingAtMost: 0)
        return batch.isEmpty ? nil : batch.answersDue
    }

    private func append(_ outbox: EngineOutbox) {
        let stream = LoopStream(loop: 0, connectionIndex: 0, connectionGeneration: 1, number: 1)
        outbox.append(Push(), from: .stream(stream))
    }

    @Test("Messages are sent at the end of the turn, and not before")
    func turn() {
        let outbox = EngineOutbox(self.mailbox, window: PushWindow(maximum: 512))
        outbox.reject(.badTopic, APNsID(random: (1, 2))) { nil }
        #expect(self.taken() == nil)
        outbox.handOver()
        #expect(self.taken() == 0)
        outbox.handOver()
        #expect(self.taken() == nil)
    }

    @Test("Pushes count from the end of their turn until they are answered, and nothing else does")
    func pushes() {
        let outbox = EngineOutbox(self.mailbox, window: PushWindow(maximum: 512))
        for _ in 0..<3 { self.append(outbox) }
        outbox.append(.requireWorkerAuthentication)
        #expect(outbox.pushesAtEngine == 0)
        outbox.handOver()
        #expect(outbox.pushesAtEngine == 3 && self.taken() == 3)
        outbox.pushAnswered()
        self.append(outbox)
        outbox.handOver()
        #expect(outbox.pushesAtEngine == 3 && self.taken() == 1)
    }

    @Test("A push of a quiet topic lowers the limit, and ends the store's rest with its own batch only")
    func quietTopic() {
        let outbox = EngineOutbox(self.mailbox, window: PushWindow(maximum: 512))
        var batch = CommandBatch()
        func takeEndsRest() -> Bool {
            batch.removeAll()
            _ = self.mailbox.take(into: &batch, waitingAtMost: 0)
            return batch.endsBatch
        }
        self.append(outbox)
        outbox.handOver()
        self.append(outbox)
        outbox.quietPushCame(now: 0)
        outbox.handOver()
        #expect(takeEndsRest() && batch.answersDue == 2 && outbox.window.count(now: 0) == PushWindow.quietLimitMin)
        self.append(outbox)
        outbox.handOver()
        #expect(!takeEndsRest() && batch.answersDue == 1)
    }

    @Test("Short batches are run by the loop while the engine's thread sleeps, and others by the thread")
    func stepping() throws {
        let steps = Mutex<[Int]>([])
        let mailbox = self.mailbox
        let thread = try NamedThread("engine") {
            var batch = CommandBatch()
            mailbox.lend { batch in
                steps.withLock { $0.append(batch.answersDue) }
                batch.removeAll()
                return 600_000
            }
            while mailbox.take(into: &batch, waitingAtMost: 600_000) { batch.removeAll() }
            mailbox.lend(nil)
        }
        let outbox = EngineOutbox(mailbox, window: PushWindow(maximum: 512))
        var count = 0
        func isStepped(_ pushes: Int, with commands: EngineCommand...) -> Bool {
            let before = steps.withLock { $0.count }
            for _ in 0..<pushes { self.append(outbox) }
            for command in commands { outbox.append(command) }
            var isHere = false
            outbox.handOver {
                $0()
                isHere = true
            }
            count += pushes
            return isHere && steps.withLock { $0.dropFirst(before) } == [pushes]
        }
        // The thread is sometimes running, and then takes the batch itself.
        while !isStepped(3) {}
        while !isStepped(256) {}
        while !isStepped(1, with: .rejected(reason: 0, topic: [])) {}
        #expect(!isStepped(257), "that many are the thread's")
        #expect(!isStepped(1, with: .requireWorkerAuthentication), "and a longer command")
        #expect(outbox.pushesAtEngine == count)
        mailbox.close()
        thread.join()
    }
}

@Suite("Connections that a shutdown has asked to end", .timeLimit(.minutes(15)))
struct GoodbyesTests {
    private let connection = ConnectionID(index: 3, generation: 1)

    private let other = ConnectionID(index: 4, generation: 1)

    @Test("A connection without a request for a second is silent, and a new one is not")
    func silence() {
        var goAways = GoAwayRecord()
        #expect(!goAways.isDraining)
        goAways.begin()
        #expect(goAways.isDraining)
        let seconds = (0..<3).map { _ in goAways.isSilent(self.connection) }
        #expect(seconds == [false, true, true])
        let ofOther = goAways.isSilent(self.other)
        #expect(!ofOther)
    }

    @Test("A connection gets one goodbye, whether seen before or not")
    func told() {
        var goAways = GoAwayRecord()
        goAways.goAwaySent(to: self.connection)
        _ = goAways.isSilent(self.other)
        goAways.goAwaySent(to: self.other)
        let silent = [self.connection, self.other].filter { goAways.isSilent($0) }
        #expect(silent.isEmpty)
    }

    @Test("A new connection at the same index starts fresh")
    func closed() {
        var goAways = GoAwayRecord()
        goAways.goAwaySent(to: self.connection)
        goAways.connectionClosed(self.connection)
        let seconds = (0..<2).map { _ in goAways.isSilent(self.connection) }
        #expect(seconds == [false, true])
        let ofNext = goAways.isSilent(ConnectionID(index: 3, generation: 2))
        #expect(!ofNext)
    }
}

@Suite("How many pushes of a loop may be at the engine", .timeLimit(.minutes(15)))
struct PushWindowTests {
    static let short = PushWindow.shortPauseNanosecondsMax
    static let long = PushWindow.shortPauseNanosecondsMax + 1

    /// A window after a quiet topic's push that arrived at 0.
    private static func quietLimit(maximum: Int) -> PushWindow {
        var window = PushWindow(maximum: maximum)
        window.quietPushCame(now: 0)
        return window
    }

    /// Fills the window, at 0 unless another time is given, so that pauses follow.
    private func pause(_ window: inout PushWindow, _ nanoseconds: Int64, times: Int = 1, at now: Int64 = 0) {
        for number in 0..<Int64(times) {
            window.paused(atLimit: window.count(now: now), now: number * 1_000_000_000)
            window.resumed(now: number * 1_000_000_000 + nanoseconds)
        }
    }

    @Test("The full limit applies, except for a second after each push of a quiet topic")
    func second() {
        var window = PushWindow(maximum: 512)
        #expect(window.count(now: 0) == 512)
        window.quietPushCame(now: 5000)
        #expect(window.count(now: 5000) == 128 && window.count(now: 5999) == 128 && window.count(now: 6000) == 512)
        window.quietPushCame(now: 5900)
        #expect(window.count(now: 6000) == 128)
    }

    @Test("Eight more long pauses than short ones double the limit, up to the maximum")
    func longPauses() {
        var window = Self.quietLimit(maximum: 500)
        self.pause(&window, Self.long, times: 7)
        self.pause(&window, Self.short)
        self.pause(&window, Self.long)
        #expect(window.count(now: 0) == 128)
        self.pause(&window, Self.long)
        #expect(window.count(now: 0) == 256)
        self.pause(&window, Self.long, times: 8)
        #expect(window.count(now: 0) == 500)
        self.pause(&window, Self.long, times: 255)
        #expect(window.count(now: 0) == 500)
    }

    @Test(
        "After 256 pauses above the least limit the least one is tried again, however long they were",
        arguments: [PushWindowTests.short, PushWindowTests.long]
    )
    func leastAgain(length: Int64) {
        var window = Self.quietLimit(maximum: 512)
        self.pause(&window, Self.long, times: 16)
        self.pause(&window, length, times: 255)
        #expect(window.count(now: 0) == 512)
        self.pause(&window, length)
        #expect(window.count(now: 0) == 128)
    }

    @Test("Pauses at the full limit do not count for the lower limit next to a quiet topic's pushes")
    func noisyAlone() {
        var window = Self.quietLimit(maximum: 512)
        self.pause(&window, Self.long, times: 100, at: 1000)
        #expect(window.count(now: 0) == 128)
    }

    @Test("The limit never exceeds the maximum, which can be changed")
    func maximum() {
        var window = Self.quietLimit(maximum: 16)
        self.pause(&window, Self.long, times: 100)
        #expect(window.count(now: 0) == 16 && window.count(now: 1000) == 16)
        window.maximum = 1000
        #expect(window.count(now: 0) == 128 && window.count(now: 1000) == 1000)
        self.pause(&window, Self.long, times: 24)
        #expect(window.count(now: 0) == 1000)
        window.maximum = 512
        #expect(window.count(now: 0) == 512)
        self.pause(&window, Self.long, times: 256)
        #expect(window.count(now: 0) == 128)
    }

    @Test("Next to a quiet topic's pushes the limit stays full if no lower one is set")
    func all() {
        var window = PushWindow(maximum: 512, minimum: .max)
        window.quietPushCame(now: 0)
        self.pause(&window, Self.long, times: 1000)
        #expect(window.count(now: 0) == 512)
    }

    @Test("A loop at its limit reads again when the engine has answered no push for five seconds")
    func stuck() {
        var window = PushWindow(maximum: 512)
        let end = PushWindow.stuckMilliseconds
        #expect(window.turnEnded(isFull: true, now: 0) && window.turnEnded(isFull: true, now: end - 1))
        #expect(!window.isStuck && !window.turnEnded(isFull: true, now: end) && window.isStuck)
        #expect(!window.turnEnded(isFull: false, now: end + 1) && !window.isStuck)
        #expect(window.turnEnded(isFull: true, now: end + 2) && !window.isStuck)
        // An engine that answers some pushes is not stuck, however long the limit is reached.
        window.pushAnswered()
        #expect(window.turnEnded(isFull: true, now: 2 * end + 2) && !window.isStuck)
    }

    @Test("A pause that did not begin does not end")
    func unbegun() {
        var window = Self.quietLimit(maximum: 512)
        for _ in 0..<100 { window.resumed(now: .max) }
        #expect(window.count(now: 0) == 128)
    }
}

@Suite("Event streams", .timeLimit(.minutes(15)))
struct EventFeedTests {
    /// Returns the reports on a stream so far.
    private func news(_ loop: ServedLoop, _ stream: HTTPRequestID) throws -> [LiveNews] {
        var parser = ServerSentEventParser(bytesMax: 1 << 20)
        return try parser.received(loop.answers[stream]?.body ?? []).compactMap {
            LiveNews(name: $0.name, data: $0.data)
        }
    }

    private func events(_ loop: ServedLoop, _ stream: HTTPRequestID) throws -> [LiveEvent] {
        try self.news(loop, stream).compactMap { if case .event(let event) = $0 { event } else { nil } }
    }

    private func open(_ loop: ServedLoop, _ query: String = "") throws -> HTTPRequestID {
        let stream = try loop.open("/v1/events\(query)", at: .admin)
        try loop.run("the greeting") { loop.answers[stream]?.text.hasPrefix(": events follow\n\n") == true }
        return stream
    }

    @Test("A stream has accepted pushes and refusals of edge and engine, and a filtered stream its part of them")
    func told() throws {
        let loop = try ServedLoop()
        let all = try self.open(loop)
        let refusals = try self.open(loop, "?outcome=refused")
        #expect(try loop.push().status == 200)
        #expect(try loop.push([("apns-priority", "7")]).status == 400)
        #expect(try loop.push([("apns-topic", "com.example.other")]).status == 400)
        #expect(try loop.push([("apns-priority", "7"), ("wakegate-dry-run", "1")]).status == 400)
        #expect(try loop.push(body: "{").status == 400)
        try loop.run("three refusals") { (try? self.events(loop, refusals).count) == 3 }
        try loop.run("five events") { (try? self.events(loop, all).count) == 5 }
        let told = try self.events(loop, all)
        #expect(told.map(\.kind) == [.registered, .push, .refused, .refused, .refused])
        #expect(told.allSatisfy { $0.device == ServedLoop.device })
        let reasons = ["BadPriority", "DeviceTokenNotForTopic", "PayloadEmpty"]
        #expect(try self.events(loop, refusals).map(\.reason) == reasons)
        #expect(try self.events(loop, refusals).map(\.topic)[1] == "com.example.other")
        #expect(told.dropFirst().allSatisfy { $0.apnsID != nil })
    }

    @Test("Event streams are limited by eventStreamsMax: one more is refused by that name, until a stream ends")
    func bound() throws {
        let loop = try ServedLoop { $0.limits.eventStreamsMax = 1 }
        let stream = try self.open(loop)
        let refused = try loop.ask("GET /v1/events", at: .admin)
        #expect(refused.status == 503 && refused.header("retry-after") == "5")
        #expect(String(decoding: refused.body, as: UTF8.self).contains("limits.eventStreamsMax"))
        #expect(loop.shared.tally.times(.eventStreamsMax) == 1)
        #expect(loop.shared.services.events.isWatched)
        loop.cancel(stream)
        try loop.run("the end of the first") { !loop.shared.services.events.isWatched }
        _ = try self.open(loop)
        #expect(try loop.ask("GET /v1/events?outcom=push", at: .admin).status == 400)
    }

    @Test("Events that the loop missed are reported as a count, and later events as usual")
    func missed() throws {
        let loop = try ServedLoop { $0.limits.eventsHeldMax = 16 }
        let stream = try self.open(loop)
        var crowd = WatchedEvents()
        for number in 0..<1000 { crowd.append(WatchedEvent(at: Int64(number), kind: .paused, topic: "a")) }
        loop.shared.services.events.take(&crowd)
        try loop.run("the last") { (try? self.events(loop, stream).last?.at) == 999 }
        let news = try self.news(loop, stream)
        guard case .missed(984) = news.first else { return #expect(Bool(false), "\(news.prefix(1))") }
        #expect(news.count == 17)
        #expect(loop.shared.tally.times(.eventsHeldMax) == 1)
    }
}
