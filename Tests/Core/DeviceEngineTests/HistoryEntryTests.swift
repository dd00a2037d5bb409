import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Names in the history", .timeLimit(.minutes(15)))
struct HistoryEntryTests {
    private static let at = Instant(milliseconds: 5)
    private static let launch = HistoryEvent.Kind.launch(.processing, attempt: 1)

    private static func named(_ name: String, _ kind: HistoryEvent.Kind = launch, at: Instant = at) -> [HistoryEvent] {
        var events: [HistoryEvent] = []
        NameParts.append(name, device: 1, at: at, to: &events)
        return events + [HistoryEvent(device: 1, at: at, kind: kind)]
    }

    private static func name(_ length: Int, _ random: inout SeededGenerator) -> String {
        let letters = Array("ABCXYZabcxyz019.-_")
        return String((0..<length).map { _ in random.pick(letters) })
    }

    private static func entries(_ events: [HistoryEvent]) -> [HistoryEntry] {
        var entries = HistoryEntries()
        for event in events.reversed() { entries.append(event) }
        return entries.finish().reversed()
    }

    private static func read(_ content: ByteView) -> [HistoryEvent] {
        var events: [HistoryEvent] = []
        do { try EventRecord(content).read { events.append($0) } } catch { return [] }
        return events
    }

    @Test("Names of every length are restored, also through records")
    func lengths() {
        var random = SeededGenerator(seed: 1)
        for length in 1...NameParts.bytesMax {
            let name = Self.name(length, &random)
            let events = Self.named(name)
            #expect(events.count == NameParts.count(ofBytes: length) + 1)
            #expect(events.indices.allSatisfy { events[$0].followers == events.count - 1 - $0 })
            var buffer = ByteBuffer()
            _ = EventRecord.write(events, from: 0, sequence: 1, keyMark: 2, to: &buffer)
            #expect(Self.entries(Self.read(buffer.view)) == [HistoryEntry(events[events.count - 1], name: name)])
        }
        for name in ["", Self.name(256, &random)] { #expect(Self.named(name).count == 1, "it is not kept") }
    }

    @Test("An incomplete name is left out of its event, and later events keep theirs")
    func missing() {
        var random = SeededGenerator(seed: 2)
        let (name, other) = (Self.name(100, &random), Self.name(3, &random))
        let (events, rest) = (Self.named(name), Self.named(other))
        for left in 0..<4 {
            var cut = events
            cut.remove(at: left)
            #expect(Self.entries(cut + rest).map(\.name) == [nil, other], "without part \(left)")
        }
        #expect(Self.entries(events.dropLast() + rest).map(\.name) == [other], "without the event")
        #expect(Self.entries(events.dropLast() + [rest[1]]).map(\.name) == [name], "another of the same name")
        let later = HistoryEvent(device: 1, at: Self.at + 1, kind: Self.launch)
        #expect(Self.entries(events.dropLast() + [later]).map(\.name) == [nil], "a name of another time")
        let conditions = HistoryEvent(device: 1, at: Self.at, kind: .conditions)
        #expect(Self.entries(events.dropLast() + [conditions] + rest).map(\.name) == [nil, other])
        let swapped = [events[1], events[0]] + events[2...]
        #expect(Self.entries(swapped).map(\.name) == [nil])
        let mixed = [events[0]] + Self.named(Self.name(101, &random)).dropFirst()
        #expect(Self.entries(mixed).map(\.name) == [nil], "parts of two names")
        let bare = events[0..<3] + [HistoryEvent(device: 1, at: Self.at, kind: events[3].kind), events[4]]
        #expect(Self.entries(Array(bare)).map(\.name) == [nil], "a part without bytes")
    }

    @Test("A record ends after an event, never within a name or right after one", arguments: 0..<4)
    func records(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var events: [HistoryEvent] = []
        var names: [String?] = []
        for number in 0..<6000 {
            let name = random.once(in: 4) ? nil : Self.name(random.number(in: 1...random.pick([20, 255])), &random)
            let at = Instant(milliseconds: Int64(number / 3))
            events += name.map { Self.named($0, at: at) } ?? [HistoryEvent(device: 1, at: at, kind: .conditions)]
            names.append(name)
        }
        var start = 0
        var found: [HistoryEntry] = []
        var count = 0
        while start < events.count {
            var buffer = ByteBuffer()
            start = EventRecord.write(events, from: start, sequence: 1, keyMark: 2, to: &buffer)
            #expect(buffer.count <= EventRecord.bytesMax)
            found += Self.entries(Self.read(buffer.view))
            count += 1
        }
        #expect(found.map(\.name) == names)
        #expect(found.map(\.event) == events.filter { !$0.isNamePart })
        #expect(count > 2)
    }

    @Test("A name with the bytes of an apns-id does not affect the push of that id")
    func bytesOfPush() {
        let name = "0123456789abcdef"
        let part = Self.named(name)[0]
        let push = HistoryEvent(device: 1, at: Self.at, kind: .push(.launched), apnsID: part.apnsID)
        let events = Self.named(name) + [push] + Self.named(name) + [push]
        var buffer = ByteBuffer()
        _ = EventRecord.write(events, from: 0, sequence: 1, keyMark: 2, to: &buffer)
        #expect(Self.read(buffer.view) == events)
    }

    @Test("Names with non-ASCII characters are restored; bytes that are not UTF-8 are not a name")
    func letters() {
        let name = "größe-測試-🚀-" + String(repeating: "é", count: 40)
        #expect(Self.entries(Self.named(name)).map(\.name) == [name])
        let bytes = APNsID(first: 0xFF, second: 0, upperCase: 0)
        let broken = HistoryEvent(device: 1, at: Self.at, kind: .namePart(length: 1, place: 0), apnsID: bytes)
        #expect(Self.entries([broken, HistoryEvent(device: 1, at: Self.at, kind: Self.launch)]).map(\.name) == [nil])
    }
}

@Suite("Terms of a push in the history")
struct PushTermsTests {
    private let now = Instant(milliseconds: 1_000_000)

    @Test("Lifetimes that fit are stored exactly, longer ones in minutes, up to the largest number of minutes")
    func lifetimes() {
        // The codes in between are minutes that can be stored exactly as seconds.
        for code in [UInt16](0...32_767) + [UInt16](33_315...UInt16.max) {
            #expect(PushTerms.Lifetime(code: code).code == code)
        }
        let kept: [(PushTerms.Lifetime, PushTerms.Lifetime)] = [
            (.unlimited, .unlimited), (.nowOrNever, .nowOrNever), (.seconds(0), .seconds(0)),
            (.seconds(1), .seconds(1)),
            (.seconds(32_765), .seconds(32_765)), (.seconds(32_800), .seconds(32_760)),
            (.seconds(86_400), .seconds(86_400)), (.seconds(.max / 1000), .seconds(32_767 * 60)),
        ]
        for (lifetime, expected) in kept { #expect(PushTerms.Lifetime(code: lifetime.code) == expected) }
    }

    @Test("An expiry is stored as remaining seconds; a past one as zero")
    func expiry() {
        func lifetime(_ milliseconds: Int64) -> PushTerms.Lifetime {
            PushTerms(.immediate, .at(Instant(milliseconds: milliseconds)), at: self.now).lifetime
        }
        #expect(lifetime(1_061_500) == .seconds(61))
        #expect(lifetime(5) == .seconds(0))
        #expect(PushTerms(.passive, .absent, at: self.now).lifetime == .unlimited)
        #expect(PushTerms(.passive, .nowOrNever, at: self.now).lifetime == .nowOrNever)
    }

    @Test("An event has the terms of its push; older events and those of other kinds have none")
    func event() {
        let terms = PushTerms(priority: .immediate, lifetime: .seconds(60))
        let event = HistoryEvent(device: 1, at: self.now, kind: .push(.launched), terms: terms)
        #expect(event.terms == terms)
        #expect(HistoryEvent(device: 1, at: self.now, kind: .push(.launched)).terms == nil)
        #expect(HistoryEvent(device: 1, at: self.now, kind: .launch(.push, attempt: 1, coalesced: 5)).terms == nil)
    }
}
