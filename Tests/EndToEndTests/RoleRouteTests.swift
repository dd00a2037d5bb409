import Foundation
import Testing

@Suite("Who may do what, route by route", .serialized, .timeLimit(.minutes(3)))
struct RoleRouteTests {
    /// Who asks: with nothing, with nonsense, with a token of another gateway, or in a role and a topic.
    enum Caller: String, CaseIterable {
        case nobody, garbage, stranger, otherWorker, otherOperator, worker, topicOperator, operatorOfAll
    }

    /// One request, and the status each caller gets.
    struct Row {
        let method: String
        let path: String
        var body: String?
        /// In the order of `Caller.allCases`.
        let statuses: [Int]
    }

    private static let topic = "com.example.mine"
    private static let otherTopic = "com.example.other"
    private static let device = String(repeating: "a1", count: 32)
    private static let unknown = String(repeating: "b2", count: 32)
    private static let newData = #"{"result":"newData"}"#
    private static let registration = #"{"token":"\#(Self.device)"}"#

    /// `WAKE` stands for a wake of the device that is in flight.
    private static let workerRows = [
        // A bad query gets past the roles, and leaves no stream open.
        Row(
            method: "GET",
            path: "/v1/topics/\(topic)/wakes?slots=0",
            statuses: [401, 401, 401, 403, 403, 400, 400, 400]
        ),
        Row(
            method: "GET",
            path: "/v1/topics/never.seen/wakes?slots=0",
            statuses: [401, 401, 401, 403, 403, 403, 403, 400]
        ),
        Row(
            method: "POST",
            path: "/v1/topics/\(topic)/devices",
            body: registration,
            statuses: [401, 401, 401, 403, 403, 201, 201, 201]
        ),
        Row(
            method: "PATCH",
            path: "/v1/devices/\(device)/conditions",
            body: #"{"charging":true}"#,
            statuses: [401, 401, 401, 404, 404, 200, 200, 200]
        ),
        Row(
            method: "PATCH",
            path: "/v1/devices/\(unknown)/conditions",
            body: #"{"charging":true}"#,
            statuses: [401, 401, 401, 404, 404, 404, 404, 404]
        ),
        Row(
            method: "POST",
            path: "/v1/wakes/\(String(repeating: "0", count: 32))",
            body: newData,
            statuses: [401, 401, 401, 404, 404, 404, 404, 404]
        ),
        Row(method: "POST", path: "/v1/wakes/WAKE/extend", statuses: [401, 401, 401, 404, 404, 200, 200, 200]),
        Row(
            method: "POST",
            path: "/v1/wakes/\(String(repeating: "0", count: 32))/extend",
            statuses: [401, 401, 401, 404, 404, 404, 404, 404]
        ),
        Row(method: "POST", path: "/v1/streams/9-9-9-9/drain", statuses: [401, 401, 401, 404, 404, 404, 404, 404]),
        Row(method: "POST", path: "/v1/wakes/WAKE", body: newData, statuses: [401, 401, 401, 404, 404, 204, 204, 204]),
        Row(
            method: "DELETE",
            path: "/v1/devices/\(unknown)",
            statuses: [401, 401, 401, 404, 404, 404, 404, 404]
        ),
        Row(method: "DELETE", path: "/v1/devices/\(device)", statuses: [401, 401, 401, 404, 404, 204, 204, 204]),
    ]

    private static let operatorRows = [
        Row(method: "GET", path: "/healthz", statuses: [401, 401, 401, 403, 200, 403, 200, 200]),
        Row(method: "GET", path: "/readyz", statuses: [401, 401, 401, 403, 200, 403, 200, 200]),
        Row(method: "GET", path: "/version", statuses: [401, 401, 401, 403, 200, 403, 200, 200]),
        Row(method: "GET", path: "/v1/stats", statuses: [401, 401, 401, 403, 403, 403, 403, 200]),
        Row(method: "GET", path: "/v1/stats/topics/\(topic)", statuses: [401, 401, 401, 403, 403, 403, 200, 200]),
        Row(method: "GET", path: "/v1/stats/topics/never.seen", statuses: [401, 401, 401, 403, 403, 403, 403, 404]),
        Row(method: "GET", path: "/v1/topics", statuses: [401, 401, 401, 403, 200, 403, 200, 200]),
        Row(method: "GET", path: "/v1/devices/\(device)", statuses: [401, 401, 401, 403, 404, 403, 200, 200]),
        Row(method: "GET", path: "/v1/devices/\(unknown)", statuses: [401, 401, 401, 403, 404, 403, 404, 404]),
        Row(method: "GET", path: "/v1/devices/\(device)/pushes", statuses: [401, 401, 401, 403, 404, 403, 200, 200]),
        Row(method: "GET", path: "/v1/devices/\(unknown)/pushes", statuses: [401, 401, 401, 403, 404, 403, 404, 404]),
        // The history knows pushes without their topics.
        Row(method: "GET", path: "/v1/pushes/unknown", statuses: [401, 401, 401, 403, 403, 403, 403, 404]),
        Row(
            method: "POST",
            path: "/v1/devices/\(device)/simulate-expiration",
            statuses: [401, 401, 401, 403, 404, 403, 409, 409]
        ),
        Row(
            method: "POST",
            path: "/v1/devices/\(device)/simulate-launch",
            statuses: [401, 401, 401, 403, 404, 403, 409, 409]
        ),
        Row(
            method: "POST",
            path: "/v1/backup",
            body: #"{"name":"one"}"#,
            statuses: [401, 401, 401, 403, 403, 403, 403, 201]
        ),
        Row(
            method: "POST",
            path: "/v1/topics/\(topic)/devices",
            body: registration,
            statuses: [401, 401, 401, 403, 403, 403, 201, 201]
        ),
        Row(
            method: "PATCH",
            path: "/v1/devices/\(device)/conditions",
            body: #"{"charging":true}"#,
            statuses: [401, 401, 401, 403, 404, 403, 200, 200]
        ),
        Row(method: "DELETE", path: "/v1/devices/\(device)", statuses: [401, 401, 401, 403, 404, 403, 204, 204]),
    ]

    /// The token of each caller.
    private func tokens(_ gateway: ServedGateway) throws -> [Caller: String] {
        let (mine, other) = (Self.topic, Self.otherTopic)
        return [
            .garbage: "wg1.e30.AAAA",
            .stranger: try gateway.issue(
                "--role",
                "operator",
                state: gateway.folder.appendingPathComponent("elsewhere")
            ).token,
            .otherWorker: try gateway.issue("--role", "worker", "--topic", other).token,
            .otherOperator: try gateway.issue("--role", "operator", "--topic", other).token,
            .worker: try gateway.issue("--role", "worker", "--topic", "x", "--topic", mine).token,
            .topicOperator: try gateway.issue("--role", "operator", "--topic", mine).token,
            .operatorOfAll: try gateway.issue("--role", "operator").token,
        ]
    }

    private func check(
        _ rows: [Row],
        _ gateway: ServedGateway,
        _ listener: ServedGateway.Listener,
        _ tokens: [Caller: String],
        wake: String = ""
    ) throws {
        for row in rows {
            var bodies: [Int: Set<String>] = [:]
            for (caller, status) in zip(Caller.allCases, row.statuses) {
                let path = row.path.replacingOccurrences(of: "WAKE", with: wake)
                let answer = try gateway.ask(listener, row.method, path, token: tokens[caller], body: row.body)
                #expect(answer.status == status, "\(row.method) \(row.path) by \(caller): \(answer.body)")
                let isChallenge = status == 401 || status == 403
                #expect(answer.headers["www-authenticate"] == (isChallenge ? "Bearer" : nil), "\(row.path) \(caller)")
                if isChallenge { #expect(answer.value("message") is String) }
                if status == 404 { bodies[status, default: []].insert(answer.body) }
            }
            // Unknown and foreign look the same.
            #expect(bodies.values.allSatisfy { $0.count == 1 }, "\(row.method) \(row.path): \(bodies)")
        }
    }

    @Test("Every route of workers, on both listeners", arguments: [ServedGateway.Listener.edge, .plain])
    func workers(listener: ServedGateway.Listener) throws {
        let gateway = try ServedGateway()
        let tokens = try self.tokens(gateway)
        let worker = try gateway.worker(Self.topic, token: tokens[.worker])
        let registered = try gateway.ask(.admin, "POST", "/v1/topics/\(Self.topic)/devices", body: Self.registration)
        #expect(registered.status == 201)
        #expect(try gateway.ask(.admin, "POST", "/v1/devices/\(Self.device)/simulate-launch").status == 202)
        let wake = try #require(try worker.next()?.id)
        try self.check(Self.workerRows, gateway, listener, tokens, wake: wake)

        // The device is removed now; nobody of another topic may have it.
        let foreign = try gateway.ask(
            listener,
            "POST",
            "/v1/topics/\(Self.otherTopic)/devices",
            token: tokens[.otherWorker],
            body: Self.registration
        )
        #expect(foreign.status == 409)
        #expect(foreign.reason == "DeviceTokenNotForTopic")
        // An operator of all topics may move it.
        let moved = try gateway.ask(
            listener,
            "POST",
            "/v1/topics/\(Self.otherTopic)/devices",
            token: tokens[.operatorOfAll],
            body: Self.registration
        )
        #expect(moved.status == 201)
    }

    @Test("Every route of operators, on an address that other machines reach")
    func operators() throws {
        let gateway = try ServedGateway()
        let tokens = try self.tokens(gateway)
        for (topic, device) in [(Self.topic, Self.device), (Self.otherTopic, String(repeating: "c3", count: 32))] {
            let body = #"{"token":"\#(device)"}"#
            #expect(try gateway.ask(.admin, "POST", "/v1/topics/\(topic)/devices", body: body).status == 201)
        }
        func topics(_ caller: Caller) throws -> [String] {
            let answer = try gateway.ask(.adminAfar, "GET", "/v1/topics", token: tokens[caller])
            return (answer.value("topics") as? [[String: Any]] ?? []).compactMap { $0["topic"] as? String }
        }
        #expect(try topics(.operatorOfAll) == [Self.topic, Self.otherTopic])
        #expect(try topics(.topicOperator) == [Self.topic])
        try self.check(Self.operatorRows, gateway, .adminAfar, tokens)

        // On loopback nobody is asked.
        for row in Self.operatorRows {
            let answer = try gateway.ask(.admin, row.method, row.path, body: row.body)
            #expect(answer.status != 401 && answer.status != 403, "\(row.path): \(answer.body)")
        }
    }
}
