import BackgroundTransfers
import Foundation
import Testing
import WakeGateTestKit

/// A peer on a socket in a folder of its own that answers as an agent does, and as a test tells it.
final class ScriptedAgent {
    /// Where it listens, as a session takes it.
    let address: String
    private let folder: URL
    private let child: ScriptedChild

    init() async throws {
        self.folder = FileManager.default.temporaryDirectory.appendingPathComponent("wg-\(UUID())")
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        let socket = self.folder.appendingPathComponent("agent.sock").path
        self.address = "unix:\(socket)"
        self.child = try ScriptedChild("scripted_agent.py", socket)
        _ = try await self.child.line { $0 == "ready" }
    }

    deinit { try? FileManager.default.removeItem(at: self.folder) }

    func session(_ configuration: BackgroundSessionConfiguration = BackgroundSessionConfiguration()) throws
        -> BackgroundSession
    {
        try BackgroundSession("s", configuration, agent: self.address)
    }

    /// Answers the next request of this method whose path ends like this, or all.
    func answer(_ method: String, _ end: String, _ status: Int, _ body: String = "", lasts: Bool = false) async throws {
        try await self.child.command(
            ["do": "answer", "method": method, "end": end, "status": status, "body": body, "lasts": lasts]
        )
    }

    /// Sends an event on the streams that are open.
    func send(_ event: String, _ data: String) async throws {
        try await self.child.command(["do": "event", "name": event, "data": data])
    }

    /// Does what needs no more words: `end`, `leave` or `return`.
    func make(_ word: String) async throws { try await self.child.command(["do": word]) }

    /// The next request whose path without its query ends like this.
    @discardableResult
    func request(_ end: String) async throws -> ScriptedChild.Request {
        try await self.child.request { $0.hasSuffix(end) }
    }
}

/// Transfers as an agent writes them.
enum ListedTransfer {
    /// The transfer of a number.
    static func id(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }

    static func json(_ number: Int, _ state: String, bytes: Int = 0, _ members: String = "") -> String {
        let more = members.isEmpty ? "" : ",\(members)"
        return #"{"transfer":"\#(self.id(number))","session":"s","kind":"download","url":"http://h/\#(number)","#
            + #""state":"\#(state)","bytes":\#(bytes),"createdAt":1000\#(more)}"#
    }

    static func list(_ transfers: String...) -> String { #"{"transfers":[\#(transfers.joined(separator: ","))]}"# }
}
