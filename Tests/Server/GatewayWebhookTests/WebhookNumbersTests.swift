import Gateway
import Testing

@Suite("The numbers of webhooks, and their places", .timeLimit(.minutes(15)))
struct WebhookNumbersTests {
    @Test("A place is used again once its webhook has ended, and a number never is")
    func reuse() {
        var numbers = WebhookNumbers()
        let begun = (0..<3).map { _ in numbers.begin() }
        #expect(begun.map(\.number) == [0, 1, 2] && begun.map(\.place) == [0, 1, 2])
        numbers.end(1)
        #expect(numbers.place(of: 1) == nil && numbers.place(of: 2) == 2)
        let next = numbers.begin()
        #expect(next == (3, 1))
        #expect(numbers.place(of: 1) == nil && numbers.place(of: 3) == 1)
        let last = numbers.begin()
        #expect(last == (4, 3) && numbers.placeCount == 4)
    }

    @Test("However many come and go, there are no more places than webhooks at a time")
    func bound() {
        var numbers = WebhookNumbers()
        var open: [UInt32] = []
        for round in 0..<1000 {
            open.append(numbers.begin().number)
            if open.count > 3 { numbers.end(open.remove(at: round % 3)) }
            #expect(Set(open.compactMap { numbers.place(of: $0) }).count == open.count)
        }
        #expect(numbers.placeCount == 4)
    }

    @Test("What has ended ends once")
    func twice() {
        var numbers = WebhookNumbers()
        let number = numbers.begin().number
        numbers.end(number)
        numbers.end(number)
        let places = (0..<2).map { _ in numbers.begin().place }
        #expect(places == [0, 1])
    }
}
