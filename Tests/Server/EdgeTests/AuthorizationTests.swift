import Gateway
import Testing

@Suite("Who may ask for what")
struct AuthorizationTests {
    /// An operation with this rule, which is served everywhere.
    private func operation(_ role: AccessRule.Role, _ scope: AccessRule.Scope) -> Operation {
        Operation(
            "made-up",
            .get,
            "/v1/made-up/{topic}",
            on: .all,
            by: role,
            reaching: scope,
            answers: [200],
            afterFailedStore: .answered
        ) { _ in .asked(.statistics) }
    }

    /// What each caller gets: nobody, nonsense, a worker of another topic, a worker, an operator of the topic, an
    /// operator of all.
    private func answers(
        _ role: AccessRule.Role,
        _ scope: AccessRule.Scope,
        on listener: ListenerRole
    ) throws -> [String] {
        let desk = try OperationDesk([self.operation(role, scope)])
        let tokens = [
            nil, "wg1.e30.AAAA", try desk.token(.worker, OperationDesk.otherTopic),
            try desk.token(.worker, "x", OperationDesk.topic), try desk.token(.operator, OperationDesk.topic),
            try desk.token(.operator),
        ]
        return tokens.map { token in
            let served = desk.serve("GET /v1/made-up/\(OperationDesk.topic)", on: listener, token: token)
            return served.refusal.map { String($0.prefix(3)) } ?? (served.asked == nil ? "?" : "200")
        }
    }

    @Test("On the listeners of workers", arguments: [ListenerRole.edge, .plain])
    func workers(listener: ListenerRole) throws {
        let free = Array(repeating: "200", count: 6)
        #expect(try self.answers(.anybody, .nothing, on: listener) == free)
        #expect(try self.answers(.worker, .nothing, on: listener) == ["401", "401", "200", "200", "200", "200"])
        let ofTopic = try self.answers(.worker, .topicInPath, on: listener)
        #expect(ofTopic == ["401", "401", "403", "200", "200", "200"])
        // The engine knows whose it is.
        let ofSubject = try self.answers(.worker, .topicOfSubject, on: listener)
        #expect(ofSubject == ["401", "401", "200", "200", "200", "200"])
        #expect(try self.answers(.worker, .everyTopic, on: listener) == ["401", "401", "403", "403", "403", "200"])
        #expect(try self.answers(.operator, .nothing, on: listener) == ["401", "401", "403", "403", "200", "200"])
    }

    @Test("On a listener of operators that other machines reach, where every operation is theirs")
    func operators() throws {
        for role in [AccessRule.Role.worker, .operator] {
            #expect(try self.answers(role, .nothing, on: .admin) == ["401", "401", "403", "403", "200", "200"])
            #expect(try self.answers(role, .topicInPath, on: .admin) == ["401", "401", "403", "403", "200", "200"])
            #expect(try self.answers(role, .everyTopic, on: .admin) == ["401", "401", "403", "403", "403", "200"])
        }
    }

    @Test("What only a provider may do is for no token, on no listener", arguments: ListenerRole.allCases)
    func providers(listener: ListenerRole) throws {
        #expect(try Set(self.answers(.provider, .topicOfSubject, on: listener)) == ["404"])
    }

    @Test("The caller is who showed a token, in its role, and reaches the token's topics")
    func caller() throws {
        let desk = try OperationDesk([self.operation(.worker, .topicOfSubject)])
        let path = "GET /v1/made-up/\(OperationDesk.topic)"
        let bound = desk.serve(path, on: .edge, token: try desk.token(.worker, OperationDesk.topic))
        let caller = try #require(bound.asked?.caller)
        #expect(caller.role == .worker && caller.credential != nil)
        #expect(caller.reaches(OperationDesk.topic) && !caller.reaches(OperationDesk.otherTopic))
        let free = try #require(desk.serve(path, token: try desk.token(.operator)).asked?.caller)
        #expect(free.role == .operator && free.topics == .all)
        #expect(desk.countedTokens == 2)
    }

    @Test("Where nobody is asked, the listener says what a caller is, and everything is reached")
    func unasked() throws {
        let desk = try OperationDesk([self.operation(.worker, .topicOfSubject)], asksAnybody: false)
        let path = "GET /v1/made-up/\(OperationDesk.topic)"
        let worker = try #require(desk.serve(path, on: .plain).asked?.caller)
        #expect(worker.role == .worker && worker.credential == nil && worker.topics == .all)
        let local = try #require(desk.serve(path, isLocal: true).asked?.caller)
        #expect(local.role == .operator && local.credential == nil && local.topics == .all)
        #expect(desk.countedTokens == 0)
    }

    @Test("Nothing that is open to anybody reaches a topic")
    func anybody() throws {
        let desk = try OperationDesk()
        for operation in Operation.all where operation.access.role == .anybody {
            #expect(operation.access.scope == .nothing, "\(operation.name)")
        }
        guard case .outcome(_, let caller) = desk.serve("GET /") else {
            Issue.record("the page was refused")
            return
        }
        #expect(caller.topics == .only([]))
    }
}
