import Testing

@Suite("What iOS refuses of background tasks is refused by the same names", .serialized, .timeLimit(.minutes(15)))
struct TaskRefusalTests {
    private let topic = "com.example.tasks"
    private let device = "/v1/devices/" + String(repeating: "7a", count: 32)

    private func gateway(_ arguments: String...) throws -> RunningGateway {
        let gateway = try RunningGateway(arguments)
        let token = #"{"token":"\#(self.device.dropFirst("/v1/devices/".count))"}"#
        #expect(try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", token).status == 201)
        return gateway
    }

    /// The status and reason, or disposition, of a submission.
    private func submit(
        _ identifier: String,
        _ kind: String,
        _ members: String = "",
        to gateway: RunningGateway
    ) throws -> String {
        let body = #"{"identifier":"\#(identifier)","kind":"\#(kind)"\#(members)}"#
        let answer = try gateway.edge("\(self.device)/tasks", "-d", body)
        return "\(answer.status) \(answer.reason ?? answer.value("disposition") as? String ?? "")"
    }

    private func report(_ conditions: String, to gateway: RunningGateway) throws {
        #expect(try gateway.edge("\(self.device)/conditions", "-X", "PATCH", "-d", conditions).status == 200)
    }

    private func cancel(_ identifier: String, on gateway: RunningGateway) throws {
        #expect(try gateway.edge("\(self.device)/tasks/\(identifier)", "-X", "DELETE").status == 204)
    }

    @Test("An identifier in other letters is not permitted, nor what a pattern begins with alone")
    func notPermitted() throws {
        let gateway = try self.gateway("--set", "topics.\(self.topic).tasks=['com.example.refresh', 'x.export.*']")
        #expect(try self.submit("com.example.Refresh", "appRefresh", to: gateway) == "403 NotPermitted")
        #expect(try self.submit("x.export", "processing", to: gateway) == "403 NotPermitted")
        #expect(try self.submit("x.export.photos", "processing", to: gateway) == "201 scheduled")
        #expect(try self.submit("com.example.refresh", "appRefresh", to: gateway) == "201 scheduled")
    }

    @Test("Without background refresh no task is taken", arguments: ["denied", "restricted"])
    func unavailable(status: String) throws {
        let gateway = try self.gateway()
        try self.report(#"{"backgroundRefresh":"\#(status)"}"#, to: gateway)
        #expect(try self.submit("a", "appRefresh", to: gateway) == "409 Unavailable")
        #expect(try self.submit("a", "processing", to: gateway) == "409 Unavailable")
        try self.report(#"{"backgroundRefresh":"available"}"#, to: gateway)
        #expect(try self.submit("a", "appRefresh", to: gateway) == "201 scheduled")
    }

    @Test("One refresh and ten processing tasks wait, and one that is cancelled makes room for another")
    func tooMany() throws {
        let gateway = try self.gateway()
        #expect(try self.submit("r1", "appRefresh", to: gateway) == "201 scheduled")
        #expect(try self.submit("r2", "appRefresh", to: gateway) == "409 TooManyPendingTaskRequests")
        #expect(try self.submit("r1", "appRefresh", to: gateway) == "201 replaced")
        try self.cancel("r1", on: gateway)
        #expect(try self.submit("r2", "appRefresh", to: gateway) == "201 scheduled")
        for number in 1...10 { #expect(try self.submit("p\(number)", "processing", to: gateway) == "201 scheduled") }
        #expect(try self.submit("p11", "processing", to: gateway) == "409 TooManyPendingTaskRequests")
        try self.cancel("p3", on: gateway)
        #expect(try self.submit("p11", "processing", to: gateway) == "201 scheduled")
    }

    @Test("What is to run at once or never is refused while no worker is free for it")
    func immediate() throws {
        let gateway = try self.gateway()
        try self.report(#"{"appState":"active"}"#, to: gateway)
        let fails = #","strategy":"fail""#
        #expect(try self.submit("c", "continued", fails, to: gateway) == "409 ImmediateRunIneligible")
        #expect(try self.submit("c", "continued", to: gateway) == "201 scheduled")
        try self.cancel("c", on: gateway)
        let worker = try gateway.curlWorker(topic: self.topic, query: "&task=c")
        #expect(try self.submit("c", "continued", fails, to: gateway) == "201 launched")
        #expect(try worker.next()?.data["task"] as? String == "c")
    }
}
