import HTTPClient
import Synchronization
package import Wire

/// The requests that one session makes of the agent.
package final class SessionCalls: Sendable {
    package let identifier: String
    package let caller: AgentCaller
    /// The settings that the agent is told before anything else is asked.
    private let settings: [UInt8]
    private let isPrepared = Mutex(false)

    /// How many transfers one answer of a list has.
    private static let pageSize = 1000

    init(_ identifier: String, _ caller: AgentCaller, settings: [UInt8]) {
        self.identifier = identifier
        self.caller = caller
        self.settings = settings
    }

    /// The path of the session, which is what its identifier looks like in one.
    package var path: String { "/v1/sessions/\(URLPath.component(self.identifier))" }

    /// Tells the agent of the session, once.
    func prepare() async throws(BackgroundTransferError) {
        guard !self.isPrepared.withLock({ $0 }) else { return }
        _ = try await self.caller.answer("PUT", self.path, self.settings)
        self.isPrepared.withLock { $0 = true }
    }

    /// Asks for something below the session's path; an agent that has forgotten the session is told of it once more.
    package func answer(
        _ method: String,
        _ rest: String,
        _ body: [UInt8]? = nil,
        countsOnce: Bool? = nil,
        isUnhurried: Bool = false
    ) async throws(BackgroundTransferError) -> JSONValue {
        try await self.prepared { () throws(BackgroundTransferError) in
            try await self.caller.answer(
                method,
                self.path + rest,
                body,
                countsOnce: countsOnce,
                isUnhurried: isUnhurried
            )
        }
    }

    /// The answer as the agent wrote it.
    package func text(_ method: String, _ rest: String) async throws(BackgroundTransferError) -> String {
        try await self.prepared { () throws(BackgroundTransferError) in
            try await self.caller.text(method, self.path + rest)
        }
    }

    private func prepared<Answer>(
        _ ask: () async throws(BackgroundTransferError) -> Answer
    ) async throws(BackgroundTransferError) -> Answer {
        try await self.prepare()
        do throws(BackgroundTransferError) {
            return try await ask()
        } catch {
            guard error.code == .unknownSession else { throw error }
        }
        self.isPrepared.withLock { $0 = false }
        try await self.prepare()
        return try await ask()
    }

    func transfer(_ id: BackgroundTransferID) async throws(BackgroundTransferError) -> BackgroundTransfer {
        try self.transfer(try await self.answer("GET", "/transfers/\(id)"))
    }

    func transfer(_ object: JSONValue) throws(BackgroundTransferError) -> BackgroundTransfer {
        guard let transfer = BackgroundTransfer(object) else { throw self.caller.unreadable }
        return transfer
    }

    /// Every transfer in the order in which they were added, page by page.
    ///
    /// - `page`: is handed each page as the agent wrote it.
    func transfers(
        in state: BackgroundTransfer.State? = nil,
        page: (String) -> Void = { _ in }
    ) async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        var transfers: [BackgroundTransfer] = []
        let filter = state.map { "&state=\($0.rawValue)" } ?? ""
        var after = ""
        while true {
            let text = try await self.text("GET", "/transfers?limit=\(Self.pageSize)\(filter)\(after)")
            guard let answer = JSONValue.object(text.utf8), let listed = answer["transfers"]?.elements else {
                throw self.caller.unreadable
            }
            page(text)
            transfers += listed.compactMap { BackgroundTransfer($0) }
            if let next = answer["next"] {
                guard let last = next.text else { return transfers }
                after = "&after=\(last)"
                continue
            }
            // An agent that knows no `next` has no page that is shorter than was asked for but the last.
            guard listed.count >= Self.pageSize, let last = listed.last?["transfer"]?.text else { return transfers }
            after = "&after=\(last)"
        }
    }

    func wait(milliseconds: Int) async {
        await self.caller.thread.wait(milliseconds: Int64(milliseconds))
    }
}
