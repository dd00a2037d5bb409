import Synchronization

/// Who waits for the ends of a session's transfers: all of them share one stream of events.
final class TransferWatch: Sendable {
    private typealias Ending = Result<BackgroundTransfer, BackgroundTransferError>
    private typealias Waiters = [UInt64: CheckedContinuation<Ending, Never>]

    private struct State {
        var waiters: [BackgroundTransferID: Waiters] = [:]
        var nextKey: UInt64 = 0
        /// Waiters whose task was cancelled before they waited.
        var cancelled: Set<UInt64> = []
        /// Reads the events while somebody waits.
        var reading: Task<Void, Never>?
    }

    private let calls: SessionCalls
    private let state = Mutex(State())

    init(_ calls: SessionCalls) {
        self.calls = calls
    }

    /// Waits until a transfer has ended.
    func end(of transfer: BackgroundTransferID) async throws(BackgroundTransferError) -> BackgroundTransfer {
        let key = self.state.withLock { state in
            state.nextKey += 1
            return state.nextKey
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.add(continuation, key, transfer)
            }
        } onCancel: {
            self.cancel(key, transfer)
        }
        return try result.get()
    }

    private func add(_ waiter: CheckedContinuation<Ending, Never>, _ key: UInt64, _ transfer: BackgroundTransferID) {
        let isCancelled = self.state.withLock { state in
            if state.cancelled.remove(key) != nil { return true }
            state.waiters[transfer, default: [:]][key] = waiter
            if state.reading == nil { state.reading = Task { await self.read() } }
            return false
        }
        guard !isCancelled else { return waiter.resume(returning: .failure(.taskCancelled)) }
        // It may have ended after the last event's reader came, and before this one did.
        Task { await self.look(for: transfer) }
    }

    private func cancel(_ key: UInt64, _ transfer: BackgroundTransferID) {
        let waiter = self.state.withLock { state -> CheckedContinuation<Ending, Never>? in
            guard let waiter = state.waiters[transfer]?.removeValue(forKey: key) else {
                state.cancelled.insert(key)
                return nil
            }
            if state.waiters[transfer]?.isEmpty == true { state.waiters[transfer] = nil }
            Self.restIfNobodyWaits(&state)
            return waiter
        }
        waiter?.resume(returning: .failure(.taskCancelled))
    }

    private func look(for id: BackgroundTransferID) async {
        do throws(BackgroundTransferError) {
            let transfer = try await self.calls.transfer(id)
            if transfer.state.isEnd { self.resume(id, .success(transfer)) }
        } catch {
            // The reader of events waits for an agent that starts again.
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
            // All at once, so that who comes now has another reader begun.
            let waiters = self.state.withLock { state in
                let waiters = state.waiters.values.flatMap(\.values)
                state.waiters = [:]
                state.reading = nil
                return waiters
            }
            for waiter in waiters { waiter.resume(returning: .failure(error)) }
        }
    }

    private func resume(_ id: BackgroundTransferID, _ result: Ending) {
        let waiters = self.state.withLock { state in
            let waiters = state.waiters.removeValue(forKey: id) ?? [:]
            Self.restIfNobodyWaits(&state)
            return Array(waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    private static func restIfNobodyWaits(_ state: inout State) {
        guard state.waiters.isEmpty else { return }
        state.reading?.cancel()
        state.reading = nil
    }
}
