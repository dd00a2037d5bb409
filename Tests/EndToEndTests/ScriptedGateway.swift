import Foundation

/// A peer that takes workers as a gateway does, sends what a test writes, and never ends a stream by itself.
final class ScriptedGateway {
    let process: ChildProcess
    let url: String
    let certificateAuthority: String
    // Lends its certificate.
    private let gateway: RunningGateway

    init() throws {
        self.gateway = try RunningGateway()
        self.certificateAuthority = self.gateway.certificateAuthority
        let folder = self.gateway.folder.appendingPathComponent(".wakegate")
        let files = ["server.pem", "server.key"].map { folder.appendingPathComponent($0).path }
        let script = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/scripted_gateway.py").path
        self.process = try ChildProcess("python3", [script] + files, isInputOpen: true)
        self.url = "https://127.0.0.1:\(try self.process.line() ?? "")"
        try self.answer("/extend", "{}")
        try self.answer("/progress", #"{"deadline":1}"#)
    }

    /// Sends a wake; `members` are added to those that every wake has.
    func wake(_ name: String, _ members: String, deadline: Int? = 1, payload: String = "{}") throws {
        let deadline = deadline.map { #","deadline":\#($0)"# } ?? ""
        let data = #"{"wake":"\#(name)","device":"ab","topic":"t"\#(deadline),\#(members),"payload":\#(payload)}"#
        try self.event("wake", data)
    }

    /// Sends an event.
    func event(_ name: String, _ data: String) throws {
        try self.command(["do": "event", "name": name, "data": data])
    }

    /// Ends the connection of the stream that is open.
    func endStream() throws { try self.command(["do": "end"]) }

    /// Answers so from now on what is said of wakes on paths that end like this; all else is answered 204.
    func answer(_ end: String, _ body: String) throws {
        try self.command(["do": "answer", "method": "POST", "end": end, "status": 200, "body": body, "lasts": true])
    }

    private func command(_ command: [String: Any]) throws {
        let data = try JSONSerialization.data(withJSONObject: command)
        try self.process.write(String(decoding: data, as: UTF8.self))
    }

    /// The next request whose path ends like this; its body.
    @discardableResult
    func request(_ end: String) throws -> String { try self.requestLine(end).body }

    /// The next request whose path ends like this; its path with the query.
    func path(_ end: String) throws -> String { try self.requestLine(end).path }

    private func requestLine(_ end: String) throws -> (path: String, body: String) {
        while let line = try self.process.line() {
            let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count > 1 else { continue }
            if words[1].hasSuffix(end) || words[1].contains("\(end)?") {
                return (String(words[1]), String(words.last ?? ""))
            }
        }
        throw ChildProcess.Failure(description: "the peer ended before a request to \(end)")
    }
}
