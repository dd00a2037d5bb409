import Bytes
import Foundation
import Testing

@Suite("Writing JSON")
struct JSONWriterTests {
    @Test("Members and elements are separated, nested containers too")
    func separators() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("a")
        writer.beginArray()
        writer.endArray()
        writer.key("b")
        writer.beginArray()
        writer.integer(1)
        writer.beginObject()
        writer.endObject()
        writer.number(0.5)
        writer.number(.infinity)
        writer.endArray()
        writer.key("c" as String)
        writer.bool(true)
        writer.key("d")
        writer.null()
        writer.key("e")
        writer.raw(ByteView("[2]"))
        writer.endObject()
        let text = writer.buffer.view.string
        #expect(text == "{\"a\":[],\"b\":[1,{},0.5,null],\"c\":true,\"d\":null,\"e\":[2]}")
        writer.removeAll()
        writer.bool(false)
        let second = writer.buffer.view.string
        #expect(second == "false")
    }

    @Test("Any text reads back the same")
    func escapes() throws {
        let controls = String(String.UnicodeScalarView((0..<0x80).compactMap { Unicode.Scalar($0) }))
        for text in ["", controls, "\"\\/", "häßlich", "日本語", "🦊\u{2028}"] {
            var writer = JSONWriter()
            writer.beginArray()
            writer.string(text)
            writer.endArray()
            let data = Data(writer.buffer.view.array)
            #expect(try JSONSerialization.jsonObject(with: data) as? [String] == [text])
        }
    }
}
