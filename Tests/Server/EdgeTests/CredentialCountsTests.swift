import Gateway
import HTTPTransport
import Testing
import Wire

@Suite("Counting connections and streams by credential", .timeLimit(.minutes(15)))
struct CredentialCountsTests {
    /// The counts of two loops, which share their totals.
    private struct Loops {
        let tally = LimitTally<GatewayCountedLimit>()
        let rates: CredentialRates
        let one: CredentialCounts
        let other: CredentialCounts

        init(connectionsMax: Int, streamsMax: Int = 0, submissionsMax: Int = 0, progressMax: Int = 0) {
            let connections = ConnectionCounts<Credential>(connectionsMax: connectionsMax)
            let streams = ConnectionCounts<StreamHolder>(connectionsMax: streamsMax)
            var limits = GatewayLimits()
            limits.submissionsPerCredentialMax = submissionsMax
            limits.progressPerCredentialMax = progressMax
            let rates = CredentialRates(limits)
            self.rates = rates
            func counts(_ tally: LimitTally<GatewayCountedLimit>) -> CredentialCounts {
                CredentialCounts(connections: connections, workerStreams: streams, rates: rates, tally: tally)
            }
            self.one = counts(self.tally)
            self.other = counts(self.tally)
        }
    }

    private func connection(_ index: UInt32) -> ConnectionID { ConnectionID(index: index, generation: 1) }

    private func token(_ id: String) -> BearerToken { BearerToken(id: id, role: .worker, topics: [], expiresAt: 0) }

    /// Returns the reason for which a connection that shows a token is refused; nil if it is accepted.
    private func refusal(_ counts: CredentialCounts, _ id: String, on index: UInt32) -> String? {
        do {
            try counts.count(self.token(id), on: self.connection(index))
            return nil
        } catch {
            return error.reason
        }
    }

    @Test("A connection counts once for a token, across all loops, until it ends")
    func tokens() {
        let loops = Loops(connectionsMax: 2)
        #expect(self.refusal(loops.one, "a", on: 1) == nil)
        #expect(self.refusal(loops.one, "a", on: 1) == nil)
        #expect(self.refusal(loops.other, "a", on: 1) == nil)
        #expect(self.refusal(loops.other, "a", on: 2) == "TooManyRequests")
        #expect(self.refusal(loops.other, "b", on: 3) == nil)
        loops.one.connectionClosed(self.connection(1))
        #expect(self.refusal(loops.other, "a", on: 2) == nil)
    }

    @Test("A connection with several tokens counts for the last one that was accepted")
    func exchange() {
        let loops = Loops(connectionsMax: 1)
        #expect(self.refusal(loops.one, "a", on: 1) == nil)
        #expect(self.refusal(loops.one, "b", on: 1) == nil)
        #expect(self.refusal(loops.one, "a", on: 2) == nil)
        #expect(self.refusal(loops.one, "a", on: 1) == "TooManyRequests")
        #expect(self.refusal(loops.one, "b", on: 2) == "TooManyRequests")
    }

    @Test("A connection over the limit must end, which is reported once and counted once")
    func excess() {
        let loops = Loops(connectionsMax: 1)
        #expect(self.refusal(loops.one, "a", on: 1) == nil)
        for _ in 0..<3 { #expect(self.refusal(loops.one, "a", on: 2) == "TooManyRequests") }
        loops.one.exceeded(self.connection(3))
        #expect(loops.tally.times(.connectionsPerCredentialMax) == 2)
        #expect(loops.one.takeExcess() == [self.connection(2), self.connection(3)])
        #expect(loops.one.takeExcess().isEmpty && loops.other.takeExcess().isEmpty)
        #expect(self.refusal(loops.one, "a", on: 2) == "TooManyRequests")
        loops.one.connectionClosed(self.connection(2))
        #expect(loops.one.takeExcess().isEmpty)
    }

    @Test("A certificate's connections count under its subject, apart from tokens")
    func certificates() {
        let loops = Loops(connectionsMax: 1)
        #expect(self.refusal(loops.one, "CN=a", on: 1) == nil)
        #expect(loops.one.count(certificateOf: "CN=a"))
        #expect(!loops.other.count(certificateOf: "CN=a"))
        #expect(loops.tally.times(.connectionsPerCredentialMax) == 1)
        loops.one.uncount(certificateOf: "CN=a")
        #expect(loops.other.count(certificateOf: "CN=a"))
        #expect(loops.one.takeExcess().isEmpty && loops.other.takeExcess().isEmpty)
    }

    @Test("A stream counts under its holder until it has ended, and one that never counted ends without effect")
    func streams() throws {
        let loops = Loops(connectionsMax: 0, streamsMax: 1)
        let holder = StreamHolder.credential(.bearerToken("a"))
        let streams = (1...3).map { StreamID(connection: self.connection(1), number: $0) }
        try loops.one.count(streams[0], of: holder)
        #expect(throws: (any Error).self) { try loops.other.count(streams[1], of: holder) }
        #expect(loops.tally.times(.streamsPerCredentialMax) == 1)
        try loops.other.count(streams[1], of: .network(nil))
        loops.one.uncount(streams[2])
        #expect(throws: (any Error).self) { try loops.one.count(streams[2], of: holder) }
        loops.one.uncount(streams[0])
        loops.one.uncount(streams[0])
        try loops.other.count(streams[2], of: holder)
        #expect(throws: (any Error).self) { try loops.one.count(streams[0], of: holder) }
    }

    /// Returns the limit for which a request is refused; nil if it is accepted.
    private func refusal(_ counts: CredentialCounts, _ rate: CredentialRate, _ id: String, at now: Int64) -> String? {
        do {
            try counts.count(rate, of: .credential(.bearerToken(id)), now: now)
            return nil
        } catch {
            return "\(error.status) \(error.reason)"
        }
    }

    @Test("Requests are limited per credential and minute, across all loops")
    func rates() {
        let loops = Loops(connectionsMax: 0, submissionsMax: 2, progressMax: 1)
        #expect(self.refusal(loops.one, .submissions, "a", at: 120_000) == nil)
        #expect(self.refusal(loops.other, .submissions, "a", at: 150_000) == nil)
        #expect(self.refusal(loops.one, .submissions, "a", at: 179_999) == "429 TooManyRequests")
        #expect(self.refusal(loops.one, .submissions, "b", at: 179_999) == nil)
        #expect(self.refusal(loops.one, .progress, "a", at: 179_999) == nil)
        #expect(self.refusal(loops.other, .progress, "a", at: 179_999) == "429 TooManyRequests")
        #expect(self.refusal(loops.other, .submissions, "a", at: 180_000) == nil, "the next minute has begun")
        #expect(loops.tally.times(.submissionsPerCredentialMax) == 1)
        #expect(loops.tally.times(.progressPerCredentialMax) == 1)
    }

    @Test("Without a bound nothing is counted, and another bound holds at once")
    func otherRates() {
        let loops = Loops(connectionsMax: 0)
        for _ in 0..<1000 { #expect(self.refusal(loops.one, .submissions, "a", at: 0) == nil) }
        var limits = GatewayLimits()
        limits.submissionsPerCredentialMax = 1
        loops.rates.setLimits(limits)
        #expect(self.refusal(loops.one, .submissions, "a", at: 0) == nil)
        #expect(self.refusal(loops.one, .submissions, "a", at: 0) == "429 TooManyRequests")
    }
}
