import Engine
import Gateway
import HTTPTransport
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("The log of a device's events", .timeLimit(.minutes(15)))
struct EventLogTests {
    private static let number = HistoryEvent.device(of: EngineRig.token(1), EngineRig.historyKey)

    /// Returns the answer about a device with a history of pushes, a task and a session.
    private static func ask(_ selection: EventSelection) throws -> EngineOutput {
        let file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        func append(_ kind: HistoryEvent.Kind, _ milliseconds: Int64, name: String? = nil, apnsID: APNsID? = nil) {
            var events: [HistoryEvent] = []
            let at = Instant(milliseconds: milliseconds)
            if let name { NameParts.append(name, device: Self.number, at: at, to: &events) }
            events.append(HistoryEvent(device: Self.number, at: at, kind: kind, apnsID: apnsID))
            file.append(events[...])
        }
        let (push, task, session) = (EngineRig.apnsID(1), "com.example.app.refresh", "downloads")
        append(.registered, 1)
        append(.push(.launched), 2, apnsID: push)
        append(.launch(.push, attempt: 1, coalesced: 0), 2, apnsID: push)
        append(.taskSubmitted(.appRefresh, .scheduled), 3, name: task)
        append(.conditions, 4)
        append(.launch(.appRefresh, attempt: 2), 5, name: task)
        append(.extended(.appRefresh, seconds: 20), 6, name: task)
        append(.result(.task(.appRefresh, .success)), 7, name: task)
        append(.transfersFinished(count: 1), 8, name: session)
        append(.launch(.urlSession, attempt: 1), 9, name: session)
        append(.result(.task(.urlSession, .lost)), 9)
        append(.discard(.continued, .replaced), 10, name: String(repeating: "x", count: 255))
        let topic = EngineRig.topicName(0)
        return try self.answer(.events(EngineRig.token(1), topic: topic, selection, for: .gateway), file)
    }

    private static func answer(
        _ subject: HistoryQuestion.Subject,
        _ source: any HistorySource
    ) throws -> EngineOutput {
        let loop = LoopMailbox()
        loop.attach {}
        HistoryQuestion(1, about: subject).answer(from: source, PerOutput(loop))
        return try #require(EngineOutput.all(from: loop).first)
    }

    private static func events(_ answer: EngineOutput) -> [JSONValue] { answer.value(["events"])?.elements ?? [] }

    /// Returns the events, each as time, name, kind, subject and detail.
    private static func lines(_ answer: EngineOutput) -> [String] {
        self.events(answer).map { event in
            ["at", "event", "kind", "apnsID", "task", "session", "detail"].map { name in
                event[name].map { $0.text ?? $0.described } ?? "-"
            }.joined(separator: " ")
        }
    }

    @Test("All events are listed, newest first, with the identifiers of tasks and the names of sessions")
    func all() throws {
        let answer = try Self.ask(EventSelection())
        let push = GatewayEngineRig.apnsID(1)
        #expect(
            Self.lines(answer) == [
                "1010 discard continued null \(String(repeating: "x", count: 255)) - replaced",
                "1009 result urlSession null - null lost",
                "1009 launch urlSession null - downloads attempt 1",
                "1008 finished urlSession null - downloads 1 transfer",
                "1007 result appRefresh null com.example.app.refresh - success",
                "1006 extended appRefresh null com.example.app.refresh - 20 s left",
                "1005 launch appRefresh null com.example.app.refresh - attempt 2",
                "1004 conditions - null - - null",
                "1003 submit appRefresh null com.example.app.refresh - scheduled",
                "1002 launch - \(push) - - attempt 1, coalesced 0",
                "1002 push - \(push) - - launched",
                "1001 registered - null - - null",
            ]
        )
        #expect(answer.value(["next"]) == .null)
        #expect(answer.string("token") == EngineRig.token(1).hex)
    }

    @Test(
        "Events of one kind may be asked for alone",
        arguments: [(nil, 12), (.push, 2), (.task, 8), (.conditions, 1)] as [(EventSelection.Kind?, Int)]
    )
    func kinds(kind: EventSelection.Kind?, count: Int) throws {
        var selection = EventSelection()
        selection.kind = kind
        let lines = Self.lines(try Self.ask(selection))
        #expect(lines.count == count && Set(lines).count == count, "\(lines)")
    }

    @Test(
        "Subscriptions are between a device's events, on pages of any size, and may be asked for alone",
        arguments: [1, 2, 3, 4, 5, 7, 64, 100],
        [nil, .subscription] as [EventSelection.Kind?]
    )
    func subscriptions(limit: Int, kind: EventSelection.Kind?) throws {
        let file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        let topic = EngineRig.topicName(0)
        let streams = [nil, EngineRig.token(1)].map { HistoryEvent.streams(topic, naming: $0, EngineRig.historyKey) }
        func append(_ device: UInt64, _ kind: HistoryEvent.Kind, _ milliseconds: Int, _ name: String) {
            var events: [HistoryEvent] = []
            let at = Instant(milliseconds: Int64(milliseconds))
            NameParts.append(name, device: device, at: at, to: &events)
            events.append(HistoryEvent(device: device, at: at, kind: kind))
            file.append(events[...])
        }
        let long = String(repeating: "name", count: 20)
        for number in 0..<30 { append(streams[number % 2], .subscribed, 1 + number / 3, "\(number)\(long)") }
        for number in 0..<5 { append(Self.number, .launch(.appRefresh, attempt: 1), 1 + 2 * number, "\(number)") }
        for number in 30..<60 { append(streams[number % 2], .subscribed, 1 + number / 3, "\(number)\(long)") }
        var selection = EventSelection()
        (selection.limit, selection.kind) = (limit, kind)
        var events: [JSONValue] = []
        repeat {
            let answer = try Self.answer(.events(EngineRig.token(1), topic: topic, selection, for: .gateway), file)
            events += Self.events(answer)
            selection.before = answer.string("next").flatMap { HistoryCursor($0) }
        } while selection.before != nil && events.count < 100
        let times = events.compactMap { $0["at"]?.integer }
        #expect(times == times.sorted(by: >))
        #expect(events.compactMap { $0["task"]?.text } == (kind == nil ? ["4", "3", "2", "1", "0"] : []))
        let details = events.filter { $0["event"]?.text == "subscribed" }.compactMap { $0["detail"]?.text }
        #expect(details.count == 60 && Set(details) == Set((0..<60).map { "\($0)\(long)" }))
    }

    @Test("A page for an operator of some topics begins at the last registration, and does not read the whole history")
    func ofTopic() throws {
        let file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        for milliseconds in 1...1000 as ClosedRange<Int64> {
            let kind = milliseconds == 5 ? HistoryEvent.Kind.registered : .conditions
            file.append(HistoryEvent(device: Self.number, at: Instant(milliseconds: milliseconds), kind: kind))
        }
        let caller = try Caller.ofTopics([0])
        var selection = EventSelection()
        selection.limit = 10
        for (registeredAt, until, count) in [(5, nil, 10), (5, 1010, 5), (nil, 1010, 5)] as [(Int64?, Int64?, Int)] {
            let source = CountedSource(file)
            selection.until = until
            let subject = HistoryQuestion.Subject.events(
                EngineRig.token(1),
                topic: EngineRig.topicName(0),
                registeredAt: registeredAt.map { Instant(milliseconds: $0) },
                selection,
                for: caller
            )
            #expect(Self.events(try Self.answer(subject, source)).count == count)
            #expect(source.visited.count < 20 || registeredAt == nil)
        }
    }

    @Test("A list of pushes reads the events of one device at a time")
    func deviceByDevice() {
        let file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        for number in 0..<12 as Range<UInt64> {
            let at = Instant(milliseconds: Int64(number))
            let push = EngineRig.apnsID(number)
            file.append(HistoryEvent(device: number % 4, at: at, kind: .push(.scheduled), apnsID: push))
        }
        let source = CountedSource(file)
        let pushes = source.pushes(behind: nil, notBefore: .distantPast, countMax: 100).pushes
        var devices: Set<UInt64> = []
        source.visitDevices(since: pushes) { events in
            #expect(events.count == 3)
            for event in events { devices.insert(event.device) }
            #expect(Set(source.visited) == devices, "another device was read before this one was taken")
        }
        #expect(devices == [0, 1, 2, 3])
    }

    @Test("A position reads back as written, and malformed positions are refused")
    func places() {
        for text in ["0.1", "1795249122000.12", "-5.3"] { #expect(HistoryCursor(text)?.text == text) }
        let others = [
            "", ".", "1", "1.", ".1", "1.0", "1.-1", "1.2.3", "x.1", "1.x", "+1.1", "1.01", "1.+1",
            "1000000000000000000.1",
        ]
        for text in others {
            #expect(HistoryCursor(text) == nil, "\(text)")
        }
    }

    @Test("A device's pushes are listed though far more happened to its tasks")
    func pushes() throws {
        let file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        let push = EngineRig.apnsID(1)
        file.append(
            HistoryEvent(device: Self.number, at: Instant(milliseconds: 0), kind: .push(.scheduled), apnsID: push)
        )
        for milliseconds in 1...1000 as ClosedRange<Int64> {
            var events: [HistoryEvent] = []
            let at = Instant(milliseconds: milliseconds)
            NameParts.append("com.example.app.refresh", device: Self.number, at: at, to: &events)
            events.append(HistoryEvent(device: Self.number, at: at, kind: .result(.task(.appRefresh, .success))))
            file.append(events[...])
        }
        let answer = try Self.answer(.pushes(EngineRig.token(1), for: .gateway), file)
        #expect(answer.value(["pushes"])?.elements.count == 1)
    }
}

/// A history that records the device of each event that it passes on.
private final class CountedSource: HistorySource {
    private let file: HistoryFile
    private(set) var visited: [UInt64] = []

    init(_ file: HistoryFile) {
        self.file = file
    }

    func visit(device: UInt64, notAfter latest: Instant, _ body: (HistoryEvent) -> Bool) {
        self.file.visit(device: device, notAfter: latest) { event in
            self.visited.append(event.device)
            return body(event)
        }
    }

    func entries(devices: some Collection<UInt64>, since oldest: Instant, countEach: Int) -> LoggedEntries {
        self.file.entries(devices: devices, since: oldest, countEach: countEach)
    }

    func push(_ apnsID: APNsID) -> [HistoryEvent] { self.file.push(apnsID) }

    func pushes(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) -> LoggedPushes {
        self.file.pushes(behind: place, notBefore: oldest, countMax: countMax)
    }
}

@Suite("The delivery log of a push", .timeLimit(.minutes(15)))
struct DeliveryLogTests {
    @Test("A launched and answered push is completed step by step, visible right after its 200")
    func completed() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.push(1, 1) }
        let waiting = try rig.ask(2) { $0.way(2, of: 1) }
        #expect(waiting.status == 200)
        #expect(waiting.string("apnsID") == GatewayEngineRig.apnsID(1) && waiting.string("state") == "pending")
        #expect(waiting.steps == [["received", "scheduled", ""]])
        #expect(try #require(waiting.integer("receivedAt")) > 1_700_000_000_000)
        try rig.ask(3) { $0.subscribe(3) }
        try rig.waitForWakes(1)
        #expect(try rig.ask(4) { $0.way(4, of: 1) }.string("state") == "inFlight")
        let wake = try rig.lastWake()
        try rig.ask(5) { $0.report(5, wake, .noData) }
        let ended = try rig.ask(6) { $0.way(6, of: 1) }
        #expect(ended.string("state") == "completed")
        let steps = [
            ["received", "scheduled", ""], ["launched", "attempt 1, coalesced 0", ""], ["result", "noData", ""],
        ]
        #expect(ended.steps == steps)
    }

    @Test("A coalesced push names the one it went into, which names it in turn")
    func coalesced() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1...2) {
            $0.push(1, 1)
            $0.push(2, 1)
        }
        let older = try rig.ask(3) { $0.way(3, of: 1) }
        #expect(older.string("state") == "coalesced" && older.string("into") == GatewayEngineRig.apnsID(2))
        #expect(older.steps.last == ["coalesced", "", GatewayEngineRig.apnsID(2)])
        let newer = try rig.ask(4) { $0.way(4, of: 2) }
        #expect(newer.string("state") == "pending" && newer.string("into") == nil)
        #expect(newer.steps == [["received", "coalesced", ""], ["absorbed", "", GatewayEngineRig.apnsID(1)]])
    }

    @Test("A push that fails while another is pending is coalesced into that one")
    func failed() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.subscribe(1) }
        try rig.ask(2) { $0.push(2, 1) }
        try rig.waitForWakes(1)
        let wake = try rig.lastWake()
        try rig.ask(3...4) {
            $0.push(3, 1)
            $0.report(4, wake, .failed)
        }
        let failed = try rig.ask(5) { $0.way(5, of: 2) }
        #expect(failed.string("state") == "coalesced" && failed.string("into") == GatewayEngineRig.apnsID(3))
        #expect(failed.steps.suffix(2) == [["result", "failed", ""], ["coalesced", "", GatewayEngineRig.apnsID(3)]])
        let heir = try rig.ask(6) { $0.way(6, of: 3) }
        #expect(heir.steps == [["received", "scheduled", ""], ["absorbed", "", GatewayEngineRig.apnsID(2)]])
        #expect(heir.string("state") == "pending")
    }

    @Test("A discarded push has a reason, a push without a wake says so, and an unknown one is a 404")
    func others() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1...4) {
            $0.push(1, 1, expiration: 0)
            $0.push(2, 1, wakes: false)
            $0.push(3, 1)
            $0.unregister(4, 1)
        }
        let ways = try rig.ask(5...8) {
            $0.way(5, of: 1)
            $0.way(6, of: 2)
            $0.way(7, of: 3)
            $0.way(8, of: 99)
        }
        #expect(ways.prefix(3).map { $0.string("state") } == ["discarded", "noWake", "discarded"])
        #expect(ways.prefix(3).map { $0.string("reason") } == ["expired", nil, "unregistered"])
        #expect(ways[3].status == 404 && ways[3].string("reason") == "UnknownPush")
    }

    @Test("One name on two devices means two pushes: the last one is shown, or that of the named device")
    func twoDevices() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1...3) {
            $0.push(1, 1, clientID: 700)
            $0.push(2, 2, clientID: 700)
            $0.unregister(3, 1)
        }
        let ways = try rig.ask(4...7) {
            $0.way(4, of: 700)
            $0.way(5, of: 700, device: 2)
            $0.way(6, of: 700, device: 1)
            $0.way(7, of: 700, device: 3)
        }
        #expect(ways.prefix(3).map { $0.string("state") } == ["discarded", "pending", "discarded"])
        #expect(ways[1].steps == [["received", "scheduled", ""]])
        #expect(ways[3].status == 404)
    }

    @Test("A device's last pushes are listed, newest first and at most 32, each with its state, and its last 32 events")
    func list() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1...40) { for request in 1...40 { $0.push(request, 1) } }
        let answers = try rig.ask(41...43) {
            $0.devicePushes(41, 1)
            $0.devicePushes(42, 9)
            $0.explain(43, 1)
        }
        let pushes = answers[0].value(["pushes"])?.elements ?? []
        #expect(pushes.map { $0["apnsID"]?.text } == (9...40).reversed().map { GatewayEngineRig.apnsID($0) })
        #expect(pushes.first?["state"]?.text == "pending")
        #expect(pushes.dropFirst().allSatisfy { $0["state"]?.text == "coalesced" })
        #expect(pushes.dropFirst().first?["into"]?.text == GatewayEngineRig.apnsID(40))
        #expect(answers[0].string("token")?.count == 64)
        #expect(answers[1].status == 404 && answers[1].string("reason") == "UnknownDevice")
        #expect(answers[2].recent.map { $0[1] } == (9...40).reversed().map { GatewayEngineRig.apnsID($0) })
    }
}
