import HTTPTransport
import Testing
import Wire

@Suite("The fields that come with every request of a connection")
struct RepeatedFieldsTests {
    private typealias Field = LibraryDeflater.Field

    /// One connection twice: its blocks come whole to one session, and in two frames to the other, which never takes
    /// fields as a whole.
    private final class Twins {
        let whole: SessionFixture
        let halves: SessionFixture
        private let deflater = LibraryDeflater(tableBytesMax: 4096)
        private var number = 1

        init(_ limits: TransportLimits = TransportLimits()) {
            self.whole = SessionFixture(limits)
            self.halves = SessionFixture(limits)
        }

        /// Sends a request to both, and takes what came of it.
        func request(_ fields: [Field]) -> (whole: [String], halves: [String]) {
            self.request(block: self.deflater.block(fields))
        }

        func request(block: [UInt8]) -> (whole: [String], halves: [String]) {
            let middle = block.count / 2
            // END_HEADERS is 4, END_STREAM 1.
            self.whole.receive(ScriptedPeer.frame(1, flags: 5, stream: self.number, block))
            self.halves.receive(ScriptedPeer.frame(1, flags: 1, stream: self.number, Array(block[..<middle])))
            self.halves.receive(ScriptedPeer.frame(9, flags: 4, stream: self.number, Array(block[middle...])))
            for session in [self.whole, self.halves] { _ = session.respond(Int32(self.number)) }
            self.number += 2
            let produced = (self.whole.produce(), self.halves.produce())
            #expect(produced.0.map(\.payload) == produced.1.map(\.payload))
            return (self.whole.takeEvents(), self.halves.takeEvents())
        }
    }

    private static func field(_ name: String, _ value: String) -> Field {
        Field(name: [UInt8](name.utf8), value: [UInt8](value.utf8), isSecret: name == "authorization")
    }

    private static func push(_ path: String, _ changes: [String: String] = [:]) -> [Field] {
        let usual = [
            (":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "localhost"),
            ("authorization", "bearer abc.def.ghi"), ("apns-topic", "com.example"), ("apns-push-type", "background"),
            ("apns-priority", "5"), ("content-length", "0"), ("user-agent", "h2"),
        ]
        return usual.map { Self.field($0, changes[$0] ?? $1) }
    }

    private static func text(_ fields: [Field]) -> String {
        func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
        let pseudo = [":method", ":path", ":authority"].map { name in
            fields.first { text($0.name) == name }.map { text($0.value) } ?? ""
        }
        let regular = fields.filter { $0.name.first != UInt8(ascii: ":") }.map { "\(text($0.name))=\(text($0.value))" }
        return "\(pseudo.joined(separator: " ")) \(regular.joined(separator: ",")) "
    }

    @Test("Each request has the fields that were sent, whichever of them changes, and whenever")
    func everyChange() {
        let twins = Twins()
        var random = SplitMix64(seed: 25)
        let values = ["", "a", "5", "a-value-of-some-length", "bearer.abc", "0"]
        let names = ["authorization", "apns-topic", "apns-push-type", "apns-priority", "user-agent", ":authority"]
        var changes: [String: String] = [:]
        for number in 0..<600 {
            // Mostly the same as before, so that runs are remembered between two changes.
            if number % 7 == 6 {
                changes[names[Int(random.next() % 6)]] = values[1 + Int(random.next() % 5)]
                if random.next() % 4 == 0 { changes = [:] }
            }
            let fields = Self.push("/3/device/\(random.next())", changes)
            let events = twins.request(fields)
            #expect(events.whole == events.halves)
            let expected = Self.text(fields)
            #expect(events.whole.contains { $0.hasSuffix(expected) }, "request \(number): \(events.whole)")
        }
    }

    /// Blocks behind some of the same fields, and the same block where it comes first.
    private static let endings: [[UInt8]] = [
        // A size of the table, which may only come first.
        [0x20],
        // :method once more, a pseudo-header field behind a regular one, no such entry, a string that is cut off.
        [0x83], [0xFF, 0x40], [0x04, 0x85, 0x60],
        // te: gzip
        [0x00, 0x02, 0x74, 0x65, 0x04, 0x67, 0x7A, 0x69, 0x70],
    ]

    @Test("What follows is judged as if every field had been read", arguments: Self.endings)
    func judges(ending: [UInt8]) {
        let twins = Twins()
        // POST, https, /, with a literal authority, and user-agent.
        let block: [UInt8] = [0x83, 0x87, 0x84, 0x01, 0x01, 0x68, 0x0F, 0x2B, 0x01, 0x61]
        for _ in 0..<9 {
            let events = twins.request(block: block)
            #expect(events.whole == events.halves && events.whole.contains { $0.contains("POST / h") })
        }
        let events = twins.request(block: block + ending)
        #expect(events.whole == events.halves && !events.whole.contains { $0.contains("POST / h") })
        #expect(twins.whole.isOver == twins.halves.isOver)
    }

    @Test("Repeated fields count towards the limit of a header list")
    func listBytes() {
        var limits = TransportLimits()
        limits.headerListBytesMax = 600
        let twins = Twins(limits)
        for number in 0..<40 {
            let path = "/" + String(repeating: "p", count: number * 10)
            let events = twins.request(Self.push(path))
            #expect(events.whole == events.halves)
        }
        #expect(twins.whole.times(.headerListBytesMax) > 0)
        #expect(twins.whole.times(.headerListBytesMax) == twins.halves.times(.headerListBytesMax))
    }
}
