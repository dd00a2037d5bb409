import Testing
import WakeGateTestKit
import Wire

@Suite("Base64", .timeLimit(.minutes(15)))
struct Base64Tests {
    @Test(
        "The examples of RFC 4648, section 10, are spelt without padding, and read with it and without",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ]
    )
    func examples(bytes: String, padded: String) {
        let bare = String(padded.prefix { $0 != "=" })
        #expect(Base64.urlText(Array(bytes.utf8)) == bare)
        for text in [padded, bare] {
            #expect(text.withByteView { Base64.decoded($0) } == Array(bytes.utf8))
        }
    }

    @Test("Both alphabets are read, and that for URLs is written")
    func alphabets() {
        let bytes: [UInt8] = [0xFB, 0xEF, 0xFF]
        #expect(Base64.urlText(bytes) == "--__")
        for text in ["--__", "++//", "-+/_"] {
            #expect(text.withByteView { Base64.decoded($0) } == bytes)
        }
    }

    @Test("What is no base64 is nothing", arguments: ["A", "AAAAA", "AA A", "AA\n", "A=AA", "AAA*", "A===", "ÄAA"])
    func strangers(text: String) {
        #expect(text.withByteView { Base64.decoded($0) } == nil)
    }

    @Test("Whatever is written is read again")
    func everyLength() {
        var generator = SeededGenerator(seed: 4648)
        for count in 0..<100 {
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            #expect(Base64.urlText(bytes).withByteView { Base64.decoded($0) } == bytes)
        }
    }
}
