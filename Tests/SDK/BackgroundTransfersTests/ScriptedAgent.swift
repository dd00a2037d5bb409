import BackgroundTransfers
import Foundation
import Testing
import WakeGateTestKit

/// A peer on a socket in a folder of its own that answers as an agent does, and as a test tells it.
final class ScriptedAgent {
    struct Request {
        let method: String
        let path: String
        let body: String
    }

    /// Where it listens, as a session takes it.
    let address: String
    private let folder: URL
    private let process = Process()
    private let input = Pipe.toChild()
    private let lines: AsyncStream<String>
    /// What it told and nobody has waited for yet.
    private var unclaimed: [String] = []

    init() async throws {
        self.folder = FileManager.default.temporaryDirectory.appendingPathComponent("wg-\(UUID())")
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        let socket = self.folder.appendingPathComponent("agent.sock").path
        self.address = "unix:\(socket)"
        let script = Checkout.root.appendingPathComponent("Tests/EndToEndTests/Clients/scripted_agent.py")
        let output = Pipe.toChild()
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = ["python3", script.path, socket]
        self.process.standardInput = self.input
        self.process.standardOutput = output
        let (lines, source) = AsyncStream<String>.makeStream()
        self.lines = lines
        try self.process.start()
        let reader = Thread {
            var rest = Data()
            while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
                rest += data
                while let end = rest.firstIndex(of: 0x0A) {
                    source.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
                    rest = Data(rest[(end + 1)...])
                }
            }
            source.finish()
        }
        reader.start()
        _ = try await self.line { $0 == "ready" }
    }

    deinit {
        self.process.terminate()
        try? FileManager.default.removeItem(at: self.folder)
    }

    func session(_ configuration: BackgroundSessionConfiguration = BackgroundSessionConfiguration()) throws
        -> BackgroundSession
    {
        try BackgroundSession("s", configuration, agent: self.address)
    }

    /// Answers the next request of this method whose path ends like this, or all.
    func answer(_ method: String, _ end: String, _ status: Int, _ body: String = "", lasts: Bool = false) async throws {
        try await self.command(
            ["do": "answer", "method": method, "end": end, "status": status, "body": body, "lasts": lasts]
        )
    }

    /// Sends an event on the streams that are open.
    func send(_ event: String, _ data: String) async throws {
        try await self.command(["do": "event", "name": event, "data": data])
    }

    /// Does what needs no more words: `end`, `leave` or `return`.
    func make(_ word: String) async throws { try await self.command(["do": word]) }

    /// The next request whose path without its query ends like this.
    @discardableResult
    func request(_ end: String) async throws -> Request {
        let line = try await self.line { line in
            let words = line.split(separator: " ", maxSplits: 2)
            return words.count > 1 && words[1].split(separator: "?")[0].hasSuffix(end)
        }
        let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        return Request(method: words[0], path: words[1], body: words[2])
    }

    private func command(_ command: [String: Any]) async throws {
        let data = try JSONSerialization.data(withJSONObject: command)
        try self.input.fileHandleForWriting.write(contentsOf: data + Data("\n".utf8))
        _ = try await self.line { $0 == "done" }
    }

    private func line(_ isWanted: (String) -> Bool) async throws -> String {
        if let index = self.unclaimed.firstIndex(where: isWanted) { return self.unclaimed.remove(at: index) }
        for await line in self.lines {
            if isWanted(line) { return line }
            self.unclaimed.append(line)
        }
        throw Ended(unclaimed: self.unclaimed)
    }

    struct Ended: Error {
        let unclaimed: [String]
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
