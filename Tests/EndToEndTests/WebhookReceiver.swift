import Foundation
import Glibc

/// A receiver of webhooks over HTTP/2 and TLS, `Clients/webhook_receiver.mjs`, in its own process.
final class WebhookReceiver {
    /// A received request.
    struct Request {
        let path: String
        let headers: [String: String]
        let body: String
        /// The number of the connection.
        let session: Int
        /// The name in the caller's certificate.
        let peer: String?

        /// The wake in the request.
        var wake: [String: Any] {
            (try? JSONSerialization.jsonObject(with: Data(self.body.utf8)) as? [String: Any]) ?? [:]
        }

        var id: String? { self.wake["wake"] as? String }
        var attempt: Int? { self.wake["attempt"] as? Int }
    }

    let port: Int
    let process: ChildProcess

    /// - Parameters:
    ///   - state: the state directory of a gateway, whose certificate the receiver presents.
    ///   - clientCA: the file of the authority whose certificate callers must present; nil for none.
    init(_ state: URL, port: Int = 0, clientCA: String? = nil) throws {
        let script = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/webhook_receiver.mjs")
        var settings: [String: Any] = ["port": port]
        settings["certificate"] = state.appendingPathComponent("server.pem").path
        settings["key"] = state.appendingPathComponent("server.key").path
        settings["clientCA"] = clientCA
        let argument = try ChildProcess.json(settings)
        self.process = try ChildProcess("node", [script.path, argument])
        self.port = try self.process.object()["port"] as? Int ?? 0
    }

    /// Returns the next request. Notices before it are skipped.
    func next(within seconds: Double = 60) throws -> Request {
        while true {
            let object = try self.process.object(within: seconds)
            if let request = Self.request(object) { return request }
        }
    }

    private static func request(_ object: [String: Any]) -> Request? {
        guard let path = object["path"] as? String else { return nil }
        let headers = object["headers"] as? [String: Any] ?? [:]
        return Request(
            path: path,
            headers: headers.compactMapValues { $0 as? String },
            body: object["body"] as? String ?? "",
            session: object["session"] as? Int ?? 0,
            peer: object["peer"] as? String
        )
    }

    /// Returns the next request, and the wake of the request that the gateway cancels for it, in either order.
    func nextWithGivenUp() throws -> (request: Request, givenUp: String) {
        var request: Request?
        var givenUp: String?
        while true {
            let object = try self.process.object(within: 60)
            request = Self.request(object) ?? request
            givenUp = object["closed"] as? String ?? givenUp
            if let request, let givenUp { return (request, givenUp) }
        }
    }

    /// Returns the wake of the next request that the gateway has cancelled. Requests before it are skipped.
    func nextGivenUp() throws -> String {
        while true {
            if let wake = try self.process.object(within: 60)["closed"] as? String { return wake }
        }
    }
}

/// A directory with certificates and a secret, for gateways that post to a webhook and for pushes.
final class WebhookRig {
    static let topic = "com.example.hook"
    static let secret = String(repeating: "0123456789abcdef", count: 4)

    let folder: RestartFolder

    init() throws {
        self.folder = try RestartFolder()
        try self.folder.putCertificates()
        let secret = self.folder.folder.appendingPathComponent("secret")
        try Data(Self.secret.utf8).write(to: secret)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret.path)
    }

    /// Starts a receiver that presents the gateway's own certificate.
    func receiver(port: Int = 0, clientCA: String? = nil) throws -> WebhookReceiver {
        try WebhookReceiver(self.folder.state, port: port, clientCA: clientCA)
    }

    /// Starts a gateway whose topic has a webhook. Its devices may launch again after 50 ms.
    ///
    /// - Parameters:
    ///   - port: the port of the receiver.
    ///   - members: additional members of the webhook's section, each preceded by a comma.
    func gateway(
        port: Int,
        _ members: String = ", secretFile: 'secret', allowPrivate: true",
        _ arguments: [String] = [],
        url: String? = nil
    ) throws -> RunningGateway {
        let url = url ?? "https://localhost:\(port)/wakes?key=of-the-query"
        let hook = "topics.\(Self.topic).webhook={url: '\(url)', ca: '.wakegate/ca.pem'\(members)}"
        return try self.folder.start(["--set", hook, "--set", "policy.launchInterval=0.05"] + arguments)
    }

    static func token(_ device: Int) -> String { String(format: "%064x", device) }
}

extension RunningGateway {
    /// Pushes to a device. The payload lists the replies that the receiver gives in turn.
    @discardableResult
    func pushHook(_ device: Int, replies: [String], fields: [String] = []) throws -> Answer {
        try self.pushHook(WebhookRig.token(device), replies: replies, fields: fields)
    }

    /// Pushes to the device with a token, or to several devices, given a pattern of curl.
    @discardableResult
    func pushHook(_ token: String, replies: [String], fields: [String] = []) throws -> Answer {
        let list = replies.map { "\"\($0)\"" }.joined(separator: ",")
        let payload = #"{"aps":{"content-available":1},"replies":[\#(list)]}"#
        let answer = try self.push(token, topic: WebhookRig.topic, payload: payload, fields: fields)
        guard answer.status == 200 else { throw ChildProcess.Failure(description: "push: \(answer.body)") }
        return answer
    }

    /// Returns a member of the webhook in the list of topics.
    func hook(_ key: String) throws -> Any? {
        let topics = try self.admin("/v1/topics").value("topics") as? [[String: Any]]
        let topic = topics?.first { $0["topic"] as? String == WebhookRig.topic }
        return (topic?["webhook"] as? [String: Any])?[key]
    }

    /// Waits until this many pushes have been completed.
    func completes(_ count: Int) throws {
        try self.eventually("\(count) completed") { try self.stats().integer("pushes", "completed") == count }
    }

    /// Returns true if every accepted push is in exactly one state, and every launch has ended or is in flight.
    func isBalanced() throws -> Bool { try self.balancedPushes() != nil }

    /// Returns the number of accepted pushes; nil if the counters are not balanced.
    func balancedPushes() throws -> Int? {
        let stats = try self.stats()
        let places = ["completed", "coalesced", "pending", "inFlight"].compactMap { stats.integer("pushes", $0) }
        let discarded = (stats.value("pushes", "discarded") as? [String: Int] ?? [:]).values.reduce(0, +)
        let results = (stats.value("wakes", "results") as? [String: Int] ?? [:]).values.reduce(0, +)
        let inFlight = stats.integer("pushes", "inFlight") ?? 0
        let accepted = places.reduce(discarded, +)
        let isBalanced =
            stats.integer("pushes", "accepted") == accepted
            && stats.integer("wakes", "launched") == results + inFlight
        return isBalanced ? accepted : nil
    }
}
