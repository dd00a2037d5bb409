import Foundation
import Testing

/// A provider that pushes over one connection as fast as it is let, `Clients/full_rate.py`.
final class FullRateClient {
    struct Outcome: Decodable {
        /// How often each status came, with its reason.
        let statuses: [String: Int]
        /// The devices whose pushes were all answered 200.
        let accepted: [String]
        /// Whether every 503 had a `retry-after`.
        let retriable: Bool
        /// How many pushes without an answer may have been processed.
        let processed: Int
        /// How many without an answer it was told were not processed.
        let exempt: Int
        /// Whether the gateway said goodbye.
        let goaway: Bool
    }

    private let process: ChildProcess

    /// Starts the client, which has had its first thousand answers when this returns.
    init(edge: String, authority: String, topic: String, devices: Int) throws {
        let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/full_rate.py").path
        let arguments = [file, edge, authority, topic, "\(devices)"]
        self.process = try ChildProcess(RunningGateway.python, arguments, isInputOpen: true)
        guard try self.process.line() == "running" else {
            throw ChildProcess.Failure(description: "the client ended: \(self.process.errors)")
        }
    }

    /// Has it send no more.
    func stop() throws { try self.process.endInput() }

    /// What it came to, when it has ended.
    func outcome() throws -> Outcome {
        let ended = try self.process.finish()
        try #require(ended.status == 0, "\(ended.errors)")
        return try JSONDecoder().decode(Outcome.self, from: Data(ended.output.utf8))
    }
}
