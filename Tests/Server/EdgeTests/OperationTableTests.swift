import Gateway
import Testing
import Wire

@Suite("Mapping requests to operations")
struct OperationTableTests {
    /// Returns the name of the operation with its parameter, or the allowed methods, or nil.
    private func match(_ method: String, _ path: String, _ role: ListenerRole) -> String? {
        method.withByteView { method in
            path.withByteView { path in
                switch OperationTable.gateway.match(method: method, path: path, on: role) {
                case .found(let operation, let parameters):
                    operation.path.text.count { $0 == "{" } < 2
                        ? "\(operation.name)(\(path[parameters.first].string))"
                        : "\(operation.name)(\(path[parameters.first].string), \(path[parameters.second].string))"
                case .methodNotAllowed(let allow): "allow \(allow)"
                case .notFound: nil
                }
            }
        }
    }

    private func path(of operation: Operation, _ parameter: String) -> String {
        operation.path.text.split(separator: "/", omittingEmptySubsequences: false)
            .map { $0.hasPrefix("{") ? parameter : String($0) }
            .joined(separator: "/")
    }

    @Test("Each operation is found where it is served, with its parameter, and nowhere else")
    func every() {
        for operation in Operation.all {
            for role in ListenerRole.allCases {
                let found = self.match("\(operation.method.name)", self.path(of: operation, "x"), role)
                let count = operation.path.text.count { $0 == "{" }
                let values = [String](repeating: "x", count: count).joined(separator: ", ")
                let expected = "\(operation.name)(\(values))"
                #expect((found == expected) == operation.listeners.contains(role), "\(operation.name) on \(role)")
                let head = self.match("HEAD", self.path(of: operation, "x"), role)
                if operation.takesHead, operation.listeners.contains(role) { #expect(head == expected) }
            }
        }
    }

    @Test("Operations differ in name and in method and path, and each path has one spelling")
    func unique() {
        #expect(Set(Operation.all.map(\.name)).count == Operation.all.count)
        let places = Operation.all.map { "\($0.method.name) \(self.path(of: $0, "{}"))" }
        #expect(Set(places).count == places.count)
        let spellings = Dictionary(grouping: Operation.all) { self.path(of: $0, "{}") }
        for (path, operations) in spellings { #expect(Set(operations.map(\.path)).count == 1, "\(path)") }
    }

    @Test(
        "Paths on the listener of operators",
        arguments: [
            ("GET", "/", "dashboard()"), ("GET", "/dashboard/main.js", "dashboardFile(main.js)"),
            ("GET", "/dashboard/", "dashboardFile()"), ("POST", "/dashboard", nil), ("GET", "", nil), ("GET", "*", nil),
            ("GET", "//", nil), ("GET", "/v1", nil), ("GET", "/v1/", nil), ("GET", "v1/stats", nil),
            ("GET", "/v1/stats", "statistics()"), ("GET", "/v1/stats/", nil), ("get", "/v1/stats", "allow GET, HEAD"),
            ("GET", "/v1/stats/topics/wakes", "topicStatistics(wakes)"), ("GET", "/v1/topics/topics/wakes", nil),
            ("GET", "/v1/devices/", "explainDevice()"), ("GET", "/v1/devices", "listDevices()"),
            ("GET", "/v1/pushes", "listPushes()"), ("POST", "/v1/pushes", "allow GET, HEAD"),
            ("POST", "/v1/devices", "allow GET, HEAD"), ("GET", "/v1/devices/ab", "explainDevice(ab)"),
            ("DELETE", "/v1/devices/ab", "removeDevice(ab)"), ("PUT", "/v1/devices/ab", "allow GET, HEAD, DELETE"),
            ("GET", "/v1/devices/ab/tasks", "listTasks(ab)"), ("GET", "/v1/tasks", "allTasks()"),
            ("PATCH", "/v1/devices/ab/tasks", "allow GET, HEAD, POST, DELETE"),
            ("DELETE", "/v1/devices/ab/tasks/a.b", "cancelTask(ab, a.b)"),
            ("DELETE", "/v1/devices/ab/tasks/", "cancelTask(ab, )"), ("DELETE", "/v1/devices/ab/tasks/a/b", nil),
            ("POST", "/v1/devices/ab/tasks/a.b/simulate-launch", "simulateTaskLaunch(ab, a.b)"),
            ("GET", "/v1/devices/ab/", nil), ("GET", "/v1/devices/ab/pushes/1", nil),
            ("POST", "/v1/devices//simulate-launch", "simulateLaunch()"), ("HEAD", "/v1/live", "allow GET"),
            ("GET", "/v1/faults/reset", "allow POST"), ("DELETE", "/v1/faults/reset", "allow POST"),
            ("DELETE", "/v1/faults/1", "removeFaultRule(1)"),
            ("PATCH", "/v1/faults", "allow GET, HEAD, PUT, POST, DELETE"), ("POST", "/3/device/ab", nil),
        ] as [(String, String, String?)]
    )
    func admin(method: String, path: String, expected: String?) {
        #expect(self.match(method, path, .admin) == expected)
    }

    @Test(
        "Paths on the listeners of workers",
        arguments: [
            ("GET", "/v1/topics/a/wakes", "subscribe(a)"), ("HEAD", "/v1/topics/a/wakes", "allow GET"),
            ("GET", "/v1/topics/topics/wakes", "subscribe(topics)"), ("POST", "/v1/wakes/1", "reportResult(1)"),
            ("POST", "/v1/wakes/1/extend", "extendWake(1)"), ("POST", "/v1/wakes/1/release", "releaseWake(1)"),
            ("GET", "/v1/wakes/1/release", "allow POST"), ("PUT", "/v1/devices/ab", "allow DELETE"),
            ("POST", "/v1/streams/0-1-1-1/drain", "drainStream(0-1-1-1)"), ("GET", "/v1/stats", nil),
            ("POST", "/v1/devices/ab/sessions/s", "transfersFinished(ab, s)"),
            ("GET", "/v1/topics/a/resources", "resources(a)"), ("GET", "/v1/tasks", nil),
            ("POST", "/v1/wakes/1/progress", "reportProgress(1)"),
            ("POST", "/v1/devices/ab/tasks/a.b/simulate-launch", nil),
            ("POST", "/v1/topics/a/devices", "registerDevice(a)"), ("GET", "/", nil), ("GET", "/healthz", nil),
        ] as [(String, String, String?)]
    )
    func edge(method: String, path: String, expected: String?) {
        #expect(self.match(method, path, .edge) == expected)
        #expect(self.match(method, path, .plain) == expected)
    }

    @Test("The route of pushes, which is found without the table, matches only the operation of pushes")
    func pushes() {
        for operation in Operation.all {
            for role in ListenerRole.allCases where operation.listeners.contains(role) {
                let isOfProviders = self.path(of: operation, "ab").withByteView {
                    Operation.isOfProviders(path: $0, on: role)
                }
                #expect(isOfProviders == (operation.access.role == .provider), "\(operation.name) on \(role)")
            }
        }
        #expect(!Operation.isOfProviders(path: ByteView("/3/device/ab"), on: .admin))
        // The provider API's check of a path agrees with the table.
        for (method, path) in [("POST", "/3/device/ab"), ("GET", "/3/device/ab"), ("POST", "/3/devices/ab")] {
            let found = self.match(method, path, .edge)
            let checked = method.withByteView { method in
                path.withByteView { path in
                    do throws(APNSReason) {
                        var token = DeviceToken()
                        _ = try PushTarget.readToken(method: method, path: path, into: &token)
                        return "push(\(path.dropFirst("/3/device/".utf8.count).string))"
                    } catch {
                        return error == .methodNotAllowed ? "allow POST" : "\(error)"
                    }
                }
            }
            #expect(checked == found ?? "badPath")
        }
    }
}

@Suite("The access rules of operations", .timeLimit(.minutes(15)))
struct DeclaredAccessTests {
    /// The operations by the required role and scope, and their handling after a failure of the store.
    private static let declared = """
        unauthenticated nothing answered: dashboard dashboardFile
        provider topicOfSubject refused: push
        worker topicInPath refused: registerDevice resources subscribe
        worker topicOfSubject answeredFromDurableState: conditions listTasks
        worker topicOfSubject refused: cancelTask cancelTasks drainStream extendWake releaseWake removeDevice \
            reportConditions reportProgress reportResult submitTask transfersFinished
        operator everyTopic answered: addFaultRule backUp clearFaultRules events faultRules listPushes live \
            metrics pushWay reload removeFaultRule replaceFaultRules resetFaultCounters samples
        operator everyTopic answeredFromDurableState: statistics
        operator nothing answered: alive openAPI ready version
        operator topicInPath answeredFromDurableState: topicStatistics topicWhatIf
        operator topicInPath refused: pauseTopic resumeTopic
        operator topicOfSubject answeredFromDurableState: allTasks deviceEvents devicePushes deviceTrace \
            diagnoseDevice explainDevice listDevices pendingPush topics whatIf
        operator topicOfSubject refused: dropPending simulateExpiration simulateLaunch simulateTaskExpiration \
            simulateTaskLaunch testPush
        """

    @Test("The declared access of each operation is the decided one")
    func table() {
        let found = Operation.all.map { operation in
            let rule = operation.access
            return "\(operation.name) \(rule.role) \(rule.scope) \(operation.afterFailedStore)"
        }
        let decided = Self.declared.split(separator: "\n").flatMap { line in
            let access = line.prefix { $0 != ":" }
            return line.dropFirst(access.count + 1).split(separator: " ").map { "\($0) \(access)" }
        }
        #expect(found.sorted() == decided.sorted())
    }
}

@Suite("Access by role and listener")
struct AuthorizationTests {
    /// Returns an operation with this rule on every listener.
    private func operation(_ role: AccessRule.Role, _ scope: AccessRule.Scope) -> Operation {
        Operation(
            "made-up",
            .get,
            "/v1/made-up/{topic}",
            on: .all,
            by: role,
            reaching: scope,
            afterFailedStore: .answered
        ) { _ in .asked(.statistics()) }
    }

    /// Returns the answers to each caller: without a token, with an invalid one, a worker of another topic, a worker,
    /// an operator of the topic, and an operator of all topics.
    private func answers(
        _ role: AccessRule.Role,
        _ scope: AccessRule.Scope,
        on listener: ListenerRole
    ) throws -> [String] {
        let service = try OperationService([self.operation(role, scope)])
        let tokens = [
            nil, "wg1.e30.AAAA", try service.token(.worker, OperationService.otherTopic),
            try service.token(.worker, "x", OperationService.topic),
            try service.token(.operator, OperationService.topic),
            try service.token(.operator),
        ]
        return tokens.map { token in
            let served = service.serve("GET /v1/made-up/\(OperationService.topic)", on: listener, token: token)
            return served.refusal.map { String($0.prefix(3)) } ?? (served.asked == nil ? "?" : "200")
        }
    }

    @Test("On the listeners of workers", arguments: [ListenerRole.edge, .plain])
    func workers(listener: ListenerRole) throws {
        let free = Array(repeating: "200", count: 6)
        #expect(try self.answers(.unauthenticated, .nothing, on: listener) == free)
        #expect(try self.answers(.worker, .nothing, on: listener) == ["401", "401", "200", "200", "200", "200"])
        let ofTopic = try self.answers(.worker, .topicInPath, on: listener)
        #expect(ofTopic == ["401", "401", "403", "200", "200", "200"])
        // Only the engine knows the topic.
        let ofSubject = try self.answers(.worker, .topicOfSubject, on: listener)
        #expect(ofSubject == ["401", "401", "200", "200", "200", "200"])
        #expect(try self.answers(.worker, .everyTopic, on: listener) == ["401", "401", "403", "403", "403", "200"])
        #expect(try self.answers(.operator, .nothing, on: listener) == ["401", "401", "403", "403", "200", "200"])
    }

    @Test("A listener of operators that other machines reach serves only them")
    func operators() throws {
        for role in [AccessRule.Role.worker, .operator] {
            #expect(try self.answers(role, .nothing, on: .admin) == ["401", "401", "403", "403", "200", "200"])
            #expect(try self.answers(role, .topicInPath, on: .admin) == ["401", "401", "403", "403", "200", "200"])
            #expect(try self.answers(role, .everyTopic, on: .admin) == ["401", "401", "403", "403", "403", "200"])
        }
    }

    @Test("A provider's operation is not reachable with a token, on any listener", arguments: ListenerRole.allCases)
    func providers(listener: ListenerRole) throws {
        #expect(try Set(self.answers(.provider, .topicOfSubject, on: listener)) == ["404"])
    }

    @Test("The caller has the token's role and topics")
    func caller() throws {
        let service = try OperationService([self.operation(.worker, .topicOfSubject)])
        let path = "GET /v1/made-up/\(OperationService.topic)"
        let bound = service.serve(path, on: .edge, token: try service.token(.worker, OperationService.topic))
        let caller = try #require(bound.asked?.caller)
        #expect(caller.role == .worker && caller.credential != nil)
        #expect(caller.reaches(OperationService.topic) && !caller.reaches(OperationService.otherTopic))
        let free = try #require(service.serve(path, token: try service.token(.operator)).asked?.caller)
        #expect(free.role == .operator && free.topics == .all)
        #expect(service.countedTokens == 2)
    }

    @Test("Without authentication the listener determines the caller's role, and all topics are in scope")
    func unasked() throws {
        let service = try OperationService([self.operation(.worker, .topicOfSubject)], requiresTokens: false)
        let path = "GET /v1/made-up/\(OperationService.topic)"
        let worker = try #require(service.serve(path, on: .plain).asked?.caller)
        #expect(worker.role == .worker && worker.credential == nil && worker.topics == .all)
        let local = try #require(service.serve(path, isLocal: true).asked?.caller)
        #expect(local.role == .operator && local.credential == nil && local.topics == .all)
        #expect(service.countedTokens == 0)
    }

    @Test("Operations that are open to every caller have no access to a topic")
    func anybody() throws {
        let service = try OperationService()
        for operation in Operation.all where operation.access.role == .unauthenticated {
            #expect(operation.access.scope == .nothing, "\(operation.name)")
        }
        guard case .outcome(_, let caller) = service.serve("GET /") else {
            Issue.record("the page was refused")
            return
        }
        #expect(caller.topics == .only([]))
    }
}
