import Engine
import Gateway
import HTTPClient
import HTTPTransport
import Testing
import Wire

@Suite("The streams of those who follow what happens", .timeLimit(.minutes(15)))
struct EventFeedTests {
    /// What a stream was told so far.
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

    @Test("A stream tells what is taken and what the edge and the engine refuse, and a filtered one its part of that")
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

    @Test("As many follow as may, one more is refused by name, and may come when another has gone")
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

    @Test("What the loop was too slow for is told as a count, and what comes then as ever")
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
