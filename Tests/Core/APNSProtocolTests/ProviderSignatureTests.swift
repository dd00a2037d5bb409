import Testing
import Wire

@Suite("Reading an ES256 signature")
struct ProviderSignatureTests {
    private func read(_ bytes: [UInt8]) -> [UInt8]? {
        bytes.withByteView { ProviderSignature($0)?.bytes }
    }

    private func integer(_ digits: [UInt8]) -> [UInt8] { [0x02, UInt8(digits.count)] + digits }

    private func sequence(_ body: [UInt8]) -> [UInt8] { [0x30, UInt8(body.count)] + body }

    private let zeros = [UInt8](repeating: 0, count: 31)

    @Test("64 bytes are R and S as they are, even when they look like DER")
    func raw() {
        #expect(self.read([UInt8](1...64)) == [UInt8](1...64))
        let der = self.sequence(self.integer([UInt8](repeating: 1, count: 30)) + self.integer([UInt8](1...28)))
        #expect(der.count == 64)
        #expect(self.read(der) == der)
    }

    @Test("DER numbers of any length are brought to 32 bytes")
    func der() {
        let long = [UInt8](repeating: 0xFF, count: 32)
        #expect(self.read(self.sequence(self.integer([0] + long) + self.integer([7]))) == long + self.zeros + [7])
        #expect(self.read(self.sequence(self.integer([7]) + self.integer([0] + long))) == self.zeros + [7] + long)
        #expect(
            self.read(self.sequence(self.integer([0, 0, 7]) + self.integer([0]))) == self.zeros + [7] + self.zeros + [0]
        )
    }

    @Test("Every other sequence of bytes is refused, and every beginning of a good one")
    func faults() {
        let good = self.sequence(self.integer([1, 2]) + self.integer([3, 4]))
        for count in 0..<good.count { #expect(self.read(Array(good[..<count])) == nil, "\(count) bytes") }
        #expect(self.read(good + [0]) == nil)
        #expect(self.read(self.sequence(self.integer([1]))) == nil)
        #expect(self.read(self.sequence(self.integer([1]) + self.integer([2]) + self.integer([3]))) == nil)
        #expect(self.read(self.sequence(self.integer([0x80]) + self.integer([1]))) == nil)
        #expect(self.read(self.sequence(self.integer([]) + self.integer([1]))) == nil)
        #expect(self.read(self.sequence([0x04, 1, 1] + self.integer([1]))) == nil)
        #expect(self.read(self.sequence([0x02, 9, 1] + self.integer([1]))) == nil)
        #expect(self.read(self.sequence(self.integer([1] + self.zeros + [1]) + self.integer([1]))) == nil)
        #expect(self.read([0x31] + good.dropFirst()) == nil)
        #expect(self.read([0x30, 0x81, 6] + good.dropFirst(2)) == nil)
    }
}
