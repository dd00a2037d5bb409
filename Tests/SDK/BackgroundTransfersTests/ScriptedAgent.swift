import BackgroundTransfers
import Foundation
import Testing
import WakeGateTestKit
import Wire

/// A peer on a socket in its own folder. It answers like an agent, as the test specifies.
final class ScriptedAgent {
    /// The address that it listens on, in the format that a session expects.
    let address: String
    private let folder: TemporaryFolder
    private let child: ScriptedChild

    init() async throws {
        self.folder = try TemporaryFolder()
        let socket = "\(self.folder.path)/agent.sock"
        self.address = "unix:\(socket)"
        self.child = try ScriptedChild("scripted_agent.py", socket)
        _ = try await self.child.line { $0 == "ready" }
    }

    func session(_ configuration: BackgroundSessionConfiguration = BackgroundSessionConfiguration()) throws
        -> BackgroundSession
    {
        try BackgroundSession("s", configuration, agent: self.address)
    }

    /// Answers the next request with this method whose path has this ending, or all of them if `lasts` is true.
    func answer(_ method: String, _ end: String, _ status: Int, _ body: String = "", lasts: Bool = false) async throws {
        try await self.child.command(
            ["do": "answer", "method": method, "end": end, "status": status, "body": body, "lasts": lasts]
        )
    }

    /// Sends an event on the open streams.
    func send(_ event: String, _ data: String) async throws {
        try await self.child.command(["do": "event", "name": event, "data": data])
    }

    /// Runs a command without arguments: `end`, `leave` or `return`.
    func make(_ word: String) async throws { try await self.child.command(["do": word]) }

    /// Waits for the next request whose path without its query has this ending.
    @discardableResult
    func request(_ end: String) async throws -> ScriptedChild.Request {
        try await self.child.request { $0.hasSuffix(end) }
    }
}

/// Transfers in the format that an agent writes.
enum ListedTransfer {
    /// Returns the identifier of the transfer with a number.
    static func id(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }

    static func json(_ number: Int, _ state: String, bytes: Int = 0, _ members: String = "") -> String {
        let more = members.isEmpty ? "" : ",\(members)"
        return #"{"transfer":"\#(self.id(number))","session":"s","kind":"download","url":"http://h/\#(number)","#
            + #""state":"\#(state)","bytes":\#(bytes),"createdAt":1000\#(more)}"#
    }

    /// Reads a transfer in this format.
    static func read(_ json: String) throws -> BackgroundTransfer {
        try #require(BackgroundTransfer(try JSONReader.read(json)))
    }

    static func list(_ transfers: String...) -> String { #"{"transfers":[\#(transfers.joined(separator: ","))]}"# }
}
