import HTTPClient
import Synchronization
package import Wire

/// The tasks that wait for transfers of a session to end. They share one event stream.
final class TransferWatch: Sendable {
    private typealias Ending = Result<BackgroundTransfer, BackgroundTransferError>
    private typealias Waiters = [UInt64: AsyncStream<Ending>.Continuation]

    private struct State {
        var waiters: [BackgroundTransferID: Waiters] = [:]
        var nextKey: UInt64 = 0
        /// The task that reads the events. It runs while at least one waiter exists.
        var reading: Task<Void, Never>?
    }

    private let calls: SessionCalls
    private let state = Mutex(State())

    init(_ calls: SessionCalls) {
        self.calls = calls
    }

    /// Waits until a transfer has ended.
    func end(of transfer: BackgroundTransferID) async throws(BackgroundTransferError) -> BackgroundTransfer {
        let (endings, waiter) = AsyncStream<Ending>.makeStream()
        let key = self.state.withLock { state in
            state.nextKey += 1
            state.waiters[transfer, default: [:]][state.nextKey] = waiter
            if state.reading == nil { state.reading = Task { await self.read() } }
            return state.nextKey
        }
        defer {
            self.state.withLock { state in
                state.waiters[transfer]?[key] = nil
                if state.waiters[transfer]?.isEmpty == true { state.waiters[transfer] = nil }
                Self.endBatchIfNothingWaits(&state)
            }
        }
        // The transfer may have ended before this waiter was added. Then no later event reports it.
        Task { await self.look(for: transfer) }
        for await ending in endings { return try ending.get() }
        throw .taskCancelled
    }

    private func look(for id: BackgroundTransferID) async {
        do throws(BackgroundTransferError) {
            let transfer = try await self.calls.transfer(id)
            if transfer.state.isEnd { self.resume(id, .success(transfer)) }
        } catch {
            // Other errors are temporary: the event reader waits for the agent to restart.
            if !error.isPassing { self.resume(id, .failure(error)) }
        }
    }

    private func read() async {
        do throws(BackgroundTransferError) {
            let reader = EventReader(self.calls, tellsAll: true)
            while let event = try await reader.next() {
                switch event {
                case .finished(let transfer), .failed(let transfer), .cancelled(let transfer):
                    self.resume(transfer.id, .success(transfer))
                case .progress, .idle: ()
                }
            }
        } catch {
            // Fail all waiters in one step. The next waiter starts a new reader.
            let waiters = self.state.withLock { state in
                let waiters = state.waiters.values.flatMap(\.values)
                state.waiters = [:]
                state.reading = nil
                return waiters
            }
            for waiter in waiters { waiter.yield(.failure(error)) }
        }
    }

    private func resume(_ id: BackgroundTransferID, _ result: Ending) {
        let waiters = self.state.withLock { state in
            let waiters = state.waiters.removeValue(forKey: id) ?? [:]
            Self.endBatchIfNothingWaits(&state)
            return Array(waiters.values)
        }
        for waiter in waiters { waiter.yield(result) }
    }

    private static func endBatchIfNothingWaits(_ state: inout State) {
        guard state.waiters.isEmpty else { return }
        state.reading?.cancel()
        state.reading = nil
    }
}

/// The requests that a session sends to the agent.
package final class SessionCalls: Sendable {
    package let identifier: String
    package let caller: AgentCaller
    /// The settings, which are sent to the agent before any other request.
    private let settings: [UInt8]
    private let isPrepared = Mutex(false)

    /// The number of transfers in a page of the list.
    private static let pageSize = 1000

    init(_ identifier: String, _ caller: AgentCaller, settings: [UInt8]) {
        self.identifier = identifier
        self.caller = caller
        self.settings = settings
    }

    /// The URL path of the session, with its identifier percent-encoded.
    package var path: String { "/v1/sessions/\(URLPath.component(self.identifier))" }

    /// Creates or configures the session at the agent, once.
    func prepare() async throws(BackgroundTransferError) {
        guard !self.isPrepared.withLock({ $0 }) else { return }
        _ = try await self.caller.answer("PUT", self.path, self.settings)
        self.isPrepared.withLock { $0 = true }
    }

    /// Sends a request below the session's path. If the agent no longer knows the session, creates the session again
    /// and retries once.
    package func answer(
        _ method: String,
        _ rest: String,
        _ body: [UInt8]? = nil,
        hasNoTimeout: Bool = false
    ) async throws(BackgroundTransferError) -> JSONValue {
        try await self.prepared { () throws(BackgroundTransferError) in
            try await self.caller.answer(method, self.path + rest, body, hasNoTimeout: hasNoTimeout)
        }
    }

    /// Returns the answer exactly as the agent sent it.
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

    /// Returns all transfers in the order in which they were added, requesting one page at a time.
    ///
    /// - `page`: receives each page exactly as the agent sent it.
    package func transfers(
        in state: BackgroundTransfer.State? = nil,
        page: (String) -> Void = { _ in }
    ) async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        var transfers: [BackgroundTransfer] = []
        let filter = state.map { "&state=\($0.rawValue)" } ?? ""
        var after = ""
        while true {
            let text = try await self.text("GET", "/transfers?limit=\(Self.pageSize)\(filter)\(after)")
            guard let answer = JSONValue(object: text.utf8), let listed = answer["transfers"]?.elements else {
                throw self.caller.unreadable
            }
            page(text)
            transfers += listed.compactMap { BackgroundTransfer($0) }
            if let next = answer["next"] {
                guard let last = next.text else { return transfers }
                after = "&after=\(last)"
                continue
            }
            // An agent that sends no `next` member fills every page except the last page.
            guard listed.count >= Self.pageSize, let last = listed.last?["transfer"]?.text else { return transfers }
            after = "&after=\(last)"
        }
    }
}
