import HTTPTransport
import Testing
import Wire

@Suite("The encoder of field blocks")
struct FieldEncoderTests {
    private static func fields(_ response: Response) throws -> [String] {
        var fields: [String] = []
        var decoder = FieldDecoder()
        var memory = FieldDecoderMemory()
        try decoder.decode(response.block.view, isLast: true, in: &memory) { name, value, _ in
            fields.append("\(name.string)=\(value.string)")
        }
        return fields
    }

    @Test("Every status is the one that was meant", arguments: 200...999)
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

    @Test("A block is what RFC 7541 says it is")
    func bytes() {
        let response = Response()
        response.begin(status: 403)
        response.add("a", "bc")
        #expect(response.block.view.array == [0x08, 3, 0x34, 0x30, 0x33, 0x00, 1, 0x61, 2, 0x62, 0x63])
    }

    @Test("A response is filled anew, with constants, bytes and numbers")
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
