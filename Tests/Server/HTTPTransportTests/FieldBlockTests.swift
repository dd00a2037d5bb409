import HTTPTransport
import Testing
import Wire

@Suite("The field block that is being read")
struct FieldBlockTests {
    private let pool = StreamPool(streamsMax: 1)

    /// - Returns: the error for a field of this size, as counted by HTTP/2; nil if it is accepted.
    private func receive(_ block: inout FieldBlock, bytes: Int, into slot: StreamSlot?) -> HTTP2ErrorCode? {
        var note: UInt32 = 0
        let value = [UInt8](repeating: UInt8(ascii: "v"), count: bytes - 33)
        return value.withByteView { value in
            block.fieldReceived(ByteView("n"), value, &note, into: slot, listBytesMax: 100)
        }
    }

    @Test(
        "The field list of each block is kept up to its limit, and abandoned at four times the limit, kept or not"
    )
    func listBytes() throws {
        let slot = try #require(self.pool.take(number: 1, now: 0))
        var block = FieldBlock()
        for kept in [slot, nil] {
            block.taken(for: 1, isRequest: false)
            #expect(self.receive(&block, bytes: 100, into: kept) == nil)
            #expect(self.receive(&block, bytes: 100, into: kept) == nil)
            let (isTooLarge, fieldCount) = (slot.state.isHeaderListTooLarge, slot.state.fieldCount)
            #expect(isTooLarge && fieldCount == 1)
            #expect(self.receive(&block, bytes: 200, into: kept) == nil)
            #expect(self.receive(&block, bytes: 33, into: kept) == .enhanceYourCalm)
        }
        self.pool.giveBack(slot)
    }
}

@Suite("The common fields of a connection's requests")
struct RepeatedFieldsTests {
    private typealias Field = LibraryDeflater.Field

    /// One connection in two sessions: one gets each block in a whole frame, the other in two frames, so that it never
    /// decodes a block in one step.
    private final class Twins {
        let whole: SessionFixture
        let halves: SessionFixture
        private let deflater = LibraryDeflater(tableBytesMax: 4096)
        private var number = 1

        init(_ limits: TransportLimits = TransportLimits()) {
            self.whole = SessionFixture(limits)
            self.halves = SessionFixture(limits)
        }

        /// Sends a request to both sessions, and returns their events.
        func request(_ fields: [Field]) -> (whole: [String], halves: [String]) {
            self.request(block: self.deflater.block(fields))
        }

        func request(block: [UInt8]) -> (whole: [String], halves: [String]) {
            let middle = block.count / 2
            // END_HEADERS is 4, END_STREAM 1.
            self.whole.receive(ScriptedPeer.frame(.headers, flags: .whole, stream: self.number, block))
            self.halves.receive(
                ScriptedPeer.frame(.headers, flags: .endStream, stream: self.number, Array(block[..<middle]))
            )
            self.halves.receive(
                ScriptedPeer.frame(.continuation, flags: .endHeaders, stream: self.number, Array(block[middle...]))
            )
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
            // Most requests repeat the previous one, so that runs of fields are remembered between two changes.
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

    /// Blocks that follow the same fields. The same block also occurs alone.
    private static let endings: [[UInt8]] = [
        // A table size update, which is only valid at the beginning of a block.
        [0x20],
        // A second :method, a pseudo-header field after a regular one, an index without an entry, and a truncated
        // string.
        [0x83], [0xFF, 0x40], [0x04, 0x85, 0x60],
        // te: gzip
        [0x00, 0x02, 0x74, 0x65, 0x04, 0x67, 0x7A, 0x69, 0x70],
    ]

    @Test("Fields after the common ones are judged as if every field had been read", arguments: Self.endings)
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
        let twins = Twins(TransportLimits { $0.headerListBytesMax = 600 })
        for number in 0..<40 {
            let path = "/" + String(repeating: "p", count: number * 10)
            let events = twins.request(Self.push(path))
            #expect(events.whole == events.halves)
        }
        #expect(twins.whole.times(.headerListBytesMax) > 0)
        #expect(twins.whole.times(.headerListBytesMax) == twins.halves.times(.headerListBytesMax))
    }
}

@Suite("The rules for the fields of a request")
struct FieldRulesTests {
    /// The lengths of values. The check reads pieces of eight and of sixteen bytes, the last of which may overlap the
    /// previous one.
    static let counts = Array(1...25) + [31, 32, 33, 47, 49]

    private func admits(_ name: [UInt8], _ value: [UInt8]) -> Bool {
        name.withByteView { name in
            value.withByteView { value in
                var rules = FieldRules.head
                var note: UInt32 = 0
                return rules.admit(name, value, &note) != nil
            }
        }
    }

    /// Returns true if RFC 9113 §8.2.1 forbids this byte in a value.
    private func isForbidden(_ byte: UInt8, atEnd: Bool) -> Bool {
        switch byte {
        case 0x09, 0x20: atEnd
        case 0x00..<0x20, 0x7F: true
        default: false
        }
    }

    @Test("Every byte is judged the same at every position of a value or path of any length", arguments: Self.counts)
    func values(count: Int) {
        for place in 0..<count {
            for byte in UInt8.min...UInt8.max {
                var value = [UInt8](repeating: UInt8(ascii: "v"), count: count)
                value[place] = byte
                let isForbidden = self.isForbidden(byte, atEnd: place == 0 || place == count - 1)
                #expect(self.admits([UInt8]("x".utf8), value) == !isForbidden, "\(byte) at \(place) of \(count)")
                var path = [UInt8](repeating: UInt8(ascii: "/"), count: count)
                path[place] = byte
                let isVisible = byte > 0x20 && byte != 0x7F
                #expect(self.admits([UInt8](":path".utf8), path) == isVisible, "\(byte) at \(place) of \(count)")
            }
        }
    }

    @Test("Every byte is judged the same at every position of a name of any length", arguments: 1...25)
    func names(count: Int) {
        let allowed = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz".utf8)
        for place in 0..<count {
            // A name with a colon at its beginning is another kind of field.
            for byte in UInt8.min...UInt8.max where place > 0 || byte != UInt8(ascii: ":") {
                var name = [UInt8](repeating: UInt8(ascii: "n"), count: count)
                name[place] = byte
                #expect(self.admits(name, []) == allowed.contains(byte), "\(byte) at \(place) of \(count)")
            }
        }
        #expect(!self.admits([], []))
    }

    @Test("An authority has the characters of RFC 3986, and a scheme begins with a letter")
    func authorities() {
        for text in ["", "h", "example.com:2197", "[::1]:2197", "a_b", "user@h", "%41"] {
            #expect(self.admits([UInt8](":authority".utf8), [UInt8](text.utf8)), "\(text)")
            #expect(self.admits([UInt8]("host".utf8), [UInt8](text.utf8)), "\(text)")
        }
        for text in ["h h", "h/", "h\"", "<h>", "h\\", "{h}", "\u{E9}"] {
            #expect(!self.admits([UInt8](":authority".utf8), [UInt8](text.utf8)), "\(text)")
        }
        for text in ["https", "http", "coap+tcp"] { #expect(self.admits([UInt8](":scheme".utf8), [UInt8](text.utf8))) }
        for text in ["", "1http", "ht tp", "+x"] { #expect(!self.admits([UInt8](":scheme".utf8), [UInt8](text.utf8))) }
    }

    @Test(
        "A content-length is a number that fits 64 bits",
        arguments: [
            ("0", true), ("18446744073709551615", true), ("18446744073709551616", false), ("", false), ("-1", false),
            ("+1", false), ("1 ", false), ("0x1", false),
        ]
    )
    func contentLength(text: String, isGood: Bool) {
        #expect(self.admits([UInt8]("content-length".utf8), [UInt8](text.utf8)) == isGood)
    }
}
