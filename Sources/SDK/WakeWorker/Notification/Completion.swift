import Synchronization

/// The first result that comes, for whoever awaits it.
final class Completion: Sendable {
    private enum State {
        case begun
        case awaited(CheckedContinuation<BackgroundFetchResult, Never>)
        case completed(BackgroundFetchResult)
    }

    private let state = Mutex(State.begun)

    func awaited(by continuation: CheckedContinuation<BackgroundFetchResult, Never>) {
        let early: BackgroundFetchResult? = self.state.withLock { state in
            if case .completed(let result) = state { return result }
            state = .awaited(continuation)
            return nil
        }
        if let early { continuation.resume(returning: early) }
    }

    /// - Returns: false when a result came before.
    @discardableResult
    func complete(_ result: BackgroundFetchResult) -> Bool {
        let before = self.state.withLock { state in
            defer { if case .completed = state {} else { state = .completed(result) } }
            return state
        }
        switch before {
        case .begun: return true
        case .awaited(let continuation):
            continuation.resume(returning: result)
            return true
        case .completed: return false
        }
    }
}

/// What a completion handler keeps: when it goes without a call, the wake has failed.
final class CompletionCall: Sendable {
    private let completion: Completion

    init(_ completion: Completion) {
        self.completion = completion
    }

    deinit {
        self.completion.complete(.failed)
    }

    func call(_ result: BackgroundFetchResult) {
        self.completion.complete(result)
    }
}
