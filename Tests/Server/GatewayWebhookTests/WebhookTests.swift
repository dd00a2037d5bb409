import Engine
import Gateway
import HTTPClient
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("How a webhook's answer is interpreted")
struct WebhookVerdictTests {
    private static func verdict(
        _ status: Int,
        _ body: String = "",
        retryAfter: Int? = nil,
        of kind: WakeKind = .push
    ) -> WebhookVerdict {
        var response = HTTPResponse(status: status, body: Array(body.utf8))
        response.retryAfterSeconds = retryAfter
        return WebhookVerdict(.success(response), of: kind)
    }

    @Test("A result is read from the body of a 200", arguments: FetchResult.allCases)
    func result(result: FetchResult) {
        #expect(Self.verdict(200, "{\"result\":\"\(result.rawValue)\"}") == .result(.push(result)))
        #expect(Self.verdict(200, " {\"a\": [1], \"result\" : \"\(result.rawValue)\"}\n") == .result(.push(result)))
    }

    @Test("204 means new data, and 202 a later result")
    func short() {
        #expect(Self.verdict(204) == .result(.push(.newData)))
        #expect(Self.verdict(202) == .accepted)
        #expect(Self.verdict(202, "{\"result\":\"failed\"}") == .accepted)
    }

    @Test(
        "The result of a task or session is success, true or false",
        arguments: [WakeKind.appRefresh, .processing, .continued, .urlSession]
    )
    func success(kind: WakeKind) {
        #expect(Self.verdict(200, "{\"success\":true}", of: kind) == .result(.task(.success)))
        #expect(Self.verdict(200, "{\"success\":false}", of: kind) == .result(.task(.failure)))
        #expect(Self.verdict(204, of: kind) == .result(.task(.success)))
        #expect(Self.verdict(202, of: kind) == .accepted)
        let cause = "it answered 200 to a \(kind.name) wake without success, true or false"
        for body in ["{}", "{\"result\":\"newData\"}", "{\"success\":1}", "{\"success\":null}"] {
            #expect(Self.verdict(200, body, of: kind) == .refused(cause: cause))
        }
    }

    @Test("A body that is not UTF-8 is refused, wherever the fault is")
    func outsideUTF8() {
        for body in [[0xFF], Array("{\"result\":\"newData\",\"a\":\"".utf8) + [0xE9] + Array("\"}".utf8)] as [[UInt8]] {
            let verdict = WebhookVerdict(.success(HTTPResponse(status: 200, body: body)), of: .push)
            #expect(verdict == .refused(cause: "it answered 200 with a body that is not UTF-8"))
        }
    }

    @Test(
        "A body without a result is refused",
        arguments: [
            ("with a body that is not a JSON object", ["", "ok", "[]", "\"newData\""]),
            (
                "without a result of newData, noData or failed",
                ["{}", "{\"result\":1}", "{\"result\":\"NewData\"}", "{\"success\":true}"]
            ),
        ]
    )
    func noResult(cause: String, bodies: [String]) {
        let refused = WebhookVerdict.refused(cause: "it answered 200 \(cause)")
        for body in bodies { #expect(Self.verdict(200, body) == refused, "\(body)") }
    }

    @Test(
        "Every other status is refused, and redirects with a remedy",
        arguments: [201, 206, 400, 404, 410, 429, 500, 503]
    )
    func refused(status: Int) {
        #expect(Self.verdict(status, "{\"result\":\"newData\"}") == .refused(cause: "it answered \(status)"))
        let redirect = "it answered 302, and redirects are not followed; set the final URL"
        #expect(Self.verdict(302) == .refused(cause: redirect))
    }

    @Test("A webhook that asks for a pause, which is a day at most, has not accepted the wake", arguments: [429, 503])
    func rest(status: Int) {
        for (asked, seconds) in [(7, 7), (0, 0), (.max, 86_400)] as [(Int, Int64)] {
            let cause = "it answered \(status) and asked for \(seconds) s of rest"
            let verdict = Self.verdict(status, retryAfter: asked)
            #expect(verdict == .undelivered(cause: cause, retryAfter: seconds * 1000))
        }
        #expect(Self.verdict(500, retryAfter: 7) == .refused(cause: "it answered 500"))
    }

    @Test("A missing answer counts as lost if the wake may have arrived, else as undelivered")
    func noAnswer() {
        func verdict(_ error: HTTPClientError) -> WebhookVerdict { WebhookVerdict(.failure(error), of: .push) }
        var error = HTTPClientError(.unreachable, "no connection")
        #expect(verdict(error) == .undelivered(cause: "no connection", retryAfter: nil))
        error.detail = "Connection refused"
        #expect(verdict(error) == .undelivered(cause: "Connection refused", retryAfter: nil))
        error.mayHaveArrived = true
        #expect(verdict(error) == .lost(cause: "Connection refused"))
        let large = HTTPClientError(.tooLarge, "the answer is too large")
        #expect(verdict(large) == .refused(cause: "it answered more than 65536 bytes"))
        let head = HTTPClientError(.headTooLarge, "the header fields of the answer are too large")
        let cause = "it answered with header fields of more than 98304 bytes; let it send fewer or shorter ones"
        #expect(verdict(head) == .refused(cause: cause))
    }

    @Test("The signature of time and body agrees with RFC 4231")
    func signature() throws {
        // openssl dgst -sha256 -hmac 0123456789abcdef
        let signature = try WebhookSignature.make(
            body: Array("{\"wake\":\"a\"}".utf8),
            timestamp: "1795268839",
            secret: Array("0123456789abcdef".utf8)
        )
        #expect(signature == "v1=5c55a6cbf6047b178e63d14851c3200825caf0996f83aaf246c9fccab2417b7b")
    }
}

@Suite("The circuit breaker of a webhook")
struct WebhookBreakerTests {
    /// A breaker with a separate clock and generator.
    private struct Rig {
        var breaker = WebhookBreaker()
        var generator = SeededGenerator(seed: 5)
        var now: Int64 = 0

        /// Records a failure of a wake that was just sent.
        mutating func fail(retryAfter: Int64? = nil) -> WebhookBreaker.Action {
            self.fail(round: self.breaker.round, retryAfter: retryAfter)
        }

        mutating func fail(round: UInt64, retryAfter: Int64? = nil) -> WebhookBreaker.Action {
            self.breaker.failed(round: round, at: self.now, retryAfter: retryAfter, using: &self.generator)
        }

        mutating func succeed() -> WebhookBreaker.Action { self.breaker.succeeded(round: self.breaker.round) }

        /// Records failures until the breaker rests.
        mutating func open() {
            for _ in 0..<WebhookBreaker.failuresMax { _ = self.fail() }
        }

        /// The duration of the rest; nil if the breaker does not rest.
        var rest: Int64? {
            if case .resting(let until) = self.breaker.state { until - self.now } else { nil }
        }

        /// Advances to the end of the rest.
        mutating func endRest() throws {
            self.now += try #require(self.rest)
            #expect(self.breaker.timePassed(self.now - 1) == .nothing)
            #expect(self.breaker.timePassed(self.now) == .probe)
        }
    }

    @Test("Consecutive failures start a rest, and a success in between restarts the count")
    func opens() throws {
        var rig = Rig()
        for _ in 1..<WebhookBreaker.failuresMax { #expect(rig.fail() == .nothing) }
        #expect(rig.succeed() == .nothing)
        for _ in 1..<WebhookBreaker.failuresMax { #expect(rig.fail() == .nothing) }
        #expect(rig.breaker.state == .active)
        let action = rig.fail()
        let rest = try #require(rig.rest)
        #expect((WebhookBreaker.firstPause / 2...WebhookBreaker.firstPause).contains(rest))
        #expect(action == .pause(until: rest))
        #expect(rig.breaker.failures == WebhookBreaker.failuresMax)
    }

    @Test("A successful probe closes the breaker completely")
    func recovers() throws {
        var rig = Rig()
        rig.open()
        try rig.endRest()
        #expect(rig.breaker.state == .probing)
        #expect(rig.succeed() == .recover)
        #expect(rig.breaker.state == .active && rig.breaker.failures == 0)
        rig.open()
        #expect(try #require(rig.rest) <= WebhookBreaker.firstPause)
    }

    @Test("Each unsuccessful rest doubles the next, up to a limit, and is randomized over its upper half")
    func backsOff() throws {
        var rig = Rig()
        rig.open()
        var rests: Set<Int64> = []
        for number in 1...20 {
            try rig.endRest()
            _ = rig.fail()
            let rest = try #require(rig.rest)
            let bound = min(WebhookBreaker.lastPause, WebhookBreaker.firstPause << Int64(number))
            #expect((bound / 2...bound).contains(rest), "rest \(number)")
            rests.insert(rest)
        }
        #expect(rests.count > 15, "the rests are not spread")
        #expect(rig.breaker.failures == WebhookBreaker.failuresMax + 20)
    }

    @Test("Results of wakes of an earlier round are ignored")
    func rounds() throws {
        var rig = Rig()
        let before = rig.breaker.round
        rig.open()
        let resting = rig.breaker.state
        #expect(rig.fail(round: before) == .nothing && rig.breaker.state == resting)
        #expect(rig.breaker.succeeded(round: before) == .nothing && rig.breaker.state == resting)
        try rig.endRest()
        #expect(rig.fail(round: before) == .nothing && rig.breaker.state == .probing)
        #expect(rig.breaker.succeeded(round: before) == .nothing && rig.breaker.state == .probing)
        #expect(rig.succeed() == .recover)
        #expect(rig.fail(round: before) == .nothing && rig.breaker.failures == 0)
    }

    @Test("A webhook that asks for a rest gets it immediately, within limits")
    func retryAfter() throws {
        var rig = Rig()
        #expect(rig.fail(retryAfter: 30_000) == .pause(until: 30_000))
        #expect(rig.fail(retryAfter: 20_000) == .nothing)
        #expect(rig.fail(retryAfter: 40_000) == .pause(until: 40_000))
        try rig.endRest()
        #expect(rig.fail(retryAfter: 0) == .pause(until: 40_000 + WebhookBreaker.firstPause))
        try rig.endRest()
        let start = rig.now
        #expect(rig.fail(retryAfter: .max / 2) == .pause(until: start + WebhookBreaker.retryAfterMax))
        // The requested rest applies whenever the answered wake was sent.
        var late = Rig()
        let round = late.breaker.round
        late.open()
        #expect(late.fail(round: round, retryAfter: 600_000) == .pause(until: 600_000))
    }

    @Test("A timer that is not needed changes nothing")
    func timers() throws {
        var rig = Rig()
        #expect(rig.breaker.timePassed(.max) == .nothing)
        rig.open()
        try rig.endRest()
        #expect(rig.breaker.timePassed(.max) == .nothing && rig.breaker.state == .probing)
    }

    @Test("After any sequence of failures a working webhook is used again", arguments: 0..<20 as Range<UInt64>)
    func converges(seed: UInt64) throws {
        var rig = Rig()
        rig.generator = SeededGenerator(seed: seed)
        var rests = 0
        for _ in 0..<500 {
            rig.now += Int64.random(in: 0..<3000, using: &rig.generator)
            _ = rig.breaker.timePassed(rig.now)
            let round = rig.breaker.round &- UInt64.random(in: 0...1, using: &rig.generator)
            if Bool.random(using: &rig.generator) {
                _ = rig.breaker.succeeded(round: round)
            } else if case .pause = rig.fail(round: round, retryAfter: rig.now % 7 == 0 ? 5000 : nil) {
                rests += 1
            }
        }
        #expect(rests > 5, "seed \(seed): it hardly rested")
        if let rest = rig.rest { #expect(rig.breaker.timePassed(rig.now + rest) == .probe) }
        _ = rig.succeed()
        #expect(rig.breaker.state == .active && rig.breaker.failures == 0, "seed \(seed)")
    }
}
