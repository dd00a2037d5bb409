import Gateway
import Testing

/// The parts of a request that are parsed before the engine is involved: path, query and body.
@Suite("Faults of requests", .timeLimit(.minutes(15)))
struct RequestFaultTests {
    private static let device = "/v1/devices/" + String(repeating: "a1", count: 32)
    private static let wakes = "GET /v1/topics/t/wakes"
    private static let wake = "POST /v1/wakes/" + String(repeating: "0", count: 32)
    private static let longestReason = String(repeating: "é", count: 128)

    private func served(_ request: String, _ body: String = "") throws -> OperationService.Served {
        let service = try OperationService(requiresTokens: false, permitsTestPushes: true)
        let isOfWorker = request.contains("/wakes") || request.contains("/streams/")
        return service.serve(request, on: isOfWorker ? .edge : .admin, isLocal: true, body: body)
    }

    @Test(
        "An invalid request is refused with its reason",
        arguments: [
            ("GET /v1/topics/a%20b/wakes", "", "400 BadTopic"), ("\(wakes)?slots=4097", "", "400 BadQuery"),
            ("\(wakes)?slots=many", "", "400 BadQuery"), ("\(wakes)?slot=1", "", "400 BadQuery"),
            ("\(wakes)?device=xyz", "", "400 BadDeviceToken"), (wake, "newData", "400 BadResult"),
            ("POST /v1/wakes/short/extend", "", "404 UnknownWake"), ("\(wake)/extend", "[]", "400 BadExtension"),
            ("\(wake)/extend", #"{"seconds":0}"#, "400 BadExtension"),
            ("\(wake)/extend", #"{"seconds":"9"}"#, "400 BadExtension"),
            ("\(wake)/extend", #"{"seconds":86401}"#, "400 BadExtension"),
            ("\(wake)/extend", #"{"second":1}"#, "400 BadExtension"),
            ("\(wake)/release", "[]", "400 BadRelease"), ("\(wake)/release", #"{"reason":7}"#, "400 BadRelease"),
            ("\(wake)/release", #"{"reason":"\#(longestReason)x"}"#, "400 BadRelease"),
            ("\(wake)/release", #"{"why":"x"}"#, "400 BadRelease"),
            ("POST /v1/streams/0-0-0-1/drain", "", "404 UnknownStream"),
            ("POST /v1/topics/t/devices", #"{"token":"short"}"#, "400 BadDeviceToken"),
            ("PATCH \(device)/conditions", #"{"battery":0.5}"#, "400 BadCondition"),
            ("PATCH \(device)/conditions", #"{"batteryLevel":1.5}"#, "400 BadCondition"),
            ("PATCH \(device)/conditions", #"{"appState":"asleep"}"#, "400 BadCondition"),
            ("GET /v1/devices/xyz", "", "400 BadDeviceToken"),
            ("GET /v1/devices?sort=waiting&after=\(String(repeating: "a1", count: 32))", "", "400 BadQuery"),
            ("GET /v1/devices?sort=age", "", "400 BadQuery"),
            ("GET /v1/devices?state=asleep", "", "400 BadQuery"), ("GET /v1/devices?after=xyz", "", "400 BadQuery"),
            ("GET /v1/pushes?outcome=lost,late", "", "400 BadQuery"),
            ("GET /v1/pushes?since=2&until=2", "", "400 BadQuery"),
            ("GET /v1/stats?until=2", "", "400 BadQuery"), ("GET /v1/stats?since=2&until=1", "", "400 BadQuery"),
            ("GET /v1/pushes?after=xyz", "", "400 BadQuery"),
            ("GET /v1/pushes/no-such", "", "404 UnknownPush"),
            ("GET /v1/pushes/no-such?device=zz", "", "400 BadDeviceToken"),
            ("GET /v1/pushes/no-such?devise=1", "", "400 BadQuery"),
            ("GET \(device)/events?kind=pushes", "", "400 BadQuery"),
            ("GET /v1/samples?every=2", "", "400 BadQuery"), ("GET /v1/samples?every=", "", "400 BadQuery"),
            ("GET /v1/samples?devise=1", "", "400 BadQuery"), ("POST \(device)/push", "{}", "400 BadPush"),
            ("POST \(device)/push", #"{"payload":{},"priority":3}"#, "400 BadPush"),
            ("POST \(device)/push", #"{"payload":{},"topic":"a b"}"#, "400 BadTopic"),
            ("POST \(device)/push", #"{"payload":{},"x":1}"#, "400 BadPush"),
        ]
    )
    func refused(request: String, body: String, refusal: String) throws {
        let served = try self.served(request, body)
        #expect(served.refusal == refusal)
        #expect(served.message?.isEmpty == false)
    }

    @Test(
        "An invalid policy for what-if is refused with the parameter and its accepted values",
        arguments: [
            (#"{"policy":{"launchIntervall":1}}"#, "did you mean launchInterval?"),
            (#"{"policy":{"processingWindows":1}}"#, "did you mean processingWindow?"),
            (#"{"policy":{"continuedMax":0}}"#, "continuedMax is 0; it takes a whole number from 1 to 1000"),
            (#"{"policy":{"launchInterval":0}}"#, "launchInterval is 0; it takes a number of seconds"),
            (#"{"policy":{"maxAttempts":"many"}}"#, "maxAttempts is \"many\"; it takes a whole number"),
            (#"{"policies":{}}"#, "policies is not a member of a what-if"), (#"{}"#, "policy is missing"),
            ("[]", "not a JSON object"),
        ]
    )
    func policies(body: String, message: String) throws {
        let served = try self.served("POST \(Self.device)/what-if", body)
        #expect(served.refusal == "400 BadPolicy")
        #expect(served.message?.contains(message) == true, "\(served.message ?? "")")
    }

    @Test(
        "Another policy for a topic that cannot be tried is refused with the parameter and what it takes",
        arguments: [
            ("launchIntervall=1", "400 BadPolicy", "did you mean launchInterval?"),
            ("launchInterval=10m", "400 BadPolicy", "launchInterval is \"10m\"; it takes a number of seconds"),
            ("launchInterval", "400 BadPolicy", "launchInterval is \"\"; it takes a number of seconds"),
            ("maxAttempts=nan", "400 BadPolicy", "maxAttempts is \"nan\"; it takes a whole number"),
            ("maxAttempts=1&maxAttempts=2", "400 BadQuery", "maxAttempts may come only once"),
        ]
    )
    func topicPolicies(query: String, refusal: String, message: String) throws {
        let served = try self.served("GET /v1/topics/\(OperationService.topic)/what-if?\(query)", "")
        #expect(served.refusal == refusal)
        #expect(served.message?.contains(message) == true, "\(served.message ?? "")")
    }

    @Test(
        "Values at their limits are accepted, and optional values may be missing",
        arguments: [
            ("\(wake)/extend", #"{"seconds":86400}"#), ("\(wake)/extend", ""),
            ("\(wake)/release", #"{"reason":"\#(longestReason)"}"#), ("\(wake)/release", ""),
        ]
    )
    func taken(request: String, body: String) throws {
        #expect(try self.served(request, body).asked != nil)
    }

    @Test("Where operators' pushes are not permitted they are refused with the key that permits them")
    func testPushes() throws {
        let served = try OperationService().serve("POST \(Self.device)/push", isLocal: true, body: #"{"payload":{}}"#)
        #expect(served.refusal == "403 NotPermitted" && served.message?.contains("operatorTestPushes") == true)
    }
}
