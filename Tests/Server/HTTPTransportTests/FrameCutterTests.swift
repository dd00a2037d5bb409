import HTTPTransport
import Testing
import Wire

@Suite("Pieces of field blocks are cut out of what a peer sends")
struct FrameCutterTests {
    private typealias Peer = ScriptedPeer

    /// The parts of a frame: bytes for the library, or the bytes of a block.
    private enum Part: Equatable {
        case other([UInt8])
        case begin(priority: [UInt8])
        case block([UInt8])
        case end
    }

    /// Cuts bytes that arrive in pieces of this size, and reports each part with the place of its end.
    private static func cut(_ bytes: [UInt8], pieceBytes: Int, _ report: (FrameCutter.Part, Int) -> Void) {
        var cutter = FrameCutter(frameBytesMax: 100)
        for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
            let end = min(bytes.count, start + pieceBytes)
            Array(bytes[start..<end]).withByteView { piece in
                var rest = piece
                while let part = cutter.next(&rest) { report(part, end - rest.count) }
                #expect(rest.isEmpty, "something is left")
            }
        }
    }

    /// Returns the parts of bytes that arrive in pieces of this size. Consecutive parts of one kind are merged.
    private static func parts(_ bytes: [UInt8], pieceBytes: Int) -> [Part] {
        var parts: [Part] = []
        Self.cut(bytes, pieceBytes: pieceBytes) { part, _ in
            switch part {
            case .other(let bytes), .begun(_, let bytes): Self.add(.other(bytes.array), to: &parts)
            case .block(let piece):
                if piece.beginsFrame { parts.append(.begin(priority: piece.priority.array)) }
                Self.add(.block(piece.bytes.array), to: &parts)
                if piece.endsFrame { parts.append(.end) }
            }
        }
        return parts
    }

    private static func add(_ part: Part, to parts: inout [Part]) {
        switch (parts.last, part) {
        case (.other(let before), .other(let more)): parts[parts.count - 1] = .other(before + more)
        case (.block(let before), .block(let more)): parts[parts.count - 1] = .block(before + more)
        case _: parts.append(part)
        }
    }

    private static let begin = Part.begin(priority: [])
    private static let settings = Peer.preface + Peer.frame(.settings, [])
    private static let data = Peer.frame(.data, flags: .endStream, stream: 1, [1, 2, 3])

    @Test("The parts do not depend on how the bytes are divided", arguments: Array(1...60) + [1000])
    func pieces(pieceBytes: Int) {
        let longest = [UInt8](repeating: 0x88, count: 100)
        let bytes =
            Self.settings + Peer.frame(.headers, flags: .endHeaders, stream: 1, [0x82, 0x84]) + Self.data
            + Peer.frame(
                .headers,
                flags: [.endHeaders, .padded, .priority],
                stream: 3,
                [2, 0, 0, 0, 0, 9, 0x83, 0, 0]
            )
            + Peer.frame(.headers, flags: .priority, stream: 5, [0, 0, 0, 1, 7, 0x85])
            + Peer.frame(.continuation, stream: 5, [])
            // The bit before a stream's number is ignored.
            + Peer.frame(.continuation, flags: .endHeaders, stream: 0x8000_0005, [0x86, 0x87]) + Self.data
        let last = Peer.frame(.headers, flags: .endHeaders, stream: 7, longest)
        let expected: [Part] = [
            .other(Self.settings), Self.begin, .block([0x82, 0x84]), .end, .other(Self.data),
            .begin(priority: [0, 0, 0, 0, 9]), .block([0x83]), .end,
            .begin(priority: [0, 0, 0, 1, 7]), .block([0x85]), .end,
            Self.begin, .block([]), .end, Self.begin, .block([0x86, 0x87]), .end, .other(Self.data),
            Self.begin, .block(longest), .end,
        ]
        #expect(Self.parts(bytes + last, pieceBytes: pieceBytes) == expected)
    }

    @Test(
        "Faulty frames are passed to the library unchanged",
        arguments: [
            // More padding than payload; no room for the length of the padding; no room for the priority; a frame that
            // is too long.
            Peer.frame(.headers, flags: [.endHeaders, .padded], stream: 1, [3, 0x82, 0]),
            Peer.frame(.headers, flags: [.endHeaders, .padded], stream: 1, []),
            Peer.frame(.headers, flags: [.endHeaders, .priority], stream: 1, [1, 2, 3, 4]),
            Peer.frame(.headers, flags: [.endHeaders, .padded, .priority], stream: 1, [0, 1, 2, 3, 4]),
            Peer.frame(.headers, flags: .endHeaders, stream: 1, [UInt8](repeating: 0, count: 101)),
            // A CONTINUATION without a block.
            Peer.frame(.continuation, flags: .endHeaders, stream: 1, [0x82]),
        ]
    )
    func faults(frame: [UInt8]) {
        for pieceBytes in [1, 3, 9, 10, 200] {
            let parts = Self.parts(Self.settings + frame + Self.data, pieceBytes: pieceBytes)
            #expect(parts == [.other(Self.settings + frame + Self.data)], "\(pieceBytes)")
            // A complete frame is returned without waiting for more.
            #expect(Self.parts(Self.settings + frame, pieceBytes: pieceBytes) == [.other(Self.settings + frame)])
        }
    }

    @Test(
        "A block continues only in CONTINUATION frames of its stream",
        arguments: [
            Peer.frame(.continuation, flags: .endHeaders, stream: 3, [0x82]),
            Peer.frame(.headers, flags: .endHeaders, stream: 1, [0x82]), Self.data,
        ]
    )
    func interruptions(frame: [UInt8]) {
        let bytes = Self.settings + Peer.frame(.headers, stream: 1, [0x82]) + frame
        let expected: [Part] = [.other(Self.settings), Self.begin, .block([0x82]), .end, .other(frame)]
        #expect(Self.parts(bytes, pieceBytes: 1) == expected)
        #expect(Self.parts(bytes, pieceBytes: 100) == expected)
    }

    @Test("The head of DATA and HEADERS is reported when the frame begins, HEADERS without a padding length")
    func begun() {
        let short =
            Peer.frame(.headers, flags: [.endHeaders, .padded], stream: 5, [])
            + Peer.frame(.data, flags: .padded, stream: 7, [])
        let bytes =
            Self.settings + Self.data + Peer.frame(.ping, [UInt8](repeating: 0, count: 8)) + Self.data
            + Peer.frame(.data, stream: 3, []) + short + Peer.frame(.headers, stream: 9, [0x82]) + Self.data
        for pieceBytes in [1, 7, 9, 1000] {
            var told: [String] = []
            Self.cut(bytes, pieceBytes: pieceBytes) { part, _ in
                guard case .begun(let head, _) = part else { return }
                told.append("\(head.streamNumber) \(head.length) \(head.isTooShortForPadding)")
            }
            // Not the last one, which interrupts a block.
            #expect(told == ["1 3 false", "1 3 false", "3 0 false", "5 0 true", "7 0 true"], "\(pieceBytes)")
        }
    }

    @Test("A part ends where a GOAWAY frame ends", arguments: [1, 2, 5, 9, 12, 20, 1000])
    func goAway(pieceBytes: Int) {
        let ping = Peer.frame(.ping, [UInt8](repeating: 0, count: 8))
        let before = Self.settings + Peer.frame(.goAway, [UInt8](repeating: 0, count: 8))
        let bytes = before + ping + Peer.frame(.goAway, []) + ping
        var ends: Set<Int> = [0]
        Self.cut(bytes, pieceBytes: pieceBytes) { _, end in ends.insert(end) }
        #expect(ends.isSuperset(of: [before.count, bytes.count - ping.count, bytes.count]))
    }

    @Test("An unfinished frame has one number until its last byte, and a block until its last frame")
    func unfinished() {
        var cutter = FrameCutter(frameBytesMax: 100)
        func numbers(_ bytes: [UInt8]) -> [Int] {
            bytes.map { byte in
                [byte].withByteView { piece in
                    var rest = piece
                    while cutter.next(&rest) != nil {}
                }
                return cutter.unfinishedFrame
            }
        }
        let preface = numbers(Peer.preface)
        #expect(preface.last == 0 && Set(preface.dropLast()).count == 1)
        for bytes in [Peer.frame(.settings, []), Self.data, Peer.frame(.goAway, [UInt8](repeating: 0, count: 50))] {
            let seen = numbers(bytes)
            #expect(seen.last == 0 && Set(seen.dropLast()).count == 1 && seen.first != 0)
        }
        let block = numbers(
            Peer.frame(.headers, flags: .padded, stream: 1, [1, 0x82, 0]) + Peer.frame(.continuation, stream: 1, [0x84])
                + Peer.frame(.continuation, flags: .endHeaders, stream: 1, [0x86])
        )
        #expect(block.last == 0 && Set(block.dropLast()).count == 1)
        #expect(numbers(Self.data).first != block.first)
    }
}

@Suite("The heads of answers", .timeLimit(.minutes(15)))
struct AnswerHeadTests {
    private typealias Peer = ScriptedPeer

    /// Answers with the number of the stream in a field.
    private static func answer(_ fixture: SessionFixture, _ number: Int32, body: StaticString? = nil) -> Bool {
        let response = Response()
        response.begin(status: 200)
        response.add("x", Int64(number))
        return fixture.session.respond(number, response, body: body.map { ByteView($0) })
    }

    private static func fields(_ frames: [Peer.Frame]) throws -> [Int: [String]] {
        var reading = FieldDecoderTests.Reading()
        var fields: [Int: [String]] = [:]
        for frame in frames where frame.type == .headers {
            #expect(fields[frame.stream] == nil, "two heads for one stream")
            try reading.read(frame.payload)
            fields[frame.stream] = FieldDecoderTests.text(reading.fields)
        }
        return fields
    }

    @Test("Each answer has its own fields, whichever streams were reset before theirs left")
    func resets() throws {
        let fixture = SessionFixture()
        for number in stride(from: 1, through: 11, by: 2) { fixture.receive(Peer.request("/wait", stream: number)) }
        for number: Int32 in [5, 1, 11, 3, 9, 7] { #expect(Self.answer(fixture, number)) }
        for number in [5, 11, 7] { fixture.receive(Peer.frame(.reset, stream: number, Peer.bytes(.cancel))) }
        let frames = fixture.produce()
        let expected = [1, 3, 9].map { ($0, [":status=200", "x=\($0)"]) }
        #expect(try Self.fields(frames) == Dictionary(uniqueKeysWithValues: expected))
        // The remaining frames of reset streams do not delay others.
        fixture.receive(Peer.request("/wait", stream: 13))
        #expect(Self.answer(fixture, 13, body: "text"))
        #expect(try Self.fields(fixture.produce()) == [13: [":status=200", "x=13"]])
    }
}

@Suite("The sessions of a loop pack their frames into one buffer")
struct SharedFrameBufferTests {
    private typealias Peer = ScriptedPeer

    @Test("Sessions that alternate frames send the same bytes as alone")
    func interleaved() {
        let first = SessionFixture()
        let fixtures = [first, SessionFixture(beside: first), SessionFixture(beside: first)]
        var sent: [[UInt8]] = [[], [], []]
        var bodies: [[UInt8]] = []
        for (index, fixture) in fixtures.enumerated() {
            // The windows are larger than any body, so that only the order of turns delays a frame.
            fixture.receive(Peer.update(1 << 20) + Peer.request("/wait", stream: 1) + Peer.request("/wait", stream: 3))
            fixture.receive(Peer.update(stream: 1, 1 << 20) + Peer.update(stream: 3, 1 << 20))
            let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7 &+ index * 85) }
            bodies.append(body)
            #expect(fixture.session.beginStreaming(1, Response()))
            #expect(body.withByteView { fixture.session.write(1, $0) } == body.count)
            fixture.session.finish(1)
            #expect(fixture.respond(3, body: "short"))
            fixture.receive(Peer.frame(.ping, [1, 2, 3, 4, 5, 6, 7, UInt8(index)]))
        }
        var turns = 0
        while turns < 1000 {
            var hasSent = false
            for (index, fixture) in fixtures.enumerated() {
                var output = ByteBuffer()
                // One frame per turn.
                fixture.session.produce(into: &output, bytesMax: 1)
                sent[index] += output.view.array
                hasSent = hasSent || !output.isEmpty
            }
            guard hasSent else { break }
            turns += 1
        }
        #expect(turns > 8)
        for (index, bytes) in sent.enumerated() {
            let frames = Peer.frames(in: bytes)
            let data = frames.filter { $0.type == .data && $0.stream == 1 }.flatMap(\.payload)
            #expect(data == bodies[index])
            #expect(frames.filter { $0.type == .data && $0.stream == 3 }.flatMap(\.payload) == Array("short".utf8))
            #expect(frames.contains { $0.type == .ping && $0.payload == [1, 2, 3, 4, 5, 6, 7, UInt8(index)] })
        }
    }

    @Test("A session that ends leaves the buffer to the other sessions")
    func ended() {
        let first = SessionFixture()
        do {
            let second = SessionFixture(beside: first)
            second.receive(Peer.request("/echo", stream: 1))
            #expect(!second.produce().isEmpty)
        }
        first.receive(Peer.request("/wait", stream: 1))
        #expect(first.respond(1, body: "still here"))
        #expect(first.produce().contains { $0.type == .data && $0.payload == Array("still here".utf8) })
    }
}
