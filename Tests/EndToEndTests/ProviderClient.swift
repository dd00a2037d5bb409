import Foundation
import Testing

/// A client of APNs that plays the scenes of `Clients/scenes.py`.
struct ProviderClient: CustomTestStringConvertible, Sendable {
    /// What the client's script is told; `scenes.py` says what each member is.
    struct Settings: Encodable {
        let host: String
        let port: Int
        let ca: String
        let topic: String
        let key: String?
        let keyID: String
        let team: String
        let certificate: String
        let unregistered: String
        let age: Int
        let scenes: [String]
    }

    /// One line of a client's output.
    struct Scene: Decodable {
        let scene: String
        /// How often each answer came, by its status and reason.
        let answers: [String: Int]
        let timestamp: Int64?
    }

    let testDescription: String
    let program: String
    let script: String
    /// Whether its caller learns when a token became inactive.
    var tellsTimestamp = true

    /// The clients that authenticate with a provider token of their own making.
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

    func start(_ settings: Settings) throws -> ChildProcess {
        if self.program.hasPrefix("/"), !FileManager.default.isExecutableFile(atPath: self.program) {
            throw ChildProcess.Failure(description: "\(self.program) is not there; run deploy/setup first")
        }
        let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/\(self.script)").path
        let argument = String(decoding: try JSONEncoder().encode(settings), as: UTF8.self)
        return try ChildProcess(self.program, [file, argument], isInputOpen: true)
    }
}
