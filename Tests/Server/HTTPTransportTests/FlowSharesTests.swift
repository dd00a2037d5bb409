import HTTPTransport
import Testing

/// Whose part of what a loop receives is large.
@Suite("The shares of flows")
struct FlowSharesTests {
    private let noisy = FlowShares.Place(flow: 1)
    private let quiet = FlowShares.Place(flow: 2)

    @Test("A part is large above a 32nd of all, and stays so down to a 64th")
    func parts() {
        var shares = FlowShares()
        shares.received(31 * 320_000, at: self.noisy)
        shares.received(320_000, at: self.quiet)
        #expect(shares.isLarge(self.noisy, wasLarge: false))
        #expect(!shares.isLarge(self.quiet, wasLarge: false))
        #expect(shares.isLarge(self.quiet, wasLarge: true))
        shares.received(33, at: self.quiet)
        #expect(shares.isLarge(self.quiet, wasLarge: false))
        shares.received(32 * 320_100, at: self.noisy)
        #expect(!shares.isLarge(self.quiet, wasLarge: true))
    }

    @Test("Nobody's part is large of little")
    func little() {
        var shares = FlowShares()
        shares.received(1, at: self.quiet)
        shares.received(FlowShares.bytesMin - 2, at: self.noisy)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(1, at: self.noisy)
        #expect(shares.isLarge(self.noisy, wasLarge: false))
    }

    @Test("A flow that is alone keeps nobody waiting, and one that has sent nothing does not wait")
    func alone() {
        var shares = FlowShares()
        shares.received(100 * FlowShares.bytesMin, at: self.noisy)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(0, at: self.quiet)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(1, at: self.quiet)
        #expect(shares.isLarge(self.noisy, wasLarge: false))
        #expect(!shares.isLarge(FlowShares.Place(flow: 3), wasLarge: true))
    }

    @Test("What came counts for half a second later: who has grown quiet is let go of, and who is alone again")
    func seconds() {
        var shares = FlowShares()
        shares.received(64 * FlowShares.bytesMin, at: self.noisy)
        shares.received(100, at: self.quiet)
        for _ in 0..<6 {
            #expect(shares.isLarge(self.noisy, wasLarge: true))
            shares.secondPassed()
        }
        // The quiet flow has one byte left of a hundred.
        #expect(shares.isLarge(self.noisy, wasLarge: true))
        shares.secondPassed()
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(2 * FlowShares.bytesMin, at: self.noisy)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(100 * FlowShares.bytesMin, at: self.quiet)
        shares.secondPassed()
        #expect(shares.isLarge(self.quiet, wasLarge: false))
        #expect(!shares.isLarge(self.noisy, wasLarge: false))
    }

    @Test("Flows have places by all bits of a number of that many, and small numbers have different ones")
    func places() {
        let count = UInt64(FlowShares.placeCount)
        #expect(Set((0..<count).map { FlowShares.Place(flow: $0) }).count == FlowShares.placeCount)
        #expect(FlowShares.Place(flow: count + 7) == FlowShares.Place(flow: 7))
        #expect(FlowShares.Place(flow: .max) == FlowShares.Place(flow: count - 1))
    }
}
