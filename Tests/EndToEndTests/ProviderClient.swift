import Foundation
import Testing

/// An APNs client that plays the scenes of `Clients/scenes.py`.
struct ProviderClient: CustomTestStringConvertible, Sendable {
    /// Returns the input of the client's script; `scenes.py` documents each member.
    ///
    /// - Parameters:
    ///   - gateway: a gateway that made the proof of the client.
    ///   - hasToken: false if the client shows a certificate.
    ///   - unregistered: a device that was removed.
    ///   - age: the age of the token, in seconds.
    static func settings(
        _ gateway: RunningGateway,
        topic: String,
        hasToken: Bool = true,
        unregistered: String = "",
        age: Int = 0,
        scenes: [String]
    ) -> [String: Any] {
        let address = gateway.edge.split(separator: ":").map(String.init)
        let state = gateway.folder.appendingPathComponent(".wakegate").path
        let proof: [String: Any] = hasToken ? ["key": "\(state)/provider.p8"] : [:]
        let settings: [String: Any] = [
            "host": address[0], "port": Int(address[1]) ?? 0, "ca": gateway.certificateAuthority, "topic": topic,
            "keyID": "KEY1234567", "team": "TEAM123456", "certificate": "\(state)/provider.pem",
            "unregistered": unregistered, "age": age, "scenes": scenes,
        ]
        return settings.merging(proof) { $1 }
    }

    /// One line of a client's output.
    struct Scene: Decodable {
        let scene: String
        /// The number of answers, by status and reason.
        let answers: [String: Int]
        let timestamp: Int64?
    }

    let testDescription: String
    let program: String
    let script: String
    /// True if its caller learns when a token became inactive.
    var tellsTimestamp = true

    /// The clients that authenticate with a provider token that they sign themselves.
    static let withToken = [
        Self.python("aioapns"), Self.python("kalyke"), Self.python("pyapns_client3"),
        Self.python("pyapns2", in: "venv-pyapns2"), Self.node, Self.java,
    ]
    /// The clients that authenticate with a client certificate.
    static let withCertificate = [
        Self.python("aapns", in: "venv-aapns", tellsTimestamp: false), Self.python("aioapns"), Self.python("kalyke"),
        Self.python("pyapns_client3"), Self.python("pyapns2", in: "venv-pyapns2"), Self.node, Self.java,
    ]
    static let node = ProviderClient(testDescription: "node", program: "node", script: "client_node.mjs")
    static let java = ProviderClient(testDescription: "java", program: "java", script: "ClientJava.java")

    private static func python(
        _ name: String,
        in environment: String = "venv",
        tellsTimestamp: Bool = true
    ) -> ProviderClient {
        let program = RunningGateway.root.appendingPathComponent(".build/\(environment)/bin/python").path
        return ProviderClient(
            testDescription: name,
            program: program,
            script: "client_\(name).py",
            tellsTimestamp: tellsTimestamp
        )
    }

    func start(_ settings: [String: Any]) throws -> ChildProcess {
        if self.program.hasPrefix("/"), !FileManager.default.isExecutableFile(atPath: self.program) {
            throw ChildProcess.Failure(description: "\(self.program) is not there; run deploy/setup first")
        }
        let file = RunningGateway.client(self.script)
        let argument = try ChildProcess.json(settings)
        return try ChildProcess(self.program, [file, argument], isInputOpen: true)
    }
}

/// A provider that pushes over one connection at the maximum rate: `Clients/full_rate.py`.
final class FullRateClient {
    struct Outcome: Decodable {
        /// The number of answers, by status and reason.
        let statuses: [String: Int]
        /// The devices whose pushes were all answered 200.
        let accepted: [String]
        /// True if every 503 had a `retry-after`.
        let retriable: Bool
        /// The number of unanswered pushes that may have been processed.
        let processed: Int
        /// True if the gateway has sent GOAWAY.
        let goaway: Bool
    }

    private let process: ChildProcess

    /// Starts the client, and waits until it has received its first thousand answers.
    init(edge: String, authority: String, topic: String, devices: Int) throws {
        let arguments = [edge, authority, topic, "\(devices)"]
        self.process = try ChildProcess(client: "full_rate.py", arguments, isInputOpen: true)
        guard try self.process.line() == "running" else {
            throw ChildProcess.Failure(description: "the client ended: \(self.process.errors)")
        }
    }

    /// Makes the client send no more pushes.
    func stop() throws { try self.process.endInput() }

    /// Waits for the client's end and returns its result.
    func outcome() throws -> Outcome {
        let ended = try self.process.finish()
        try #require(ended.status == 0, "\(ended.errors)")
        return try JSONDecoder().decode(Outcome.self, from: Data(ended.output.utf8))
    }
}
