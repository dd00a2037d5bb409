import Foundation
import Testing
import WakeGateTestKit

@Suite("Access by role, over HTTP", .serialized, .timeLimit(.minutes(15)))
struct RoleRouteTests {
    /// The caller: without credentials, with an invalid token, with a token of another gateway, or with a role and a
    /// topic.
    enum Caller: String, CaseIterable {
        case nobody, garbage, unknownPeer, otherWorker, otherOperator, worker, topicOperator, operatorOfAll
    }

    /// A request with the status for each caller.
    struct Row {
        let method: String
        let path: String
        let body: String?
        let statuses: [Caller: Int]

        /// - Parameters:
        ///   - request: the method and the path.
        ///   - statuses: the statuses for callers with a valid token, in the order of `Caller.allCases`; the others get
        ///     401.
        init(_ request: String, body: String? = nil, _ statuses: Int...) {
            let words = request.split(separator: " ")
            self.method = String(words[0])
            self.path = String(words[1])
            self.body = body
            let others = [Int](repeating: 401, count: Caller.allCases.count - statuses.count)
            self.statuses = Dictionary(uniqueKeysWithValues: zip(Caller.allCases, others + statuses))
        }
    }

    private static let topic = "com.example.mine"
    private static let otherTopic = "com.example.other"
    private static let device = String(repeating: "a1", count: 32)
    private static let unknown = String(repeating: "b2", count: 32)
    private static let newData = #"{"result":"newData"}"#
    private static let registration = #"{"token":"\#(Self.device)"}"#

    /// One route for each rule and subject. DeclaredAccessTests covers the rule of each route, and DeviceContractTests
    /// the devices out of scope. `WAKE` stands for a wake in flight.
    private static let workerRows = [
        // An invalid query passes the role check but opens no stream.
        Row("GET /v1/topics/\(topic)/wakes?slots=0", 403, 403, 400, 400, 400),
        Row("GET /v1/topics/never.seen/wakes?slots=0", 403, 403, 403, 403, 400),
        Row("POST /v1/topics/\(topic)/devices", body: registration, 403, 403, 201, 201, 201),
        Row("PATCH /v1/devices/\(device)/conditions", body: #"{"charging":true}"#, 404, 404, 200, 200, 200),
        Row("PATCH /v1/devices/\(unknown)/conditions", body: #"{"charging":true}"#, 404, 404, 404, 404, 404),
        Row("GET /v1/devices/\(device)/tasks", 404, 404, 200, 200, 200),
        Row("POST /v1/wakes/WAKE/extend", 404, 404, 200, 200, 200),
        Row("POST /v1/wakes/WAKE", body: newData, 404, 404, 204, 204, 204),
        Row("DELETE /v1/devices/\(device)", 404, 404, 204, 204, 204),
    ]

    private static let operatorRows = [
        Row("GET /healthz", 403, 200, 403, 200, 200),
        Row("GET /v1/stats", 403, 403, 403, 403, 200),
        Row("GET /v1/stats/topics/\(topic)", 403, 403, 403, 200, 200),
        Row("GET /v1/stats/topics/never.seen", 403, 403, 403, 403, 404),
        Row("GET /v1/topics", 403, 200, 403, 200, 200),
        Row("GET /v1/devices/\(device)", 403, 404, 403, 200, 200),
        Row("GET /v1/devices/\(unknown)", 403, 404, 403, 404, 404),
        Row("GET /v1/tasks", 403, 200, 403, 200, 200),
        Row("GET /v1/pushes/unknown", 403, 403, 403, 403, 404),
        Row("POST /v1/devices/\(device)/simulate-launch", 403, 404, 403, 409, 409),
        Row("POST /v1/backup", body: #"{"name":"one"}"#, 403, 403, 403, 403, 201),
        Row("POST /v1/topics/\(topic)/devices", body: registration, 403, 403, 403, 201, 201),
        Row("DELETE /v1/devices/\(device)", 403, 404, 403, 204, 204),
    ]

    /// Returns the token of each caller.
    private func tokens(_ gateway: ServedGateway) throws -> [Caller: String] {
        let (mine, other) = (Self.topic, Self.otherTopic)
        let elsewhere = gateway.folder.appendingPathComponent("elsewhere")
        let mode = [FileAttributeKey.posixPermissions: 0o700]
        try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true, attributes: mode)
        return [
            .garbage: "wg1.e30.AAAA",
            .unknownPeer: try gateway.issue("--role", "operator", state: elsewhere).token,
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
            for caller in Caller.allCases {
                let status = row.statuses[caller]
                let path = row.path.replacingOccurrences(of: "WAKE", with: wake)
                let answer = try gateway.ask(listener, row.method, path, token: tokens[caller], body: row.body)
                #expect(answer.status == status, "\(row.method) \(row.path) by \(caller): \(answer.body)")
                let isChallenge = status == 401 || status == 403
                #expect(answer.headers["www-authenticate"] == (isChallenge ? "Bearer" : nil), "\(row.path) \(caller)")
                if isChallenge { #expect(answer.value("message") is String) }
                if answer.status == 404 { bodies[404, default: []].insert(answer.body) }
            }
            // Unknown and inaccessible subjects have the same answer.
            #expect(bodies.values.allSatisfy { $0.count == 1 }, "\(row.method) \(row.path): \(bodies)")
        }
    }

    /// Registers the device and returns the wake that is launched to a worker.
    private func launch(_ gateway: ServedGateway, _ worker: EventStream) throws -> String {
        let registered = try gateway.ask(.admin, "POST", "/v1/topics/\(Self.topic)/devices", body: Self.registration)
        #expect(registered.status == 201)
        #expect(try gateway.admin("/v1/devices/\(Self.device)/simulate-launch", "-X", "POST").status == 202)
        return try #require(try worker.next()?.id)
    }

    @Test("Routes of workers, on both listeners", arguments: [ServedGateway.Listener.edge, .plain])
    func workers(listener: ServedGateway.Listener) throws {
        // A single wake for all rows, even on a slow machine.
        let gateway = try ServedGateway(["--set", "policy.executionWindow=300"])
        let tokens = try self.tokens(gateway)
        let worker = try gateway.worker(Self.topic, token: tokens[.worker])
        let wake = try self.launch(gateway, worker)
        try self.check(Self.workerRows, gateway, listener, tokens, wake: wake)

        // The device has been removed. Other topics may not register it.
        func move(_ caller: Caller) throws -> Answer {
            let path = "/v1/topics/\(Self.otherTopic)/devices"
            return try gateway.ask(listener, "POST", path, token: tokens[caller], body: Self.registration)
        }
        let foreign = try move(.otherWorker)
        #expect(foreign.status == 409 && foreign.reason == "DeviceTokenNotForTopic")
        #expect(try move(.operatorOfAll).status == 201, "an operator of all topics may move the device")
    }

    @Test("Routes of workers, with client certificates: none for providers, and those of their topics for workers")
    func certificates() throws {
        let authority = try TestAuthority()
        let gateway = try ServedGateway(["--set", "tls.clientCA=\(authority.certificate)"])
        let certificates: [(caller: Caller?, file: String)] = [
            (nil, try authority.issue("/UID=\(Self.topic)")),
            (.otherWorker, try authority.issue("/OU=worker/UID=\(Self.otherTopic)")),
            (.worker, try authority.issue("/OU=worker/UID=\(Self.topic)")),
        ]
        let worker = try gateway.worker(Self.topic, certificate: certificates[2].file)
        let wake = try self.launch(gateway, worker)
        // With a certificate, the token is ignored and so gives no additional permissions.
        let (token, _) = try gateway.issue("--role", "operator")
        for row in Self.workerRows {
            for (caller, file) in certificates {
                let (path, body) = (row.path.replacingOccurrences(of: "WAKE", with: wake), row.body)
                let answer = try gateway.ask(.edge, row.method, path, token: token, body: body, certificate: file)
                let status = caller.map { row.statuses[$0] } ?? 403
                #expect(answer.status == status, "\(row.method) \(row.path) by \(String(describing: caller))")
                if answer.status == 403 { #expect(answer.value("message") is String) }
                // A token would not help.
                #expect(answer.headers["www-authenticate"] == nil)
            }
            #expect(try gateway.ask(.edge, row.method, row.path, body: row.body).status == 401)
        }
        for (caller, file) in certificates {
            let push = try gateway.push(Self.device, topic: Self.topic, certificate: file)
            // The device was removed.
            #expect(push.reason == (caller == nil ? "Unregistered" : "Forbidden"))
        }
    }

    @Test("Routes of operators, on an address that other machines reach")
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

        // `wakegate serve` has no fault rules. Callers without permission are refused as usual.
        let faults = try gateway.ask(.adminAfar, "GET", "/v1/faults", token: tokens[.topicOperator])
        #expect(faults.status == 403 && faults.headers["www-authenticate"] == "Bearer")
        for token in [tokens[.operatorOfAll], nil] {
            let listener: ServedGateway.Listener = token == nil ? .admin : .adminAfar
            let faults = try gateway.ask(listener, "GET", "/v1/faults", token: token)
            #expect(faults.status == 403 && faults.headers["www-authenticate"] == nil)
        }

        // Loopback connections need no authentication.
        for row in Self.operatorRows {
            let answer = try gateway.ask(.admin, row.method, row.path, body: row.body)
            #expect(answer.status != 401 && answer.status != 403, "\(row.path): \(answer.body)")
        }
    }
}
