import HTTPTransport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct StreamLimitTests {
    /// What happens to a limit of 10 that the peer has acknowledged, and the streams it is then held to.
    enum Step {
        case change(Int)
        case sent, acknowledged
    }

    @Test(
        "A lower limit holds once it is acknowledged, a higher one at once",
        arguments: [
            ([.change(1)], 10), ([.change(1), .sent], 10), ([.change(1), .sent, .acknowledged], 1),
            ([.change(20)], 20), ([.change(20), .sent, .acknowledged], 20),
            ([.change(1), .sent, .change(5), .sent, .acknowledged], 5),
            ([.change(1), .sent, .change(5), .sent, .acknowledged, .acknowledged], 5),
            ([.change(5), .sent, .change(1), .sent, .acknowledged], 5),
            ([.change(5), .sent, .change(1), .sent, .acknowledged, .acknowledged], 1),
            // An acknowledgement of nothing that was sent holds from then on.
            ([.change(1), .acknowledged], 10), ([.change(1), .acknowledged, .sent], 1),
            ([.acknowledged, .change(1), .sent], 10), ([.change(0), .sent, .acknowledged, .acknowledged], 0),
        ] as [([Step], Int)]
    )
    func enforced(steps: [Step], expected: Int) {
        var limit = StreamLimit(10)
        #expect(limit.enforced == 10)
        _ = limit.sent(now: 0)
        limit.acknowledged(now: 0)
        for step in steps {
            switch step {
            case .change(let number): _ = limit.change(to: number)
            case .sent: _ = limit.sent(now: 0)
            case .acknowledged: limit.acknowledged(now: 0)
            }
        }
        #expect(limit.enforced == expected)
    }

    @Test("Who acknowledges before it could is not waited for, and gains nothing from doing it more often")
    func early() {
        var limit = StreamLimit(10)
        limit.acknowledged(now: 0)
        limit.acknowledged(now: 0)
        _ = limit.sent(now: 1)
        #expect(limit.owedSince == nil)
        _ = limit.change(to: 5)
        _ = limit.sent(now: 2)
        #expect(limit.owedSince == 2)
        limit.acknowledged(now: 3)
        #expect(limit.owedSince == nil)
        #expect(limit.enforced == 5)
    }

    @Test("Numbers leave in the order in which they were announced, each once")
    func order() {
        var limit = StreamLimit(1000)
        let areTaken = [limit.change(to: 1), limit.change(to: 7)]
        #expect(areTaken == [true, true])
        let first = [limit.sent(now: 0), limit.sent(now: 0)]
        #expect(first == [1000, 1])
        #expect(limit.isUnsent)
        let rest = [limit.sent(now: 0), limit.sent(now: 0)]
        #expect(rest == [7, nil])
        #expect(!limit.isUnsent)
    }

    @Test("The newest number is announced again, whether it is acknowledged or not")
    func repeated() {
        var limit = StreamLimit(1000)
        let areTaken = [limit.repeatNewest(), limit.change(to: 3), limit.repeatNewest()]
        #expect(areTaken == [true, true, true])
        let sent = (0..<4).map { _ in limit.sent(now: 0) }
        #expect(sent == [1000, 1000, 3, 3])
        for _ in 0..<4 { limit.acknowledged(now: 0) }
        let isTaken = limit.repeatNewest()
        #expect(isTaken)
        #expect(limit.enforced == 3)
        #expect(limit.sent(now: 0) == 3)
    }

    @Test("A peer that acknowledges nothing is told no more than so many numbers")
    func bounded() {
        var limit = StreamLimit(1000)
        let areTaken = (0..<StreamLimit.unacknowledgedMax).map { limit.change(to: $0) }
        #expect(areTaken.filter { $0 }.count == StreamLimit.unacknowledgedMax - 1)
        #expect(areTaken.last == false)
        _ = limit.sent(now: 0)
        limit.acknowledged(now: 0)
        let isTaken = limit.change(to: 99)
        #expect(isTaken)
    }
}
