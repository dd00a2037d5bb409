import Testing
import WakeWorker
import Wire

@Suite("Arguments of a worker", .timeLimit(.minutes(15)))
struct ArgumentTests {
    @Test(
        "A gateway, topic, number of slots or devices that cannot be used is named",
        arguments: [
            ("ftp://a", "t", 1, 0, "ftp://a"), ("https://", "t", 1, 0, "https://HOST:PORT"),
            ("https://a/b", "t", 1, 0, "https://a/b"), ("https://u@a", "t", 1, 0, "u@a"),
            ("https://a", "", 1, 0, "topic"),
            ("https://a", "t", 0, 0, "slots is 0"), ("https://a", "t", 4097, 0, "4096"),
            ("https://a", "t", 1, 65, "65 devices"),
        ]
    )
    func bad(gateway: String, topic: String, slots: Int, devices: Int, text: String) throws {
        let tokens = Array(repeating: "ab", count: devices)
        let error = try #require(throws: WakeWorkerError.self) {
            try WakeWorker(gateway: gateway, topic: topic, slots: slots, devices: tokens)
        }
        #expect(error.code == .badArgument)
        #expect(error.message.contains(text), "\(error)")
    }

    @Test("A valid gateway is accepted", arguments: ["https://a:2197", "http://[::1]:80/", "unix:/run/wakegate.sock"])
    func good(gateway: String) {
        #expect(throws: Never.self) { try WakeWorker(gateway: gateway, topic: "t") }
    }

    @Test(
        "A refusal of the token or the certificate is distinguished from one of the caller's network",
        arguments: [
            (401, "The token was revoked.", true, true), (403, "The token does not name this topic.", true, true),
            (403, "The client certificate is a provider's.", false, true),
            (403, "10.0.0.1 may not reach this gateway.", false, false),
            (403, "Requests for another host are refused.", false, false),
        ]
    )
    func refusedCredential(status: Int, message: String, hasChallenge: Bool, isCredentialRefused: Bool) async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let body = #"{"reason":"Forbidden","message":"\#(message)"}"#
        let headers = hasChallenge ? ["www-authenticate": "Bearer"] : [:]
        try await gateway.answer("GET", "/v1/topics/t/resources", status, body, headers: headers)
        let error = await #expect(throws: WakeWorkerError.self) { try await worker.supportedResources() }
        #expect(error?.code == .refused && error?.isCredentialRefused == isCredentialRefused)
    }

    @Test("A silence limit outside 20 to 300 seconds is refused")
    func silence() throws {
        for seconds in [20, 40, 300] {
            _ = try WakeWorker(gateway: "https://a", topic: "t", silenceLimit: .seconds(seconds))
        }
        for seconds in [0, 19, 301] {
            let error = try #require(throws: WakeWorkerError.self, "\(seconds) s") {
                try WakeWorker(gateway: "https://a", topic: "t", silenceLimit: .seconds(seconds))
            }
            #expect(error.code == .badArgument && error.message.contains("20 to 300 seconds"), "\(error)")
        }
    }

    @Test("Reports of the machine's conditions end without an error when their task is cancelled")
    func reportsCancelled() async throws {
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t")
        let token = String(repeating: "ab", count: 16)
        let reports = Task { try await worker.reportMachineConditions(for: token) }
        reports.cancel()
        try await reports.value
        await #expect(throws: WakeWorkerError.self) { try await worker.reportMachineConditions(for: "xyz") }
        await #expect(throws: WakeWorkerError.self) { try await worker.reportMachineConditions(for: token, []) }
    }

    @Test("A test's notification has a payload and a deadline, and cannot be extended")
    func notification() async throws {
        let notification = WakeNotification(topic: "t", payload: #"{"edition":7}"#, timeLeft: .seconds(20))
        #expect(try notification.payload(as: [String: Int].self) == ["edition": 7])
        #expect(notification.timeLeft > .seconds(10) && notification.timeLeft <= .seconds(20))
        let three = await notification.withExtendedTime { 3 }
        #expect(three == 3)
        await #expect(throws: WakeWorkerError.self) { try await notification.extend() }
        #expect(!"\(notification)".contains("edition"))
    }

    @Test("An invalid battery level or token is refused before it is sent")
    func conditions() async throws {
        let worker = try WakeWorker(gateway: "https://127.0.0.1:1", topic: "t")
        let conditions = {
            var conditions = DeviceConditions()
            conditions.batteryLevel = 1.5
            return conditions
        }()
        let token = String(repeating: "ab", count: 16)
        await #expect(throws: WakeWorkerError.self) { try await worker.report(conditions, for: token) }
        await #expect(throws: WakeWorkerError.self) { try await worker.unregister(deviceToken: "xyz") }
    }

    @Test("Nothing shows a token, however credentials are written")
    func secret() {
        let credentials = GatewayCredentials.bearerToken("s3cret").trusting(certificateAuthority: "/ca.pem")
        var dumped = ""
        dump(credentials, to: &dumped)
        for text in ["\(credentials)", String(reflecting: credentials), dumped] {
            #expect(!text.contains("s3cret"), "\(text)")
        }
    }
}

@Suite("Files of credentials that are written while they are read")
struct CredentialGracePeriodTests {
    enum Step {
        /// A token was read, and the gateway accepted it.
        case read(String)
        case accepted
        /// A file cannot be used, or a token is refused. The answer is true if the error may be temporary.
        case failed(Int64)
        case refused(Int64)
    }

    private static let limit = CredentialGracePeriod.limit

    @Test(
        "Credentials that worked get half a minute from the first fault, and a revoked token gets none",
        arguments: [
            // Credentials that never worked fail immediately.
            ([.failed(0), .read("new"), .refused(0), .failed(1)], [false, false, false]),
            (
                [
                    .read("one"), .accepted, .failed(5000), .failed(5000 + Self.limit - 1),
                    .failed(5000 + Self.limit),
                ],
                [true, true, false]
            ),
            // Credentials that work again get the full time again.
            (
                [
                    .read("one"), .accepted, .failed(0), .read("two"), .accepted, .failed(100_000),
                    .failed(100_000 + Self.limit - 1),
                ],
                [true, true, true]
            ),
            // A token that was accepted and then refused is revoked; another one may be incomplete.
            (
                [
                    .read("whole"), .accepted, .refused(0), .read("wh"), .refused(0), .refused(Self.limit - 1),
                    .refused(Self.limit), .read("whole"), .refused(1),
                ],
                [false, true, true, false, false]
            ),
        ] as [([Step], [Bool])]
    )
    func answers(steps: [Step], expected: [Bool]) {
        var gracePeriod = CredentialGracePeriod()
        let answers: [Bool] = steps.compactMap { step in
            switch step {
            case .read(let token): gracePeriod.read(token)
            case .accepted: gracePeriod.accepted()
            case .failed(let now): return gracePeriod.failed(now: now)
            case .refused(let now): return gracePeriod.refused(now: now)
            }
            return nil
        }
        #expect(answers == expected)
    }
}

@Suite("Events about wakes without a handler")
struct RefusedKindsTests {
    @Test("Each kind without a handler is reported once")
    func once() throws {
        let (refresh, session) = (try #require(WakeKind("appRefresh")), try #require(WakeKind("urlSession")))
        var kinds = RefusedKinds()
        let said = [refresh, refresh, session, refresh, session].map { kinds.isFirst($0) }
        #expect(said == [true, false, true, false, false])
    }

    @Test("The number of reported kinds is limited")
    func bound() throws {
        var kinds = RefusedKinds()
        let names = (1...100).map { String(repeating: "a", count: $0 % WakeKind.lengthMax + 1) }
        let said = names.count { name in WakeKind(name).map { kinds.isFirst($0) } == true }
        #expect(said == RefusedKinds.countMax)
    }
}
