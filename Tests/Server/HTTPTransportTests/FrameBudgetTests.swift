import HTTPTransport
import Testing

@Suite("What a peer may still send that carries no request")
struct FrameBudgetTests {
    private static func budgets(burst: Int) -> FrameBudgets {
        var limits = TransportLimits()
        limits.controlFramesBurst = burst
        limits.controlFramesPerSecond = 1
        return FrameBudgets(limits, now: 0)
    }

    @Test("Updates of windows have a budget of their own")
    func updates() {
        var budgets = Self.budgets(burst: 2)
        #expect((0..<3).map { _ in budgets.updateReceived(now: 0) } == [true, true, false])
        #expect((0..<3).map { _ in budgets.controlFrameReceived(now: 0) } == [true, true, false])
    }

    @Test("A stream and the bytes of answers earn updates, a stream that ends in order one other frame")
    func earned() {
        var budgets = Self.budgets(burst: 10)
        func spend(_ receive: (inout FrameBudgets) -> Bool) -> Int {
            var count = 0
            while receive(&budgets) { count += 1 }
            return count
        }
        #expect(spend { $0.updateReceived(now: 0) } == 10)
        // The one that was too many counts as well.
        budgets.dataLeaves(4096)
        #expect(spend { $0.updateReceived(now: 0) } == 3)
        budgets.streamTaken()
        budgets.streamTaken()
        #expect(spend { $0.updateReceived(now: 0) } == 1)
        #expect(spend { $0.controlFrameReceived(now: 0) } == 10)
        budgets.streamClosed()
        budgets.streamClosed()
        #expect(spend { $0.controlFrameReceived(now: 0) } == 1)
    }

    @Test("CONTINUATION frames are counted by block, and are among the other frames")
    func continuations() {
        var budgets = Self.budgets(burst: 5)
        func receive() -> TransportLimit? { budgets.continuationReceived(max: 2, now: 0) }
        #expect((0..<3).map { _ in receive() } == [nil, nil, .continuationFramesMax])
        budgets.blockBegan()
        #expect((0..<2).map { _ in receive() } == [nil, nil])
        budgets.blockBegan()
        #expect((0..<2).map { _ in receive() } == [nil, .controlFramesPerSecond])
    }
}
