import Foundation
import Glibc
import Testing

@Suite("Fault rules on the wire", .serialized, .timeLimit(.minutes(15)))
struct FaultModeTests {
    @Test("A reason of APNs is answered with its status, and counted; one that APNs does not have is not")
    func answers() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { reason: 'InternalServerError' } }",
            "{ when: { nth: 2 }, then: { reason: 'ExpiredToken' } }",
            "{ then: { status: 418, reason: 'Te\"apot', retryAfter: 7 } }"
        )
        let earliest = Int(Date(timeIntervalSinceNow: 0).timeIntervalSince1970 * 1000)
        for (status, reason) in [(500, "InternalServerError"), (410, "ExpiredToken"), (418, "Te\"apot")] {
            let answer = try faulty.gateway.push(FaultyGateway.device(1), topic: faulty.topic)
            #expect(answer.status == status && answer.reason == reason)
            #expect(answer.headers["apns-id"]?.isEmpty == false)
            #expect(answer.headers["content-type"] == "application/json")
            #expect(answer.headers["retry-after"] == (status == 418 ? "7" : nil))
            #expect((answer.integer("timestamp") ?? 0 >= earliest) == (status == 410), "\(answer.body)")
        }
        #expect(try faulty.rejected() == ["InternalServerError": 1, "ExpiredToken": 1])
        #expect(try faulty.accepted() == 0)
        #expect(try faulty.counts().values.filter { $0.fired == 1 }.count == 3)
        #expect(faulty.gateway.process.errors.contains("warning: rules[2].then.reason"))
    }

    @Test("Rules match by topic, type, priority, key and ordinal; other pushes are accepted")
    func picks() throws {
        let key = try Self.proof(keyID: "PICKEDKEY1")
        let faulty = try FaultyGateway(
            "{ id: 'key', when: { keyID: 'PICKEDKEY1' }, then: { reason: 'Forbidden' } }",
            "{ id: 'other', when: { topic: 'com.example.other' }, then: { reason: 'BadTopic' } }",
            "{ id: 'alert', when: { pushType: 'alert' }, then: { reason: 'InvalidPushType' } }",
            "{ id: 'ten', when: { priority: 10 }, then: { reason: 'BadPriority' } }",
            "{ id: 'third', when: { every: 3, per: 'device' }, times: 1, then: { reason: 'TooManyRequests' } }"
        )
        let batches = [[1], [1], [2], [1], [2], [2]]
        let texts = try faulty.frames(batches).dropFirst()
        // The third push to device 1 is refused, after which the rule is spent.
        #expect(texts == ["200 1", "200 3", "200 5", "429 7 TooManyRequests", "200 9", "200 11"])
        #expect(try faulty.frames([[3]], proof: key).last == "403 1 Forbidden")
        #expect(try faulty.gateway.push(FaultyGateway.device(3), topic: "com.example.other").reason == "BadTopic")
        // Refused pushes and dry runs are not matched by rules.
        #expect(try faulty.gateway.push("abcd", topic: "com.example.other").reason == "BadDeviceToken")
        func edge(_ fields: String...) throws -> String? {
            let all = (["apns-topic: \(faulty.topic)"] + fields).flatMap { ["-H", $0] }
            let url = "https://\(faulty.gateway.edge)/3/device/\(FaultyGateway.device(4))"
            let answer = try Answer.curl(faulty.gateway.curlOptions + all + ["-d", "{}", url])
            return answer.status == 200 ? "200" : answer.reason
        }
        #expect(try edge("apns-push-type: alert", "apns-priority: 5") == "InvalidPushType")
        #expect(try edge("apns-push-type: alert", "apns-priority: 5", "wakegate-dry-run: 1") == "200")
        #expect(try edge("apns-push-type: voip") == "BadPriority")
        let counts = try faulty.counts()
        #expect(counts["other"] == FaultyGateway.Counts(matched: 1, fired: 1))
        #expect(counts["alert"] == FaultyGateway.Counts(matched: 1, fired: 1))
        #expect(counts["third"] == FaultyGateway.Counts(matched: 10, fired: 1))
        #expect(try faulty.accepted() == 5)
    }

    @Test("A delayed push is overtaken by later ones, and then accepted or answered")
    func delay() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { delay: 1500 } }",
            "{ when: { nth: 2 }, then: { delay: 1000, reason: 'ServiceUnavailable' } }"
        )
        #expect(try faulty.frames([[1, 2, 3]]).dropFirst() == ["200 5", "503 3 ServiceUnavailable", "200 1"])
        #expect(try faulty.accepted() == 2)
        #expect(try faulty.rejected() == ["ServiceUnavailable": 1])
    }

    @Test("A delayed push is accepted even if its client has given up, unless GOAWAY refused it")
    func abandoned() throws {
        let faulty = try FaultyGateway(
            "{ id: 'first', when: { nth: 1 }, then: { delay: 1500 } }",
            "{ when: { nth: 2 }, then: { delay: 50, goaway: { inFlight: 'refuse' } } }",
            "{ when: { nth: 3 }, then: { delay: 300 } }",
            "{ when: { nth: 4 }, then: { delay: 900 } }"
        )
        let impatient = try self.beginPush(faulty)
        try faulty.gateway.eventually("a delayed push") { try faulty.counts()["first"]?.fired == 1 }
        try impatient.end(SIGKILL)
        let refused = try faulty.frames([[2, 3]]).dropFirst()
        #expect(refused == [#"goaway NO_ERROR 0 {"reason":"Shutdown"}"#, "end"])
        // The fourth push is answered only after the third would have been accepted.
        #expect(try faulty.frames([[4]]).last == "200 1")
        #expect(try faulty.counts().values.filter { $0.fired == 1 }.count == 4)
        try faulty.gateway.eventually("the first push") { try faulty.gateway.stats().integer("pushes", "noWake") == 1 }
        #expect(try faulty.accepted() == 1)
    }

    @Test("curl sees a reset, and libcurl retries only REFUSED_STREAM")
    func curl() throws {
        let faulty = try FaultyGateway(
            "{ id: 'refused', when: { nth: 1 }, then: { reset: 'REFUSED_STREAM' } }",
            "{ id: 'internal', when: { nth: 3 }, then: { reset: 'INTERNAL_ERROR' } }"
        )
        let repeated = try self.beginPush(faulty, "-w", "%{http_code}").finish()
        #expect(repeated.output == "200", "\(repeated.errors)")
        let ended = try self.beginPush(faulty).finish()
        #expect(ended.status == 92)
        #expect(ended.errors.contains("INTERNAL_ERROR (err 2)"), "\(ended.errors)")
        #expect(try faulty.counts().values.allSatisfy { $0.fired == 1 })
    }

    @Test("GOAWAY lets the streams in flight be answered, refuses them or drops them, and its connection ends")
    func goAway() throws {
        let data = #"{"reason":"Shutdown"}"#
        let answering = try FaultyGateway("{ when: { nth: 2 }, then: { goaway: 'Shutdown' } }")
        let answered = try answering.frames([[1, 2, 3]]).dropFirst()
        #expect(answered.last == "end")
        // The order of GOAWAY and the answers is not specified. Every push that GOAWAY lists is answered.
        #expect(Set(answered).isSuperset(of: ["200 1", "200 3"]), "\(answered)")
        let said = try #require(answered.first { $0.hasPrefix("goaway") })
        #expect(said == "goaway NO_ERROR 3 \(data)" || said == "goaway NO_ERROR 5 \(data)")
        #expect(answered.contains("200 5") == said.contains(" 5 "))
        #expect(try answering.accepted() == answered.filter { $0.hasPrefix("200") }.count)

        let refusing = try FaultyGateway(
            "{ when: { nth: 2 }, then: { goaway: { code: 'ENHANCE_YOUR_CALM', inFlight: 'refuse' } } }"
        )
        let refused = try refusing.frames([[1, 2, 3]]).dropFirst()
        #expect(Set(refused) == ["200 1", "goaway ENHANCE_YOUR_CALM 1 \(data)", "end"])
        #expect(try refusing.accepted() == 1)

        let dropping = try FaultyGateway(
            "{ when: { nth: 1 }, then: { goaway: { reason: 'BadCertificate', inFlight: 'drop' } } }"
        )
        let dropped = try dropping.frames([[1, 2, 3]]).dropFirst()
        #expect(dropped.count == 2 && dropped.last == "end")
        #expect(dropped.first?.hasPrefix("goaway NO_ERROR ") == true)
        #expect(dropped.first?.hasSuffix(#" {"reason":"BadCertificate"}"#) == true)
        #expect(try dropping.accepted() == 0)
        #expect(try dropping.frames([[1]]).last == "200 1")
    }

    @Test("A connection is closed silently, and later requests on it are not accepted")
    func close() throws {
        let faulty = try FaultyGateway("{ when: { nth: 2 }, then: { close: true } }")
        #expect(try faulty.frames([[1], [2, 3]]).dropFirst() == ["200 1", "end"])
        #expect(try faulty.accepted() == 1)
        #expect(try faulty.frames([[4]]).last == "200 1")
    }

    /// Sends a push whose answer the test does not await yet.
    private func beginPush(_ faulty: FaultyGateway, _ options: String...) throws -> ChildProcess {
        let url = "https://\(faulty.gateway.edge)/3/device/\(FaultyGateway.device(1))"
        let push = ["-H", "apns-topic: \(faulty.topic)", "-d", "{}", url]
        return try ChildProcess("curl", faulty.gateway.curlOptions + options + push)
    }

    @Test("A stuck push is never answered, and delays neither others nor a shutdown")
    func stuck() throws {
        let faulty = try FaultyGateway("{ when: { nth: 1 }, then: { stuck: true } }", set: "drainTimeout=600")
        #expect(try faulty.frames([[1, 2, 3]], open: 1).dropFirst() == ["200 3", "200 5"])
        #expect(try faulty.gateway.admin("/v1/faults/reset", "-X", "POST").status == 204)
        let waiting = try self.beginPush(faulty)
        try faulty.gateway.eventually("a stuck push") { try faulty.counts().values.first?.fired == 1 }
        faulty.gateway.process.send(SIGTERM)
        #expect(try waiting.finish().status != 0)
        #expect(try faulty.gateway.process.finish().status == 0)
    }

    @Test("A shutdown does not wait for a push that is still delayed and whose answer is then lost")
    func delayedStuck() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { delay: 3600000, dropReply: 'stuck' } }",
            set: "drainTimeout=600"
        )
        let waiting = try self.beginPush(faulty)
        try faulty.gateway.eventually("a delayed push") { try faulty.counts().values.first?.fired == 1 }
        faulty.gateway.process.send(SIGTERM)
        // 18: the stream was reset. 28 would mean that curl gave up after a minute.
        #expect(try waiting.finish().status == 18)
        #expect(try faulty.gateway.process.finish().status == 0)
    }

    @Test("A stream limit drops with a rejection and rises with the next success, as in openradar 27870881")
    func streamLimit() throws {
        let faulty = try FaultyGateway(
            "{ when: { every: 3 }, then: { reason: 'BadDeviceToken', streamLimit: { limit: 1, until: 'success' } } }"
        )
        let texts = try faulty.frames([[1], [2], [3], [4], [5]])
        #expect(
            texts == [
                "settings 1000", "200 1", "200 3", "settings 1", "400 5 BadDeviceToken", "settings 1000", "200 7",
                "200 9",
            ]
        )
    }

    @Test("A stream limit holds for a time, or ends with the rules")
    func timedStreamLimit() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { streamLimit: { limit: 2, for: 300 } } }",
            "{ when: { nth: 2 }, then: { streamLimit: 5 } }"
        )
        // `h2` would not open a third stream at this point. HTTP2VerbTests shows that one is refused.
        let texts = try faulty.frames([[1]], until: "settings 1000")
        #expect(texts.contains("settings 2"))
        #expect(try faulty.frames([[1, 2]]).contains("settings 5"))
    }

    @Test("The reply to a durable push is lost in three ways; the push and its repetition count once")
    func lostReply() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { dropReply: 'reset' } }",
            "{ when: { nth: 2 }, then: { dropReply: 'stuck' } }",
            "{ when: { nth: 3 }, then: { dropReply: 'close' } }"
        )
        #expect(try faulty.frames([[1], [2, 3]], open: 1).dropFirst() == ["reset 1 INTERNAL_ERROR", "end"])
        try faulty.gateway.eventually("three pushes") { try faulty.accepted() == 3 }
    }

    @Test(
        "An expired provider token makes its connection unusable, and is refused elsewhere until the rules are cleared"
    )
    func expiredToken() throws {
        let faulty = try FaultyGateway("{ when: { nth: 2 }, then: { expireToken: true } }")
        let expired = "ExpiredProviderToken"
        let texts = try faulty.frames([[1], [1], [1]], proof: "bearer a.b.c").dropFirst()
        #expect(texts == ["200 1", "403 3 \(expired)", "403 5 \(expired)"])
        #expect(
            try faulty.frames([[1], [1]], proof: "bearer a.b.c").suffix(2) == ["403 1 \(expired)", "403 3 \(expired)"]
        )
        #expect(try faulty.frames([[1]], proof: "bearer d.e.f").last == "200 1")
        // Another refused token ends the connection, as without the rule.
        let proofs = ["bearer a.b.c", "bearer a.b.c", "bearer d.e.f"]
        #expect(
            try faulty.frames([[1], [1], [1]], until: "end", proofs: proofs).suffix(6) == [
                "403 1 \(expired)", "403 3 \(expired)", "403 5 \(expired)", "goaway NO_ERROR 2147483647 ",
                #"goaway NO_ERROR 5 {"reason":"\#(expired)"}"#, "end",
            ]
        )
        #expect(try faulty.gateway.admin("/v1/faults", "-X", "DELETE").status == 204)
        #expect(try faulty.frames([[1]], proof: "bearer a.b.c").last == "200 1")
        #expect(try faulty.rejected() == [expired: 7])
        #expect(try faulty.accepted() == 3)
    }

    /// Returns a provider token with an invalid signature.
    private static func proof(keyID: String) throws -> String {
        func part(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacingOccurrences(of: "=", with: "")
        }
        let parts = [
            #"{"alg":"ES256","kid":"\#(keyID)"}"#, #"{"iss":"TEAM","iat":1}"#, String(repeating: "s", count: 64),
        ]
        return "bearer " + parts.map(part).joined(separator: ".")
    }
}
