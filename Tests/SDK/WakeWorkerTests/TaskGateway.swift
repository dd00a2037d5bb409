import Foundation
import Testing
import WakeGateTestKit
import WakeWorker

/// A peer on a free loopback port that takes workers as a gateway does, sends what a test writes, and answers as it is
/// told, with 204 otherwise.
final class TaskGateway {
    struct Request {
        let method: String
        let path: String
        let body: String
    }

    let url: String
    let certificateAuthority: String
    private let authority: TestAuthority
    private let process = Process()
    private let input = Pipe.toChild()
    private let lines: AsyncStream<String>
    /// What it told and nobody has waited for yet.
    private var unclaimed: [String] = []

    init() async throws {
        self.authority = try TestAuthority()
        let extensions = "subjectAltName = IP:127.0.0.1\nextendedKeyUsage = serverAuth"
        let certificate = try self.authority.issue("/CN=127.0.0.1", extensions: extensions)
        self.certificateAuthority = self.authority.certificate
        let script = Checkout.root.appendingPathComponent("Tests/EndToEndTests/Clients/scripted_gateway.py")
        let output = Pipe.toChild()
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = ["python3", script.path, certificate]
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
        let port = await lines.first { _ in true }
        self.url = "https://127.0.0.1:\(try #require(port))"
    }

    deinit { self.process.terminate() }

    /// Sends an event on the stream that is open.
    func send(_ event: String, _ data: String) async throws {
        try await self.command(["do": "event", "name": event, "data": data])
    }

    /// Sends the wake of a task, or of whatever `kind` is; `members` are added to those that every wake has.
    func wake(_ id: String, _ kind: String, _ members: String, timeLeft: Int = 600_000) async throws {
        let device = String(repeating: "ab", count: 16)
        let start = #"{"wake":"\#(id)","kind":"\#(kind)","device":"\#(device)","topic":"t","attempt":2,"#
        let time = #""submittedAt":7,"deadline":99,"timeLeft":\#(timeLeft)"#
        try await self.send("wake", start + time + ",\(members)}")
    }

    /// Answers the next request of this method whose path ends like this, once.
    func answer(
        _ method: String,
        _ end: String,
        _ status: Int,
        _ body: String = "",
        headers: [String: String] = [:]
    ) async throws {
        try await self.command(
            ["do": "answer", "method": method, "end": end, "status": status, "body": body, "headers": headers]
        )
    }

    /// Ends the stream that is open.
    func endStream() async throws { try await self.command(["do": "end"]) }

    /// A worker of the topic `t` with four slots, which is called `n`.
    func worker(devices: [String] = [], resources: BackgroundTaskResources = []) throws -> WakeWorker {
        try WakeWorker(
            gateway: self.url,
            topic: "t",
            credentials: GatewayCredentials.none.trusting(certificateAuthority: self.certificateAuthority),
            slots: 4,
            devices: devices,
            resources: resources,
            name: "n"
        )
    }

    /// Ends a worker once it was heard to want no more, and waits for it.
    func end(_ worker: WakeWorker, _ run: Task<Void, any Error>) async throws {
        worker.stop()
        try await self.request("/v1/streams/a-stream/drain")
        try await self.endStream()
        try await run.value
    }

    /// The next request whose path without its query ends like this.
    @discardableResult
    func request(_ end: String) async throws -> Request {
        try await self.request { $0.hasSuffix(end) }
    }

    /// The next request whose path without its query is as wanted.
    func request(where isWanted: (Substring) -> Bool) async throws -> Request {
        let line = try await self.line { line in
            let words = line.split(separator: " ", maxSplits: 2)
            return words.count > 1 && isWanted(words[1].split(separator: "?")[0])
        }
        let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        return Request(method: words[0], path: words[1], body: words[2])
    }

    private func command(_ command: [String: Any]) async throws {
        let data = try JSONSerialization.data(withJSONObject: command.merging(["told": true]) { $1 })
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
