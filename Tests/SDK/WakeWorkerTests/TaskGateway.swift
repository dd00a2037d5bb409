import Foundation
import Testing
import WakeGateTestKit
import WakeWorker

/// A peer on a free loopback port. It accepts workers like a gateway, sends what a test writes, and gives the answers
/// that a test sets, otherwise 204.
final class TaskGateway {
    let url: String
    let certificateAuthority: String
    private let authority: TestAuthority
    private let child: ScriptedChild

    init() async throws {
        self.authority = try TestAuthority()
        let extensions = "subjectAltName = IP:127.0.0.1\nextendedKeyUsage = serverAuth"
        let certificate = try self.authority.issue("/CN=127.0.0.1", extensions: extensions)
        self.certificateAuthority = self.authority.certificate
        self.child = try ScriptedChild("scripted_gateway.py", certificate)
        self.url = "https://127.0.0.1:\(try await self.child.line { _ in true })"
    }

    /// Sends an event on the open stream.
    func send(_ event: String, _ data: String) async throws {
        try await self.command(["do": "event", "name": event, "data": data])
    }

    /// Sends a wake of this kind. `members` are added to the members that every wake has.
    func wake(_ id: String, _ kind: String, _ members: String, timeLeft: Int = 600_000) async throws {
        let device = String(repeating: "ab", count: 16)
        let start = #"{"wake":"\#(id)","kind":"\#(kind)","device":"\#(device)","topic":"t","attempt":2,"#
        let time = #""submittedAt":7,"deadline":99,"timeLeft":\#(timeLeft)"#
        try await self.send("wake", start + time + ",\(members)}")
    }

    /// Answers the next request with this method whose path has this ending, once.
    func answer(
        _ method: String,
        _ end: String,
        _ status: Int,
        _ body: String = "",
        headers: [String: String] = [:]
    ) async throws {
        let answer: [String: Any] = ["method": method, "end": end, "status": status, "body": body, "headers": headers]
        try await self.command(answer.merging(["do": "answer"]) { $1 })
    }

    /// Ends the open stream.
    func endStream() async throws { try await self.command(["do": "end"]) }

    /// Creates a worker of the topic `t` with the name `n`.
    func worker(devices: [String] = [], resources: BackgroundTaskResources = [], slots: Int = 4) throws -> WakeWorker {
        try WakeWorker(
            gateway: self.url,
            topic: "t",
            credentials: GatewayCredentials.none.trusting(certificateAuthority: self.certificateAuthority),
            slots: slots,
            devices: devices,
            resources: resources,
            name: "n"
        )
    }

    /// Runs a worker that handles tasks only, and waits until it subscribes.
    func run(_ worker: WakeWorker) async throws -> Task<Void, any Error> {
        let run = Task { try await worker.runTasks() }
        try await self.request("/wakes")
        return run
    }

    /// Stops a worker, waits until it reports that it takes no more wakes, and then waits until it has ended.
    func end(_ worker: WakeWorker, _ run: Task<Void, any Error>) async throws {
        worker.stop()
        try await self.request("/v1/streams/a-stream/drain")
        try await self.endStream()
        try await run.value
    }

    /// Stops a worker, waits until it has ended, and returns its events.
    func events(of worker: WakeWorker, _ run: Task<Void, any Error>) async throws -> [WakeWorkerEvent] {
        try await self.end(worker, run)
        worker.endEvents()
        return await worker.events.reduce(into: []) { $0.append($1) }
    }

    /// Waits for the next request whose path without its query has this ending.
    @discardableResult
    func request(_ end: String) async throws -> ScriptedChild.Request {
        try await self.request { $0.hasSuffix(end) }
    }

    /// Waits for the next request whose path without its query meets the condition.
    func request(where isWanted: (Substring) -> Bool) async throws -> ScriptedChild.Request {
        try await self.child.request(where: isWanted)
    }

    private func command(_ command: [String: Any]) async throws {
        try await self.child.command(command.merging(["told": true]) { $1 })
    }
}
