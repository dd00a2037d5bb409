import CNghttp2
import HTTPTransport
import Testing
import Wire

/// The session and its decoder, held to what others have written to test HTTP/2 with: the http2jp corpora of field
/// blocks and frames, which Debian's haskell-http2 carries, and the connections that nghttp2 fuzzes with, most of them
/// recorded from h2spec.
@Suite("What others test HTTP/2 with", .timeLimit(.minutes(15)))
struct OutsideCorpusTests {
    private typealias Field = LibraryDeflater.Field

    /// The fields of a block; nil for a fault. The decoder gets it in pieces of so many bytes.
    private static func fields(
        _ block: [UInt8],
        _ decoder: inout FieldDecoder,
        _ memory: inout FieldDecoderMemory,
        pieceBytes: Int
    ) -> [Field]? {
        var fields: [Field] = []
        var start = 0
        repeat {
            let end = min(block.count, start + pieceBytes)
            do {
                try Array(block[start..<end]).withByteView { piece in
                    try decoder.decode(piece, isLast: end == block.count, in: &memory) { name, value, _ in
                        fields.append(Field(name: name.array, value: value.array))
                    }
                }
            } catch {
                return nil
            }
            start = end
        } while start < block.count
        return fields
    }

    @Test(
        "The field blocks of every other encoder are read as they were meant, as libnghttp2 reads them",
        arguments: OutsideCorpus.encoders
    )
    func fieldBlocks(encoder: String) throws {
        var count = 0
        for (name, blocks) in try OutsideCorpus.stories(encoder) {
            var memory = FieldDecoderMemory()
            var whole = FieldDecoder()
            var pieces = FieldDecoder()
            let library = LibraryInflater()
            for (number, block) in blocks.enumerated() {
                let fields = Self.fields(block.wire, &whole, &memory, pieceBytes: .max)
                #expect(fields == block.fields, "\(name) \(number)")
                #expect(library.fields(block.wire) == block.fields, "\(name) \(number)")
                let again = Self.fields(block.wire, &pieces, &memory, pieceBytes: 1 + number % 13)
                #expect(again == block.fields, "\(name) \(number) in pieces")
                count += 1
            }
        }
        #expect(count >= 30, "\(encoder) has hardly a block")
    }

    @Test("Every frame that is an error ends its stream or the connection with one of the codes that are named for it")
    func errors() throws {
        let frames = try OutsideCorpus.frames().filter { !$0.errors.isEmpty }
        #expect(frames.count >= 20)
        for frame in frames {
            let fixture = SessionFixture()
            fixture.receive(frame.wire)
            let codes = fixture.produce().compactMap(\.errorCode)
            let isNamed = codes.allSatisfy { frame.errors.contains($0) }
            #expect(codes.count == 1 && isNamed, "\(frame.name): \(codes)")
        }
    }

    @Test("A frame that is none is taken, where its place allows it")
    func ordinary() throws {
        let frames = try OutsideCorpus.frames().filter { $0.errors.isEmpty }
        #expect(frames.count >= 8)
        // Those that only a server sends, or only behind another, or whose block is text and no fields.
        let misplaced = ["continuation/", "push_promise/", "headers/", "data/", "rst_stream/", "window_update/"]
        for frame in frames {
            let fixture = SessionFixture()
            fixture.receive(frame.wire)
            let codes = fixture.produce().compactMap(\.errorCode)
            let isMisplaced = misplaced.contains { frame.name.hasPrefix($0) }
            #expect(codes.isEmpty != isMisplaced, "\(frame.name): \(codes)")
        }
    }

    @Test("What clients and h2spec have sent is answered the same, whole and byte by byte, and leaves nothing behind")
    func connections() throws {
        let connections = try OutsideCorpus.connections()
        #expect(connections.count >= 100)
        var (served, refused) = (0, 0)
        for (name, bytes) in connections {
            let whole = SessionFixture(hasBegun: false)
            let pieces = SessionFixture(hasBegun: false)
            whole.receive(bytes)
            for byte in bytes { pieces.receive([byte]) }
            let events = whole.takeEvents()
            #expect(events == pieces.takeEvents(), "\(name)")
            let sent = whole.produceBytes()
            #expect(sent == pieces.produceBytes(), "\(name)")
            let errors = ScriptedPeer.frames(in: sent).compactMap(\.errorCode).filter { $0 > 0 }
            // A session that fails says so to its peer, once it has told it its settings.
            if whole.session.hasFailed { #expect(!errors.isEmpty, "\(name)") }
            if events.contains(where: { $0.hasPrefix("1 ") }) { served += 1 }
            if !errors.isEmpty { refused += 1 }
            for fixture in [whole, pieces] {
                fixture.session.end()
                #expect(fixture.memory.streams.usedCount == 0, "\(name)")
            }
        }
        #expect(served > 20 && refused > 20, "\(served) served, \(refused) refused of \(connections.count)")
    }
}

/// libnghttp2's decoder of field blocks.
@safe
private final class LibraryInflater {
    private var inflater: OpaquePointer?

    init() {
        let result = unsafe nghttp2_hd_inflate_new(&self.inflater)
        precondition(result == 0)
    }

    deinit { unsafe nghttp2_hd_inflate_del(self.inflater) }

    /// - Returns: nil for a fault.
    func fields(_ block: [UInt8]) -> [LibraryDeflater.Field]? {
        var fields: [LibraryDeflater.Field] = []
        var rest = block
        while true {
            var (field, flags) = unsafe (nghttp2_nv(), Int32(0))
            let taken = unsafe nghttp2_hd_inflate_hd2(self.inflater, &field, &flags, rest, rest.count, 1)
            guard taken >= 0 else { return nil }
            rest.removeFirst(taken)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                let name = unsafe UnsafeBufferPointer(start: field.name, count: field.namelen)
                let value = unsafe UnsafeBufferPointer(start: field.value, count: field.valuelen)
                unsafe fields.append(.init(name: Array(name), value: Array(value)))
            } else if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                let result = unsafe nghttp2_hd_inflate_end_headers(self.inflater)
                precondition(result == 0)
                return fields
            }
        }
    }
}
