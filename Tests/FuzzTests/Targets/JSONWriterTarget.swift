import Foundation
import Wire

/// The JSON that is written for untrusted bytes: as strings, and as a payload in an event.
enum JSONWriterTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        try self.checkString(input)
        try self.checkLine(input)
        let isCharacters = String(validating: input.array, as: UTF8.self) != nil
        try promise(input.isUTF8 == isCharacters, "the bytes are taken for UTF-8, or not, against the library")
    }

    private static func checkString(_ input: ByteView) throws(BrokenPromise) {
        var writer = JSONWriter()
        writer.beginArray()
        writer.string(input)
        writer.string(input)
        writer.endArray()
        let written = writer.buffer.view.array
        try self.checkCharacters(written)
        // The library also writes one U+FFFD for each maximal subpart.
        let text = input.string
        let read = try? JSONSerialization.jsonObject(with: Data(written)) as? [String]
        try promise(read == [text, text], "a string reads back otherwise")
        try promise(PayloadClassifier.classify(writer.buffer.view) == .notAnObject, "the gate refuses the written text")
    }

    private static func checkLine(_ input: ByteView) throws(BrokenPromise) {
        var buffer = ByteBuffer()
        buffer.appendJSONLine(input)
        let written = buffer.view.array
        try self.checkCharacters(written)
        try promise(written.count <= 3 * input.count, "a text grew past three times its size")
        let verdict = PayloadClassifier.classify(input)
        guard verdict != .notJSON else { return }
        try promise(PayloadClassifier.classify(buffer.view) == verdict, "the gate finds the line otherwise")
        guard let value = try? JSONReader.read(input.string) else { return }
        let read = try? JSONReader.read(buffer.view.string)
        try promise(read == value, "the line reads otherwise")
    }

    private static func checkCharacters(_ written: [UInt8]) throws(BrokenPromise) {
        guard let text = String(validating: written, as: UTF8.self) else { throw BrokenPromise("it is not UTF-8") }
        let endsLine = text.unicodeScalars.contains { [0x0A, 0x0D, 0x85, 0x2028, 0x2029].contains($0.value) }
        try promise(!endsLine, "it holds a character that ends a line")
    }
}
