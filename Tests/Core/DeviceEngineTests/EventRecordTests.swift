import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Records of events")
struct EventRecordTests {
    private static let kinds: [HistoryEvent.Kind] = {
        var kinds: [HistoryEvent.Kind] = [
            .registered, .removed, .conditions, .extended(.push, seconds: 30),
            .launch(.push, attempt: .max, coalesced: .max), .transfersFinished(count: 0),
            .transfersFinished(count: .max), .namePart(length: 1, place: 0), .namePart(length: 255, place: 7),
            .namePart(length: 33, place: 1), .worker(length: 1, place: 0), .worker(length: 255, place: 15),
        ]
        kinds += Disposition.allCases.map { .push($0) }
        kinds += WakeOutcome.allCases.map { .result(.push($0)) }
        kinds += DiscardReason.ofPushes.map { .discard(.push, $0) }
        for task in TaskKind.allCases {
            let kind = LaunchKind(task)
            kinds += [.launch(kind, attempt: 2), .extended(kind, seconds: .max)]
            kinds += TaskOutcome.allCases.map { .result(.task(task, $0)) }
            kinds += TaskDisposition.allCases.map { .taskSubmitted(task, $0) }
            kinds += DiscardReason.ofRequests.map { .discard(kind, $0) }
            kinds += [.taskRefused(task, .policy(.notPermitted)), .taskRefused(task, .bound(.taskTopicPercentMax))]
        }
        return kinds
    }()

    @Test("A stored wait has its longest holds and the last one")
    func waits() throws {
        let wait = Waited(
            interval: 900_001,
            times: [
                .init(.worker, 3), .init(.battery, 10_000_000_000), .init(.network, 50), .init(.battery, 64),
                .init(.thermal, 7), .init(.memory, 0),
            ],
            held: .worker
        )
        let kept = Waited(stored: try #require(wait.stored))
        #expect(kept.held == .worker && kept.interval == 900_001)
        #expect(
            kept.spans == [.init(.worker, 3), .init(.battery, 4_294_967_232), .init(.network, 50), .init(.thermal, 7)]
        )
        #expect(kept.text == "15 min interval, 3 ms worker, 49 d 17 h battery, 50 ms network, 7 ms thermal")
        let all = Waited(interval: 0, times: Hold.allCases.map { .init($0, Int64($0.rawValue) + 1) })
        #expect(all.spans.count == 4 && all.interval == 45 && all.held == nil)
        #expect(Waited(interval: 0, times: []).stored == nil)
        #expect(Waited(interval: 0, times: [], held: .paused).stored != nil)
        #expect(Waited(stored: APNsID(first: .max, second: .max, upperCase: .max)).spans.isEmpty)
    }

    @Test("Stored changes of conditions are read back, and those of older records are unknown")
    func changes() {
        var before = Conditions()
        before.memoryPressure = .warning
        var after = Conditions()
        after.appState = .active
        after.batteryLevel = 0.125
        after.charging = true
        after.network = false
        after.thermalState = .critical
        let changes = before.changes(to: after)
        let event = HistoryEvent(device: 1, at: Instant(milliseconds: 5), kind: .conditions, changed: changes)
        #expect(event.changed == changes && changes.memoryPressure == .normal && changes.lowPowerMode == nil)
        let none = after.changes(to: after)
        #expect(none == ConditionsReport())
        #expect(HistoryEvent(device: 1, at: event.at, kind: .conditions, changed: none).changed == none)
        #expect(HistoryEvent(device: 1, at: event.at, kind: .conditions).changed == nil)
    }

    @Test("A push has the size of its payload, and one of an older record has none", arguments: [0, 2, 228, 4096])
    func payload(bytes: Int) {
        let terms = PushTerms(priority: .immediate, lifetime: .seconds(9))
        let event = HistoryEvent(
            device: 1,
            at: Instant(milliseconds: 5),
            kind: .push(.launched),
            terms: terms,
            payloadBytes: bytes
        )
        #expect(event.payloadBytes == (bytes == 0 ? nil : bytes) && event.terms == terms)
    }

    /// Returns events with few distinct devices, times and pushes, so that consecutive ones share fields.
    private static func events(_ count: Int, seed: UInt64) -> [HistoryEvent] {
        var random = SeededGenerator(seed: seed)
        func identifier() -> APNsID? {
            guard !random.once(in: 3) else { return nil }
            let number = UInt64(random.number(below: 3))
            return APNsID(first: number, second: .max, upperCase: number == 2 ? random.pick([0, 0xF00F]) : 0)
        }
        return (0..<count).map { _ in
            HistoryEvent(
                device: UInt64(random.number(below: 3)) &* 0x9E37_79B9_7F4A_7C15,
                at: Instant(milliseconds: random.pick([Int64.min, -1, 0, 1_700_000_000_000, Int64.max])),
                kind: random.pick(Self.kinds),
                apnsID: identifier(),
                related: identifier(),
                terms: PushTerms(priority: .considerate, lifetime: PushTerms.Lifetime(code: 7))
            )
        }
    }

    private static func written(_ events: [HistoryEvent], sequence: UInt64 = 5) -> [UInt8] {
        var buffer = ByteBuffer()
        let end = EventRecord.write(events, from: 0, sequence: sequence, keyMark: 0xABCD, to: &buffer)
        precondition(end == events.count)
        return buffer.view.array
    }

    /// Returns the content of a record; nil if it is refused.
    private static func read(_ bytes: [UInt8]) -> (sequence: UInt64, keyMark: UInt64, events: [HistoryEvent])? {
        bytes.withByteView { view in
            var events: [HistoryEvent] = []
            do {
                let record = try EventRecord(view)
                try record.read { events.append($0) }
                guard record.eventCount == events.count else { return nil }
                return (record.sequence, record.keyMark, events)
            } catch { return nil }
        }
    }

    @Test("Written events are read back, whatever they share with the previous one", arguments: 0..<100)
    func roundTrip(seed: UInt64) throws {
        let events = Self.events(Int(seed) + 1, seed: seed)
        let read = try #require(Self.read(Self.written(events, sequence: seed + 1)))
        #expect(read.events == events)
        // Equal identifiers may differ in letter case.
        #expect(read.events.map { $0.apnsID?.upperCase } == events.map { $0.apnsID?.upperCase })
        #expect(read.events.map { $0.related?.upperCase } == events.map { $0.related?.upperCase })
        #expect(read.sequence == seed + 1 && read.keyMark == 0xABCD)
    }

    @Test("A push and its launch need few bytes")
    func size() {
        let apnsID = EngineRig.apnsID(1)
        let at = Instant(milliseconds: 1)
        let events = [
            HistoryEvent(device: 1, at: at, kind: .push(.launched), apnsID: apnsID),
            HistoryEvent(device: 1, at: at, kind: .launch(.push, attempt: 1, coalesced: 0), apnsID: apnsID),
        ]
        #expect(Self.written(events).count == 21 + 34 + 6)
    }

    @Test("A record that is truncated anywhere, or has bytes after its end, is refused")
    func truncated() {
        let bytes = Self.written(Self.events(30, seed: 3))
        for count in 0..<bytes.count { #expect(Self.read(Array(bytes.prefix(count))) == nil, "\(count) bytes") }
        #expect(Self.read(bytes + [0]) == nil)
    }

    @Test("A record that no writer creates is refused")
    func impossible() {
        let event = HistoryEvent(device: 1, at: Instant(milliseconds: 1), kind: .removed)
        let bytes = Self.written([event])
        func changed(_ offset: Int, _ value: UInt8) -> [UInt8] {
            var changed = bytes
            changed[offset] = value
            return changed
        }
        #expect(Self.read(bytes) != nil)
        #expect(Self.read(changed(0, 2)) == nil, "another version")
        #expect(Self.read(changed(1, 0)) == nil, "no sequence number")
        #expect(Self.read(changed(8, 0x80)) == nil, "a sequence number that is too large")
        #expect(Self.read(changed(17, 0)) == nil, "no events")
        #expect(Self.read(changed(17, 2)) == nil, "more events than there are")
        for code in [UInt8(0), 6, 7, 13, 14, 21, 28, 31, 32, 255] {
            #expect(Self.read(changed(21, code)) == nil, "no kind \(code)")
        }
        // Device or time missing, reference to an earlier identifier without one, upper-case bits without an
        // identifier.
        let impossible: [UInt8] = [0, 1, 2, 0b0001_0011, 0b0100_0011, 0b1000_0011]
        for parts in impossible {
            #expect(Self.read(changed(22, parts)) == nil, "parts \(parts)")
        }
    }

    @Test("An event of a task's wake needs the code of an existing kind")
    func impossibleKinds() {
        func kind(_ code: UInt8, _ attempt: UInt16, _ coalesced: UInt16) -> HistoryEvent.Kind? {
            HistoryEvent(
                device: 1,
                at: Instant(milliseconds: 1),
                code: code,
                attempt: attempt,
                coalesced: coalesced,
                apnsID: nil,
                related: nil
            )?.kind
        }
        #expect(kind(6, 9, 4) == .launch(.urlSession, attempt: 9))
        #expect(kind(7, 0, 0x36) == .result(.task(.continued, .lost)))
        for number in [0, 5, 0x10, 0x104, .max] as [UInt16] { #expect(kind(6, 1, number) == nil, "\(number)") }
        for number in [0, 1, 5, 0x10, 0x17, 0x51, 0x111, .max] as [UInt16] {
            #expect(kind(7, 0, number) == nil, "\(number)")
        }
        #expect(kind(7, 1, 0x11) == nil)
        #expect(kind(13, 33, 1) == .namePart(length: 33, place: 1))
        for (length, place) in [(0, 0), (32, 1), (255, 8), (256, 0), (33, 0x101)] as [(UInt16, UInt16)] {
            #expect(kind(13, length, place) == nil, "part \(place) of \(length)")
        }
        #expect(kind(14, 0, 0x23) == .taskSubmitted(.processing, .replaced))
        #expect(kind(28, 0, 0x45) == .discard(.urlSession, .unregistered))
        for number in [0, 1, 0x10, 0x16, 0x51, 0x111, .max] as [UInt16] {
            #expect(kind(14, 0, number) == nil, "\(number)")
            #expect(kind(28, 0, number) == nil, "\(number)")
        }
        #expect(kind(14, 0, 0x14) == nil && kind(14, 1, 0x11) == nil && kind(28, 1, 0x11) == nil)
        #expect(kind(15, 7, 0) == .transfersFinished(count: 7) && kind(15, 7, 1) == nil)
        #expect(kind(21, 7, 3) == .extended(.continued, seconds: 7) && kind(21, 7, 5) == nil)
    }
}
