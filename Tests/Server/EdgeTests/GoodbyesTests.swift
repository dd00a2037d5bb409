import Gateway
import HTTPTransport
import Testing

@Suite("Whom a shutdown has told to end", .timeLimit(.minutes(15)))
struct GoodbyesTests {
    private let connection = ConnectionID(index: 3, generation: 1)

    private let other = ConnectionID(index: 4, generation: 1)

    @Test("A connection that asks nothing for a second is silent, and one that came just now is not")
    func silence() {
        var goodbyes = Goodbyes()
        #expect(!goodbyes.isDraining)
        goodbyes.begin()
        #expect(goodbyes.isDraining)
        let seconds = (0..<3).map { _ in goodbyes.isSilent(self.connection) }
        #expect(seconds == [false, true, true])
        let ofOther = goodbyes.isSilent(self.other)
        #expect(!ofOther)
    }

    @Test("Whoever was told is not told again, whether seen before or not")
    func told() {
        var goodbyes = Goodbyes()
        goodbyes.said(to: self.connection)
        _ = goodbyes.isSilent(self.other)
        goodbyes.said(to: self.other)
        let silent = [self.connection, self.other].filter { goodbyes.isSilent($0) }
        #expect(silent.isEmpty)
    }

    @Test("The next connection in the same place begins anew")
    func closed() {
        var goodbyes = Goodbyes()
        goodbyes.said(to: self.connection)
        goodbyes.connectionClosed(self.connection)
        let seconds = (0..<2).map { _ in goodbyes.isSilent(self.connection) }
        #expect(seconds == [false, true])
        let ofNext = goodbyes.isSilent(ConnectionID(index: 3, generation: 2))
        #expect(!ofNext)
    }
}
