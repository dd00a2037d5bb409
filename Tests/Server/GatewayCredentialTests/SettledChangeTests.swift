import Platform
import Testing

@Suite("Changes that have settled")
struct SettledChangeTests {
    @Test("A change is taken at the second look that finds it, once")
    func settled() {
        var change = SettledChange(1)
        let taken = [1, 2, 2, 2, 3, 3, 3].map { change.looked($0) }
        #expect(taken == [false, false, true, false, false, true, false])
    }

    @Test("What changes from look to look is not taken, and what comes back is no change")
    func unsettled() {
        var change = SettledChange(1)
        let taken = [2, 3, 4, 1, 1, 5, 1, 5, 5].map { change.looked($0) }
        #expect(taken.firstIndex(of: true) == 8)
    }

    @Test("What could not be taken is taken again at each look that finds it the same, until it can be")
    func failed() {
        var change = SettledChange(1)
        #expect([2, 2].map { change.looked($0) } == [false, true])
        for _ in 0..<3 {
            change.failed()
            let isTaken = change.looked(2)
            #expect(isTaken)
        }
        let isTaken = change.looked(2)
        #expect(!isTaken)
    }
}
