import HTTPTransport
import Testing
import Wire

@Suite("Pieces of field blocks are cut out of what a peer sends")
struct FrameCutterTests {
    private typealias Peer = ScriptedPeer

    /// What becomes of a frame: bytes for the library, or the bytes of a block.
    private enum Part: Equatable {
        case other([UInt8])
        case begin(priority: [UInt8])
        case block([UInt8])
        case end
    }

    /// The parts of what comes in pieces of a size, parts of one kind that follow each other taken together.
    private static func parts(_ bytes: [UInt8], pieceBytes: Int) -> [Part] {
        var cutter = FrameCutter(frameBytesMax: 100)
        var parts: [Part] = []
        for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
            Array(bytes[start..<min(bytes.count, start + pieceBytes)]).withByteView { piece in
                var rest = piece
                while let part = cutter.next(&rest) {
                    switch part {
                    case .other(let bytes), .begun(_, let bytes): Self.add(.other(bytes.array), to: &parts)
                    case .block(let piece):
                        if piece.beginsFrame { parts.append(.begin(priority: piece.priority.array)) }
                        Self.add(.block(piece.bytes.array), to: &parts)
                        if piece.endsFrame { parts.append(.end) }
                    }
                }
                #expect(rest.isEmpty, "something is left")
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
    private static let settings = Peer.preface + Peer.frame(4, [])
    private static let data = Peer.frame(0, flags: 1, stream: 1, [1, 2, 3])

    @Test("Wherever the bytes are parted, the parts are the same", arguments: 1...60)
    func pieces(pieceBytes: Int) {
        let bytes =
            Self.settings + Peer.frame(1, flags: 0x04, stream: 1, [0x82, 0x84]) + Self.data
            + Peer.frame(1, flags: 0x2C, stream: 3, [2, 0, 0, 0, 0, 9, 0x83, 0, 0])
            + Peer.frame(1, flags: 0x20, stream: 5, [0, 0, 0, 1, 7, 0x85]) + Peer.frame(9, flags: 0, stream: 5, [])
            + Peer.frame(9, flags: 4, stream: 5, [0x86, 0x87]) + Self.data
        let expected: [Part] = [
            .other(Self.settings), Self.begin, .block([0x82, 0x84]), .end, .other(Self.data),
            .begin(priority: [0, 0, 0, 0, 9]), .block([0x83]), .end,
            .begin(priority: [0, 0, 0, 1, 7]), .block([0x85]), .end,
            Self.begin, .block([]), .end, Self.begin, .block([0x86, 0x87]), .end, .other(Self.data),
        ]
        #expect(Self.parts(bytes, pieceBytes: pieceBytes) == expected)
    }

    @Test(
        "What the library objects to is left to it whole",
        arguments: [
            // More padding than payload; no room for the padding's length, nor for the priority; too long a frame.
            Peer.frame(1, flags: 0x0C, stream: 1, [3, 0x82, 0]), Peer.frame(1, flags: 0x0C, stream: 1, []),
            Peer.frame(1, flags: 0x24, stream: 1, [1, 2, 3, 4]),
            Peer.frame(1, flags: 0x2C, stream: 1, [0, 1, 2, 3, 4]),
            Peer.frame(1, flags: 0x04, stream: 1, [UInt8](repeating: 0, count: 101)),
            // CONTINUATION of nothing.
            Peer.frame(9, flags: 0x04, stream: 1, [0x82]),
        ]
    )
    func faults(frame: [UInt8]) {
        for pieceBytes in [1, 3, 9, 10, 200] {
            let parts = Self.parts(Self.settings + frame + Self.data, pieceBytes: pieceBytes)
            #expect(parts == [.other(Self.settings + frame + Self.data)], "\(pieceBytes)")
            // Nothing is waited for once the frame is there.
            #expect(Self.parts(Self.settings + frame, pieceBytes: pieceBytes) == [.other(Self.settings + frame)])
        }
    }

    @Test(
        "A block goes on in CONTINUATION frames of its stream alone",
        arguments: [
            Peer.frame(9, flags: 4, stream: 3, [0x82]), Peer.frame(1, flags: 4, stream: 1, [0x82]), Self.data,
        ]
    )
    func interruptions(frame: [UInt8]) {
        let bytes = Self.settings + Peer.frame(1, flags: 0, stream: 1, [0x82]) + frame
        let expected: [Part] = [.other(Self.settings), Self.begin, .block([0x82]), .end, .other(frame)]
        #expect(Self.parts(bytes, pieceBytes: 1) == expected)
        #expect(Self.parts(bytes, pieceBytes: 100) == expected)
    }

    @Test("The head of DATA is told when its frame begins, and that of HEADERS without the length of their padding")
    func begun() {
        let short = Peer.frame(1, flags: 0x0C, stream: 5, []) + Peer.frame(0, flags: 0x08, stream: 7, [])
        let bytes =
            Self.settings + Self.data + Peer.frame(6, [UInt8](repeating: 0, count: 8)) + Self.data
            + Peer.frame(0, stream: 3, []) + short + Peer.frame(1, stream: 9, [0x82]) + Self.data
        for pieceBytes in [1, 7, 9, 1000] {
            var cutter = FrameCutter(frameBytesMax: 100)
            var told: [String] = []
            for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
                Array(bytes[start..<min(bytes.count, start + pieceBytes)]).withByteView { piece in
                    var rest = piece
                    while let part = cutter.next(&rest) {
                        guard case .begun(let head, _) = part else { continue }
                        told.append("\(head.streamNumber) \(head.length) \(head.isTooShortForPadding)")
                    }
                }
            }
            // Not the last one, which interrupts a block.
            #expect(told == ["1 3 false", "1 3 false", "3 0 false", "5 0 true", "7 0 true"], "\(pieceBytes)")
        }
    }

    @Test("A frame that has not ended is the same one however its bytes come, and a block as long as it goes on")
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
        for bytes in [Peer.frame(4, []), Self.data, Peer.frame(7, [UInt8](repeating: 0, count: 50))] {
            let seen = numbers(bytes)
            #expect(seen.last == 0 && Set(seen.dropLast()).count == 1 && seen.first != 0)
        }
        let block = numbers(
            Peer.frame(1, flags: 0x08, stream: 1, [1, 0x82, 0]) + Peer.frame(9, stream: 1, [0x84])
                + Peer.frame(9, flags: 4, stream: 1, [0x86])
        )
        #expect(block.last == 0 && Set(block.dropLast()).count == 1)
        #expect(numbers(Self.data).first != block.first)
    }

    @Test("What is unfinished is so since it was found first, and another one anew")
    func unfinishedSince() {
        var unfinished = UnfinishedFrame()
        #expect(unfinished.unfinishedSince == nil)
        for now: Int64 in [10, 20, 30] { unfinished.note(4, now: now) }
        #expect(unfinished.unfinishedSince == 10)
        unfinished.note(5, now: 40)
        #expect(unfinished.unfinishedSince == 40)
        unfinished.note(0, now: 50)
        #expect(unfinished.unfinishedSince == nil)
    }

    @Test("The bit beside a stream's number means nothing")
    func reservedBit() {
        var last = Peer.frame(9, flags: 4, stream: 1, [0x84])
        last[5] |= 0x80
        let bytes = Self.settings + Peer.frame(1, flags: 0, stream: 1, [0x82]) + last
        let expected: [Part] = [
            .other(Self.settings), Self.begin, .block([0x82]), .end, Self.begin, .block([0x84]), .end,
        ]
        #expect(Self.parts(bytes, pieceBytes: 100) == expected)
    }

    @Test("A frame as long as frames may be is cut")
    func longest() {
        let block = [UInt8](repeating: 0x82, count: 100)
        let bytes = Self.settings + Peer.frame(1, flags: 0x04, stream: 1, block)
        let expected = [Part.other(Self.settings), Self.begin, .block(block), .end]
        #expect(Self.parts(bytes, pieceBytes: 1000) == expected)
        #expect(Self.parts(bytes, pieceBytes: 7) == expected)
    }
}
