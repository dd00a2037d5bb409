import Testing
import Wire

@Suite("Tokens as tables keep them")
struct StoredDeviceTokenTests {
    private static func token(_ bytes: [UInt8]) throws -> DeviceToken {
        try #require(bytes.withByteView { DeviceToken(bytes: $0) })
    }

    @Test("A stored token is the one it was made of and no other", arguments: [16, 31, 32, 33, 96, 97, 99, 100])
    func lengths(_ count: Int) throws {
        let bytes = (0..<count).map { UInt8($0 + 1) }
        let token = try Self.token(bytes)
        let stored = StoredDeviceToken(token)
        defer { stored.deallocate() }
        #expect(stored.token == token)
        #expect(stored.matches(token))
        for index in 0..<count {
            var others = bytes
            others[index] ^= 0x80
            #expect(!stored.matches(try Self.token(others)))
        }
        // One of zeros is not one that ends before them.
        if count < 100 { #expect(!stored.matches(try Self.token(bytes + [0]))) }
        if count > 16 { #expect(!stored.matches(try Self.token(bytes.dropLast()))) }
        var written = ByteBuffer()
        stored.store(to: &written)
        #expect(written.view.array == [UInt8(count)] + bytes)
    }

    @Test("A token of the usual length takes up little more than its bytes")
    func size() {
        #expect(MemoryLayout<StoredDeviceToken>.size == 41)
    }
}
