import Engine
import Policy
import Testing

@Suite("How a push was sent, as the history keeps it")
struct PushTermsTests {
    private let now = Instant(milliseconds: 1_000_000)

    @Test("Each lifetime that fits is kept as it is; longer ones in minutes, up to the longest that a number can say")
    func lifetimes() {
        // Between them lie the minutes that are kept as seconds.
        for code in [UInt16](0...32_767) + [UInt16](33_315...UInt16.max) {
            #expect(PushTerms.Lifetime(code: code).code == code)
        }
        let kept: [(PushTerms.Lifetime, PushTerms.Lifetime)] = [
            (.unlimited, .unlimited), (.nowOrNever, .nowOrNever), (.seconds(0), .seconds(0)),
            (.seconds(1), .seconds(1)),
            (.seconds(32_765), .seconds(32_765)), (.seconds(32_800), .seconds(32_760)),
            (.seconds(86_400), .seconds(86_400)), (.seconds(.max / 1000), .seconds(32_767 * 60)),
        ]
        for (lifetime, expected) in kept { #expect(PushTerms.Lifetime(code: lifetime.code) == expected) }
    }

    @Test("An expiry is kept as the seconds that were left; one that had passed as none")
    func expiry() {
        func lifetime(_ milliseconds: Int64) -> PushTerms.Lifetime {
            PushTerms(.immediate, .at(Instant(milliseconds: milliseconds)), at: self.now).lifetime
        }
        #expect(lifetime(1_061_500) == .seconds(61))
        #expect(lifetime(5) == .seconds(0))
        #expect(PushTerms(.passive, .absent, at: self.now).lifetime == .unlimited)
        #expect(PushTerms(.passive, .nowOrNever, at: self.now).lifetime == .nowOrNever)
    }

    @Test("An event tells the terms of its push; one that was written without them, or is of something else, has none")
    func event() {
        let terms = PushTerms(priority: .immediate, lifetime: .seconds(60))
        let event = HistoryEvent(device: 1, at: self.now, kind: .push(.launched), terms: terms)
        #expect(event.terms == terms)
        #expect(HistoryEvent(device: 1, at: self.now, kind: .push(.launched)).terms == nil)
        #expect(HistoryEvent(device: 1, at: self.now, kind: .launch(attempt: 1, coalesced: 5)).terms == nil)
    }
}
