import HTTPTransport
import Testing
import Wire

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
        var decoder = FieldDecoder()
        var memory = FieldDecoderMemory()
        var fields: [Int: [String]] = [:]
        for frame in frames where frame.type == 1 {
            let read = frame.payload.withByteView { block in
                var read: [String] = []
                do throws(FieldDecoder.Fault) {
                    try decoder.decode(block, isLast: true, in: &memory) { name, value, _ in
                        read.append("\(name.string)=\(value.string)")
                    }
                    return read
                } catch {
                    return ["a fault"]
                }
            }
            #expect(fields[frame.stream] == nil, "two heads for one stream")
            fields[frame.stream] = read
        }
        return fields
    }

    @Test("Each answer has its own fields, whichever streams were reset before theirs left")
    func resets() throws {
        let fixture = SessionFixture()
        for number in stride(from: 1, through: 11, by: 2) { fixture.receive(Peer.request("/wait", stream: number)) }
        for number: Int32 in [5, 1, 11, 3, 9, 7] { #expect(Self.answer(fixture, number)) }
        for number in [5, 11, 7] { fixture.receive(Peer.frame(3, stream: number, Peer.bytes(8))) }
        let frames = fixture.produce()
        let expected = [1, 3, 9].map { ($0, [":status=200", "x=\($0)"]) }
        #expect(try Self.fields(frames) == Dictionary(uniqueKeysWithValues: expected))
        // What was left of those that were reset is in nobody's way.
        fixture.receive(Peer.request("/wait", stream: 13))
        #expect(Self.answer(fixture, 13, body: "text"))
        #expect(try Self.fields(fixture.produce()) == [13: [":status=200", "x=13"]])
    }

    @Test("A peer that takes a table of another size is told so, before the fields")
    func tableSize() throws {
        let fixture = SessionFixture(settings: Peer.setting(1, 0))
        fixture.receive(Peer.request("/wait", stream: 1))
        #expect(Self.answer(fixture, 1))
        let head = try #require(fixture.produce().first { $0.type == 1 })
        #expect(head.payload.first == 0x20)
        #expect(try Self.fields([head]) == [1: [":status=200", "x=1"]])
    }
}
