import Engine
import Gateway
import Policy
import Testing
import Wire

@Suite("Requests of background tasks, as passed to the engine", .timeLimit(.minutes(15)))
struct TaskOperationTests {
    private static let device = "/v1/devices/" + String(repeating: "a1", count: 16)

    private func served(_ request: String, _ body: String = "") throws -> OperationService.Served {
        try OperationService().serve(request, isLocal: true, body: body)
    }

    /// Returns the request that a body contains; nil if it is refused.
    private func submitted(_ body: String) throws -> IncomingTask? {
        guard try self.served("POST \(Self.device)/tasks", body).asked != nil else { return nil }
        return try body.withByteView { try IncomingTask(try RequestBody.object($0, reason: "BadTaskRequest")) }
    }

    @Test("Every field of every kind is read")
    func requests() throws {
        #expect(
            try self.submitted(#"{"identifier": "a.B-9_", "kind": "appRefresh"}"#)
                == IncomingTask(identifier: "a.B-9_", kind: .appRefresh)
        )
        #expect(
            try self.submitted(
                #"{"identifier": "a", "kind": "processing", "earliestBegin": 1700000000000, "#
                    + #""requiresNetworkConnectivity": true, "requiresExternalPower": true}"#
            )
                == IncomingTask(
                    identifier: "a",
                    kind: .processing([.network, .externalPower]),
                    earliestBegin: Instant(milliseconds: 1_700_000_000_000)
                )
        )
        #expect(
            try self.submitted(#"{"identifier": "a", "kind": "processing", "requiresExternalPower": false}"#)
                == IncomingTask(identifier: "a", kind: .processing([]))
        )
        #expect(
            try self.submitted(
                #"{"identifier": "a", "kind": "continued", "title": "Ä", "subtitle": "", "strategy": "fail", "#
                    + #""resources": ["gpu", "npu", "gpu"], "earliestBegin": 0}"#
            )
                == IncomingTask(
                    identifier: "a",
                    kind: .continued(.fail),
                    earliestBegin: Instant(milliseconds: 0),
                    details: TaskDetails(title: "Ä", subtitle: "", resources: ["gpu", "npu"])
                )
        )
        #expect(
            try self.submitted(#"{"identifier": "a", "kind": "continued"}"#)
                == IncomingTask(identifier: "a", kind: .continued(.queue))
        )
    }

    @Test("Names and texts are accepted up to their maximum length")
    func lengths() throws {
        func named(_ count: Int) -> String {
            #"{"identifier": "\#(String(repeating: "i", count: count))", "kind": "appRefresh"}"#
        }
        #expect(try self.submitted(named(255)) != nil)
        #expect(try self.submitted(named(256)) == nil)
        func titled(_ text: String) -> String {
            #"{"identifier": "a", "kind": "continued", "title": "\#(text)", "subtitle": "\#(text)"}"#
        }
        #expect(try self.submitted(titled(String(repeating: "ä", count: 128))) != nil)
        #expect(try self.submitted(titled(String(repeating: "ä", count: 128) + "x")) == nil)
        func needing(_ count: Int) -> String {
            let names = (0..<count).map { #""r\#($0)""# }.joined(separator: ",")
            return #"{"identifier": "a", "kind": "continued", "resources": [\#(names)]}"#
        }
        #expect(try self.submitted(needing(8)) != nil)
        #expect(try self.submitted(needing(9)) == nil)
    }

    @Test(
        "A wrong field is named, with the accepted values",
        arguments: [
            ("[]", "The body is not a JSON object"), ("{}", "identifier is missing"),
            (#"{"identifier": "a"}"#, "kind is missing"),
            (#"{"identifier": "a b", "kind": "appRefresh"}"#, #"identifier is "a b"; it takes 1 to 255 characters"#),
            (#"{"identifier": "", "kind": "appRefresh"}"#, "identifier is \"\""),
            (#"{"identifier": "a", "kind": "urlSession"}"#, #"kind is "urlSession"; it takes one of "appRefresh""#),
            (#"{"identifier": "a", "kind": 1}"#, "kind is 1"),
            (#"{"\ud800": 1}"#, "The body cannot be read: a surrogate stands alone"),
        ]
    )
    func faults(body: String, message: String) throws {
        let served = try self.served("POST \(Self.device)/tasks", body)
        #expect(served.refusal == "400 BadTaskRequest")
        #expect(served.message?.contains(message) == true, "\(served.message ?? "")")
    }

    @Test(
        "A field that its kind does not have, or with a wrong value, is named with the accepted ones",
        arguments: [
            ("appRefresh", #""titel": "x""#, "titel is not a field of a request; did you mean title?"),
            ("appRefresh", #""title": "x""#, "title is a field of continued alone"),
            ("continued", #""requiresExternalPower": true"#, "requiresExternalPower is a field of processing alone"),
            ("processing", #""strategy": "fail""#, "strategy is a field of continued alone"),
            ("appRefresh", #""earliestBegin": 1.5"#, "earliestBegin is 1.5"),
            ("appRefresh", #""earliestBegin": -1"#, "earliestBegin is -1"),
            ("appRefresh", #""earliestBegin": "soon""#, #"earliestBegin is "soon""#),
            ("appRefresh", #""earliestBegin": 1e300"#, "earliestBegin is 1e300"),
            (
                "processing", #""requiresNetworkConnectivity": 1"#,
                "requiresNetworkConnectivity is 1; it takes true or false"
            ),
            ("continued", #""strategy": "now""#, #"strategy is "now"; it takes one of "queue", "fail""#),
            ("continued", #""title": 5"#, "title is 5"),
            ("continued", #""title": "\ud800""#, "title cannot be read: a surrogate stands alone"),
            ("continued", #""resources": [{"b": "\udc00"}]"#, "resources cannot be read: a surrogate stands alone"),
            ("continued", #""resources": ["a b"]"#, "resources is a list"),
            ("continued", #""resources": "gpu""#, "resources is \"gpu\""),
        ]
    )
    func faults(kind: String, field: String, message: String) throws {
        try self.faults(body: #"{"identifier": "a", "kind": "\#(kind)", \#(field)}"#, message: message)
    }

    @Test(
        "A repeated name in an object of a body is refused by every operation",
        arguments: [
            ("POST \(device)/tasks", #"{"identifier": "a", "kind": "b", "kind": "b"}"#, "BadTaskRequest"),
            ("POST \(device)/sessions/a", #"{"finished": 1, "\u0066inished": 1}"#, "BadSession"),
            ("POST \(wake)", #"{"result": "newData", "result": "newData"}"#, "BadResult"),
            ("POST \(wake)/extend", #"{"seconds": 1, "seconds": 1}"#, "BadExtension"),
            ("POST \(wake)/progress", #"{"completed": 1, "total": 2, "total": 2}"#, "BadProgress"),
            ("POST \(wake)/progress", #"{"completed":1,"total":2,"title":"a","title":"a"}"#, "BadProgress"),
            ("PATCH \(device)/conditions", #"{"network": true, "network": true}"#, "BadCondition"),
            ("POST /v1/topics/a/devices", #"{"token": "aa", "token": "aa"}"#, "BadDeviceToken"),
            ("POST \(device)/push", #"{"payload": {"a": {"b": 1, "b": 1}}}"#, "BadPush"),
            ("POST \(device)/what-if", #"{"policy": {}, "policy": {}}"#, "BadPolicy"),
            ("POST /v1/backup", #"{"name": "a", "name": "a"}"#, "BadName"),
        ]
    )
    func repeatedNames(request: String, body: String, reason: String) throws {
        let service = try OperationService(requiresTokens: false, permitsTestPushes: true)
        let isOfWorker = request.contains("/wakes/")
        let served = service.serve(request, on: isOfWorker ? .edge : .admin, isLocal: true, body: body)
        #expect(served.refusal == "400 \(reason)")
        #expect(served.message?.contains("appears twice") == true, "\(served.message ?? "")")
    }

    @Test("Identifiers and sessions are read from the path")
    func paths() throws {
        let finished = #"{"finished": 100000, "id": "é"}"#
        let requests = [
            ("DELETE \(Self.device)/tasks/a.b", "", "a.b"), ("DELETE \(Self.device)/tasks", "", ""),
            ("POST \(Self.device)/tasks/a.b/simulate-launch", "", "a.b"),
            ("POST \(Self.device)/sessions/up", finished, "up"),
        ]
        let service = try OperationService()
        for (request, body, parameter) in requests {
            #expect(service.serve(request, isLocal: true, body: body).asked != nil, "\(request)")
            #expect(service.lastSecondParameter == parameter, "\(request)")
        }
        let read = try finished.withByteView {
            try FinishedTransfers(try RequestBody.object($0, reason: "BadSession"), session: "up")
        }
        #expect(read == FinishedTransfers(session: "up", count: 100_000, id: "é"))
        // A caller who names one request in the query must not cancel all of them.
        #expect(try self.served("DELETE \(Self.device)/tasks?identifier=a").refusal == "400 BadQuery")
        #expect(try self.served("DELETE \(Self.device)/tasks/a%20b").refusal == "400 BadTaskRequest")
        #expect(try self.served("DELETE /v1/devices/x/tasks/a").refusal == "400 BadDeviceToken")
        #expect(try self.served("POST \(Self.device)/sessions/", #"{"finished": 1}"#).refusal == "400 BadSession")
    }

    @Test(
        "A session's report has a count, and perhaps an id",
        arguments: [
            "", "{}", #"{"finished": 0}"#, #"{"finished": 100001}"#, #"{"finished": 1.5}"#, #"{"finished": "1"}"#,
            #"{"finished": 1, "id": 5}"#, #"{"finished": 1, "id": ""}"#, #"{"finished": 1, "count": 1}"#,
            #"{"finished": 1, "id": "\#(String(repeating: "x", count: 65))"}"#,
        ]
    )
    func badSessions(body: String) throws {
        #expect(try self.served("POST \(Self.device)/sessions/s", body).refusal == "400 BadSession")
    }

    @Test("All tasks are requested by topic, kind and state")
    func questions() throws {
        func question(_ query: String) throws -> TaskQuestion? {
            guard try self.served("GET /v1/tasks?\(query)").asked != nil else { return nil }
            return try query.withByteView { try TaskQuestion(query: $0) }
        }
        let some = TaskQuestion(topic: "a.b", kind: .urlSession, state: .running)
        #expect(try question("") == TaskQuestion())
        #expect(try question("state=running&kind=urlSession&topic=a.b") == some)
        for query in ["kind=push", "state=done", "states=running", "kind=appRefresh&kind=processing"] {
            #expect(try self.served("GET /v1/tasks?\(query)").refusal == "400 BadQuery", "\(query)")
        }
        #expect(try self.served("GET /v1/tasks?topic=").refusal == "400 BadTopic")
    }

    // MARK: Wakes

    private static let wake = "/v1/wakes/" + String(repeating: "0", count: 32)

    @Test("A push is answered with result, all else with success")
    func results() throws {
        let service = try OperationService(requiresTokens: false)
        func report(_ body: String) -> WakeReport? {
            guard service.serve("POST \(Self.wake)", on: .edge, body: body).asked != nil else { return nil }
            return body.withByteView { try? RequestBody.report($0) }
        }
        #expect(report(#"{"result": "noData"}"#) == .push(.noData))
        #expect(report(#"{"success": true}"#) == .task(.success))
        #expect(report(#"{"success": false}"#) == .task(.failure))
        // The form that workers write, and variants with one byte changed.
        for result in FetchResult.allCases {
            #expect(report("{\"result\":\"\(result.rawValue)\"}") == .push(result))
            #expect(report("{\"result\":\"\(result.rawValue)s\"}") == nil)
        }
        #expect(report(#"{"success":true}"#) == .task(.success))
        #expect(report(#"{"success":false}"#) == .task(.failure))
        #expect(report(#"{"success":null}"#) == nil)
        for body in ["{}", #"{"success": 1}"#, #"{"result": "new"}"#, #"{"success": true, "result": "newData"}"#] {
            #expect(service.serve("POST \(Self.wake)", on: .edge, body: body).refusal == "400 BadResult", "\(body)")
        }
    }

    @Test("Progress consists of two counts and optional texts")
    func progress() throws {
        let service = try OperationService(requiresTokens: false)
        func served(_ body: String) -> OperationService.Served {
            service.serve("POST \(Self.wake)/progress", on: .edge, body: body)
        }
        let title = String(repeating: "x", count: 256)
        let body = #"{"completed":9007199254740991, "total" : 0, "title": "\#(title)", "subtitle": "b"}"#
        #expect(served(body).asked != nil)
        let progress = try body.withByteView { try RequestBody.progress($0) }
        #expect(progress == TaskProgress(completed: 9_007_199_254_740_991, total: 0, title: title, subtitle: "b"))
        let bad = [
            "{}", #"{"completed":1,"total":2,}"#, #"{"completed":07,"total":2}"#, #"{"completed": 1}"#,
            #"{"completed": -1, "total": 1}"#, #"{"completed": 0.5, "total": 1}"#,
            #"{"completed": 9007199254740992, "total": 1}"#, #"{"completed": 1, "total": 1, "text": "a"}"#,
            #"{"completed": 1, "total": 1, "title": null}"#,
            #"{"completed": 1, "total": 1, "title": "\#(String(repeating: "x", count: 257))"}"#,
        ]
        for body in bad { #expect(served(body).refusal == "400 BadProgress", "\(body)") }
    }
}
