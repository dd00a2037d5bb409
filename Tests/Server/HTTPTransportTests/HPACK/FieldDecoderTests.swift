import CNghttp2
import HTTPTransport
import Testing
import WakeGateTestKit
import Wire

@Suite("The decoder of field blocks")
struct FieldDecoderTests {
    typealias Field = LibraryDeflater.Field

    /// A decoder and the fields it has read.
    struct Reading: ~Copyable {
        var decoder = FieldDecoder()
        var memory = FieldDecoderMemory()
        var fields: [Field] = []
        /// The number of fields that came with a note from before.
        var known = 0

        /// - Parameter pieces: the places at which the block is cut.
        mutating func read(_ block: [UInt8], pieces: [Int] = []) throws {
            self.fields = []
            self.known = 0
            var start = 0
            for (index, end) in (pieces.sorted() + [block.count]).enumerated() {
                let isLast = index == pieces.count
                try Array(block[start..<end]).withByteView { piece in
                    try self.decoder.decode(piece, isLast: isLast, in: &self.memory) { name, value, note in
                        let field = Field(name: name.array, value: value.array)
                        self.fields.append(field)
                        let expected = Self.note(field)
                        if note > 0 { self.known += 1 }
                        #expect(note == 0 || note == expected, "the note of another field")
                        note = expected
                    }
                }
                start = end
            }
        }

        private static func note(_ field: Field) -> UInt32 {
            (field.name + [0] + field.value).reduce(1) { ($0 &* 31 &+ UInt32($1)) | 1 }
        }
    }

    /// Parses hexadecimal digits, and ignores spaces.
    static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    static func text(_ fields: [Field]) -> [String] {
        fields.map { String(decoding: $0.name + [UInt8(ascii: "=")] + $0.value, as: UTF8.self) }
    }

    /// RFC 7541, appendices C.3 and C.4: three requests of one connection, without and with Huffman coding.
    private static let exampleBlocks = [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ]

    @Test("The examples of RFC 7541 are read as it says", arguments: Self.exampleBlocks)
    func examples(blocks: [String]) throws {
        let get = [":method=GET", ":scheme=http", ":path=/", ":authority=www.example.com"]
        let expected = [
            get, get + ["cache-control=no-cache"],
            [
                ":method=GET", ":scheme=https", ":path=/index.html", ":authority=www.example.com",
                "custom-key=custom-value",
            ],
        ]
        var reading = Reading()
        for (block, fields) in zip(blocks, expected) {
            try reading.read(Self.bytes(block))
            #expect(Self.text(reading.fields) == fields)
        }
    }

    // MARK: Against libnghttp2's encoder

    private static let names = [
        ":path", ":authority", "authorization", "apns-topic", "apns-id", "content-length", "x", "cookie", "te",
        "apns-priority", String(repeating: "n", count: 200),
    ]

    private static func field(_ random: inout SeededGenerator) -> Field {
        let count = random.once(in: 40) ? random.number(below: 5000) : random.number(below: 60)
        let letters = random.once(in: 4) ? 0...255 : 0x30...0x39
        let value =
            random.once(in: 4)
            ? (0..<count).map { _ in UInt8(random.number(in: letters)) }
            : [UInt8]("value \(random.number(below: 3))".utf8)
        return Field(name: [UInt8](random.pick(Self.names).utf8), value: value, isSecret: random.once(in: 5))
    }

    @Test("Output of libnghttp2 is decoded correctly, whole and in pieces", arguments: UInt64(1)...60)
    func library(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let deflater = LibraryDeflater(tableBytesMax: FieldDecoder.tableBytesMax)
        var whole = Reading()
        var pieces = Reading()
        var known = 0
        for _ in 0..<40 {
            if random.once(in: 6) { deflater.resize(to: random.number(in: 0...FieldDecoder.tableBytesMax)) }
            let fields = (0..<random.number(in: 0...12)).map { _ in Self.field(&random) }
            let block = deflater.block(fields)
            let plain = fields.map { Field(name: $0.name, value: $0.value) }
            try whole.read(block)
            #expect(whole.fields == plain, "seed \(seed)")
            known += whole.known
            let cuts = (0..<random.number(below: 5)).map { _ in random.number(in: 0...block.count) }
            try pieces.read(block, pieces: cuts)
            #expect(pieces.fields == plain, "seed \(seed)")
        }
        #expect(known > 10, "seed \(seed): hardly a field came again")
    }

    @Test("Every byte is decoded from Huffman code, between others and at the end", arguments: UInt8.min...UInt8.max)
    func huffman(symbol: UInt8) throws {
        let zeros = [UInt8](repeating: UInt8(ascii: "0"), count: 40)
        let deflater = LibraryDeflater(tableBytesMax: 0)
        // Several symbols in sequence begin at every bit position of the decoder's buffer.
        let several = (0..<8).map { zeros[..<$0] + [symbol, symbol, symbol] + zeros + zeros }
        for value in several + [zeros + [symbol] + zeros, zeros + [symbol], zeros + [symbol, symbol]] {
            let block = deflater.block([Field(name: [UInt8]("x".utf8), value: value)])
            try #require(block.count < value.count, "no Huffman code")
            var reading = Reading()
            try reading.read(block)
            #expect(reading.fields.map(\.value) == [value])
        }
    }

    // MARK: Bounds

    /// Returns an unindexed field with an uncoded value of this size.
    private static func literal(valueCount: Int) -> [UInt8] {
        var block: [UInt8] = [0x00, 1, 0x78, 0x7F]
        var rest = valueCount - 0x7F
        while rest >= 0x80 {
            block.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return block + [UInt8(rest)] + [UInt8](repeating: 0x76, count: valueCount)
    }

    @Test("The longest field is read, whole and in pieces, and one more byte is a fault, before it has arrived")
    func longestField() throws {
        let maximum = 32_000 - 1
        var reading = Reading()
        for pieces in [[], Array(stride(from: 0, to: maximum, by: 7))] as [[Int]] {
            try reading.read(Self.literal(valueCount: maximum), pieces: pieces)
            #expect(reading.fields.map(\.value.count) == [maximum])
        }
        var decoder = FieldDecoder(literalBytesMax: 32_000)
        var memory = FieldDecoderMemory()
        let isFault = Array(Self.literal(valueCount: maximum + 1)[..<8]).withByteView { piece in
            do throws(FieldDecoder.Fault) {
                try decoder.decode(piece, isLast: false, in: &memory) { _, _, _ in }
                return false
            } catch {
                return true
            }
        }
        #expect(isFault)
    }

    @Test("An entry of the table's size is kept, and one byte more empties the table")
    func largestEntry() throws {
        for (count, isKept) in [(4096 - 32 - 1, true), (4096 - 32, false)] {
            var reading = Reading()
            try reading.read([0x40, 1, 0x61, 1, 0x62])
            try reading.read([0xBE])
            var block = Self.literal(valueCount: count)
            block[0] = 0x40
            try reading.read(block)
            if isKept {
                try reading.read([0xBE])
                #expect(reading.fields.map(\.value.count) == [count])
            }
            #expect(throws: FieldDecoder.Fault.self) { try reading.read([isKept ? 0xBF : 0xBE]) }
        }
    }

    // MARK: The credential that is remembered

    private static func secret(_ value: [UInt8], index: UInt8 = 23) -> [UInt8] {
        [0x1F, index - 15, 0x7F] + [UInt8(value.count - 0x7F)] + value
    }

    @Test("A repeated credential is recognized as known, and a different one as new")
    func credentials() throws {
        let (first, second) = ([UInt8](repeating: 0x61, count: 150), [UInt8](repeating: 0x62, count: 150))
        var reading = Reading()
        let values = [(first, 0), (first, 1), (second, 0), (first, 0), (first, 1), (first + [0x61], 0)]
        for (value, known) in values {
            try reading.read(Self.secret(value))
            #expect(Self.text(reading.fields)[0].hasPrefix("authorization="))
            #expect(reading.fields.map(\.value) == [value])
            #expect(reading.known == known)
        }
    }

    @Test("Another never-indexed field is not mistaken for the credential")
    func otherSecrets() throws {
        let value = [UInt8](repeating: 0x61, count: 150)
        var reading = Reading()
        try reading.read(Self.secret(value))
        // `proxy-authorization` is entry 49.
        for _ in 0..<2 {
            try reading.read(Self.secret(value, index: 49))
            #expect(Self.text(reading.fields)[0].hasPrefix("proxy-authorization=aaa"))
        }
        try reading.read(Self.secret(value))
        #expect(Self.text(reading.fields)[0].hasPrefix("authorization=aaa"))
        #expect(reading.known == 1)
    }
}

/// The encoder of field blocks in libnghttp2, which chooses among all representations of a field.
@safe
final class LibraryDeflater {
    struct Field: Equatable {
        var name: [UInt8]
        var value: [UInt8]
        /// True if the field is written as never indexed.
        var isSecret = false
    }

    private var deflater: OpaquePointer?

    init(tableBytesMax: Int) {
        let result = unsafe nghttp2_hd_deflate_new(&self.deflater, tableBytesMax)
        precondition(result == 0)
    }

    deinit { unsafe nghttp2_hd_deflate_del(self.deflater) }

    /// Announces the size of the table with the next block.
    func resize(to bytes: Int) {
        let result = unsafe nghttp2_hd_deflate_change_table_size(self.deflater, bytes)
        precondition(result == 0)
    }

    func block(_ fields: [Field]) -> [UInt8] {
        let lines = unsafe fields.map { field in
            let flags = field.isSecret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE
            return unsafe nghttp2_nv(
                name: Self.copy(field.name),
                value: Self.copy(field.value),
                namelen: field.name.count,
                valuelen: field.value.count,
                flags: UInt8(flags.rawValue)
            )
        }
        defer {
            for index in fields.indices {
                unsafe lines[index].name.deallocate()
                unsafe lines[index].value.deallocate()
            }
        }
        var block = unsafe [UInt8](repeating: 0, count: nghttp2_hd_deflate_bound(self.deflater, lines, lines.count))
        let count = unsafe nghttp2_hd_deflate_hd(self.deflater, &block, block.count, lines, lines.count)
        precondition(count >= 0)
        return Array(block[..<count])
    }

    private static func copy(_ bytes: [UInt8]) -> UnsafeMutablePointer<UInt8> {
        let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes.count + 1)
        for (index, byte) in bytes.enumerated() { unsafe (copy + index).initialize(to: byte) }
        return unsafe copy
    }
}

@Suite("The encoder of field blocks")
struct FieldEncoderTests {
    private static func fields(_ response: Response) throws -> [String] {
        var reading = FieldDecoderTests.Reading()
        try reading.read(response.block.view.array)
        return FieldDecoderTests.text(reading.fields)
    }

    @Test("Every status is encoded correctly", arguments: 200...999)
    func status(status: Int) throws {
        let response = Response()
        response.begin(status: status)
        #expect(try Self.fields(response) == [":status=\(status)"])
    }

    @Test("A value may have any length", arguments: [0, 1, 126, 127, 128, 254, 255, 256, 16_000])
    func lengths(count: Int) throws {
        let response = Response()
        let value = String(repeating: "v", count: count)
        response.begin(status: 200)
        value.withByteView { response.add("x", $0) }
        response.add("content-type", "application/json")
        let behindStatus = ["x=\(value)", "content-type=application/json"]
        #expect(try Self.fields(response) == [":status=200"] + behindStatus)
        var taken: [String] = []
        response.forEachField { taken.append("\($0.string)=\($1.string)") }
        #expect(taken == behindStatus, "as HTTP/1 takes the block apart")
    }

    @Test("A block has the form of RFC 7541")
    func bytes() {
        let response = Response()
        response.begin(status: 403)
        response.add("a", "bc")
        #expect(response.block.view.array == [0x08, 3, 0x34, 0x30, 0x33, 0x00, 1, 0x61, 2, 0x62, 0x63])
    }

    @Test("A reused response has only its new fields: constants, bytes and numbers")
    func filledAnew() throws {
        let response = Response()
        response.begin(status: 200)
        response.add("a", "constant")
        response.begin(status: 413)
        response.add("b", ByteView("bytes"))
        response.add("c", Int64(-42))
        response.add("d", "constant")
        #expect(try Self.fields(response) == [":status=413", "b=bytes", "c=-42", "d=constant"])
    }
}
