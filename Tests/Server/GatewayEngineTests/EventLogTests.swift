import Engine
import Foundation
import Gateway
import HTTPTransport
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("The log of what happened to a device", .timeLimit(.minutes(15)))
struct EventLogTests {
    private static let number = HistoryEvent.device(of: EngineRig.token(1), EngineRig.historyKey)

    /// What a device's history of pushes, a task and a session answers.
    private static func ask(_ selection: EventSelection) throws -> Told {
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
        append(.launch(attempt: 1, coalesced: 0), 2, apnsID: push)
        append(.taskSubmitted(.appRefresh, .scheduled), 3, name: task)
        append(.conditions, 4)
        append(.taskLaunch(.appRefresh, attempt: 2), 5, name: task)
        append(.taskExtended(.appRefresh, seconds: 20), 6, name: task)
        append(.taskResult(.appRefresh, .success), 7, name: task)
        append(.transfersFinished(count: 1), 8, name: session)
        append(.taskLaunch(.urlSession, attempt: 1), 9, name: session)
        append(.taskResult(.urlSession, .lost), 9)
        append(.taskDropped(.continued, .replaced), 10, name: String(repeating: "x", count: 255))
        return try self.answer(.events(EngineRig.token(1), selection), file)
    }

    private static func answer(_ subject: HistoryQuestion.Subject, _ file: HistoryFile) throws -> Told {
        let loop = LoopMailbox()
        loop.attach {}
        HistoryQuestion(
            reply: Requests.address(1),
            subject: subject,
            key: EngineRig.historyKey,
            offset: WallOffset(wall: 1000, now: Instant(milliseconds: 0)),
            policies: PolicyVersions()
        ).answer(from: file, PerOutlet(loop))
        var effects = EffectBatch()
        loop.take(into: &effects)
        return try #require(Told.all(in: effects).first)
    }

    private static func events(_ answer: Told) -> [[String: Any]] {
        answer.value(["events"]) as? [[String: Any]] ?? []
    }

    /// Each event as its moment, name, kind, what it happened to, and detail.
    private static func lines(_ answer: Told) -> [String] {
        self.events(answer).map { event in
            let parts = ["event", "kind", "apnsID", "task", "session", "detail"].map { key in
                event[key].map { $0 is NSNull ? "null" : "\($0)" } ?? "-"
            }
            return ([(event["at"] as? NSNumber)?.stringValue ?? ""] + parts).joined(separator: " ")
        }
    }

    @Test("Everything is told, the newest first, with the identifiers of tasks and the names of sessions")
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
        #expect(answer.value(["next"]) is NSNull)
        #expect(answer.string("token") == EngineRig.token(1).hex)
    }

    @Test("Of one kind alone; page by page, each going on where the one before left off", arguments: 1..<6)
    func pages(limit: Int) throws {
        var selection = EventSelection()
        selection.limit = limit
        let kinds: [(EventSelection.Kind?, Int)] = [(nil, 12), (.push, 2), (.task, 8), (.conditions, 1)]
        for (kind, count) in kinds {
            selection.kind = kind
            selection.before = nil
            var lines: [String] = []
            repeat {
                let answer = try Self.ask(selection)
                lines += Self.lines(answer)
                #expect(Self.events(answer).count <= limit)
                selection.before = answer.string("next").flatMap { EventPlace($0) }
            } while selection.before != nil && lines.count < 20
            #expect(lines.count == count && Set(lines).count == count, "\(kind as Any): \(lines)")
        }
    }

    @Test("A place is read as it is written, and nothing else is one")
    func places() {
        for text in ["0.1", "1795249122000.12", "-5.3"] { #expect(EventPlace(text)?.text == text) }
        let others = [
            "", ".", "1", "1.", ".1", "1.0", "1.-1", "1.2.3", "x.1", "1.x", "+1.1", "1.01", "1.+1",
            "1000000000000000000.1",
        ]
        for text in others {
            #expect(EventPlace(text) == nil, "\(text)")
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
            events.append(HistoryEvent(device: Self.number, at: at, kind: .taskResult(.appRefresh, .success)))
            file.append(events[...])
        }
        let answer = try Self.answer(.pushes(EngineRig.token(1)), file)
        #expect((answer.value(["pushes"]) as? [Any])?.count == 1)
    }

    @Test("The engine's log is asked as the last pushes are; of an unknown device there is none")
    func engine() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...2) {
            $0.push(1, 1)
            $0.conditions(2, 1) { $0.charging = true }
        }
        let answers = try rig.ask(3...4) {
            $0.deviceEvents(3, 1)
            $0.deviceEvents(4, 9)
        }
        #expect(Self.events(answers[0]).map { $0["event"] as? String } == ["conditions", "push", "registered"])
        #expect(answers[1].status == 404 && answers[1].string("reason") == "UnknownDevice")
    }
}
