import Foundation
import Testing
import WakeGateTestKit
import WakeWorker

/// A peer on a free loopback port that takes workers as a gateway does, sends what a test writes, and answers as it is
/// told, with 204 otherwise.
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

    /// Answers the next request of this method whose path ends like this, once; if it is held, after `release`.
    func answer(
        _ method: String,
        _ end: String,
        _ status: Int,
        _ body: String = "",
        headers: [String: String] = [:],
        isHeld: Bool = false
    ) async throws {
        let answer: [String: Any] = ["method": method, "end": end, "status": status, "body": body, "headers": headers]
        try await self.command(answer.merging(["do": "answer", "held": isHeld]) { $1 })
    }

    /// Sends the answers that are held.
    func release() async throws { try await self.command(["do": "release"]) }

    /// Ends the stream that is open.
    func endStream() async throws { try await self.command(["do": "end"]) }

    /// A worker of the topic `t`, which is called `n`.
    func worker(timing: WorkerTiming) throws -> WakeWorker {
        let credentials = GatewayCredentials.none.trusting(certificateAuthority: self.certificateAuthority)
        return try WakeWorker(gateway: self.url, topic: "t", credentials: credentials, slots: 4, timing: timing)
    }

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

    /// Ends a worker once it was heard to want no more, and waits for it.
    func end(_ worker: WakeWorker, _ run: Task<Void, any Error>) async throws {
        worker.stop()
        try await self.request("/v1/streams/a-stream/drain")
        try await self.endStream()
        try await run.value
    }

    /// The next request whose path without its query ends like this.
    @discardableResult
    func request(_ end: String) async throws -> ScriptedChild.Request {
        try await self.request { $0.hasSuffix(end) }
    }

    /// The next request whose path without its query is as wanted.
    func request(where isWanted: (Substring) -> Bool) async throws -> ScriptedChild.Request {
        try await self.child.request(where: isWanted)
    }

    private func command(_ command: [String: Any]) async throws {
        try await self.child.command(command.merging(["told": true]) { $1 })
    }
}
