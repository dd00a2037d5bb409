import Testing
import Wire

@Suite("W3C traceparent")
struct TraceParentTests {
    private static let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private static func written(_ parent: TraceParent) -> String {
        var buffer = ByteBuffer()
        parent.write(to: &buffer)
        return buffer.view.string
    }

    private static func read(_ text: String) -> TraceParent? { text.withByteView { TraceParent($0) } }

    @Test("What is read is written back byte for byte", arguments: ["00", "01", "02", "ff"])
    func roundTrip(flags: String) throws {
        let text = Self.text.dropLast(2) + flags
        #expect(Self.written(try #require(Self.read(String(text)))) == text)
    }

    @Test("Of a newer version the known parts are read, and written as version 00")
    func newer() throws {
        let parts = Self.text.dropFirst(2).dropLast(2)
        #expect(Self.written(try #require(Self.read("cc\(parts)03"))) == "00\(parts)01")
        #expect(Self.written(try #require(Self.read("01\(parts)02-what-comes"))) == "00\(parts)00")
        #expect(Self.read("01\(parts)01.what") == nil)
    }

    @Test(
        "What is not as the W3C text has it is ignored",
        arguments: [
            "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", text + "-", text + "0", " " + text,
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-B7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0A",
            "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ]
    )
    func ignored(text: String) {
        #expect(Self.read(text) == nil)
    }
}
