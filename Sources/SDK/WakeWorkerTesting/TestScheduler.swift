import FoundationEssentials
import Synchronization
public import WakeWorker

/// A scheduler for tests. It records the submitted requests instead of sending them to a gateway.
///
/// ```swift
/// let test = TestScheduler()
/// test.refusal = .notPermitted
/// await planRefresh(test.scheduler)
/// #expect(test.submittedRequests.isEmpty)
/// ```
public final class TestScheduler: Sendable {
    private struct State {
        var submitted: [BackgroundTaskRequest] = []
        var pending: [PendingTaskRequest] = []
        var cancelled: [String] = []
        var transfers: [String: Int] = [:]
        /// The ids of the reported transfers, by session.
        var reports: [String: Set<String>] = [:]
        var refusal: BackgroundTaskError.Code?
    }

    private let state = Mutex(State())

    /// Creates a scheduler without pending requests.
    public init() {}

    /// The scheduler to pass to the code under test.
    public var scheduler: BackgroundTaskScheduler { BackgroundTaskScheduler(self) }

    /// All accepted requests, in the order of their submission.
    public var submittedRequests: [BackgroundTaskRequest] { self.state.withLock { $0.submitted } }

    /// The cancelled identifiers, in order. `cancelAll` adds the identifiers of all pending requests.
    public var cancelledIdentifiers: [String] { self.state.withLock { $0.cancelled } }

    /// The number of finished transfers that the code under test reported, by session. As at a gateway, reports with
    /// the same id for a session count once.
    public var finishedTransfers: [String: Int] { self.state.withLock { $0.transfers } }

    /// The code with which requests are refused; nil to accept requests.
    public var refusal: BackgroundTaskError.Code? {
        get { self.state.withLock { $0.refusal } }
        set { self.state.withLock { $0.refusal = newValue } }
    }
}

extension TestScheduler: TaskRequestRecorder {
    package func submit(_ request: BackgroundTaskRequest) throws(BackgroundTaskError) -> BackgroundTaskSubmission {
        try self.state.withLock { state throws(BackgroundTaskError) in
            if let code = state.refusal {
                throw BackgroundTaskError(code, "the test refuses \(request.identifier): \(code)")
            }
            state.submitted.append(request)
            let isReplaced = state.pending.contains { $0.identifier == request.identifier }
            state.pending.removeAll { $0.identifier == request.identifier }
            state.pending.append(PendingTaskRequest(request, submittedAt: .now))
            return BackgroundTaskSubmission(
                identifier: request.identifier,
                disposition: isReplaced ? .replaced : .scheduled
            )
        }
    }

    package func pendingRequests() -> [PendingTaskRequest] { self.state.withLock { $0.pending } }

    package func cancel(_ identifier: String?) {
        self.state.withLock { state in
            state.cancelled += identifier.map { [$0] } ?? state.pending.map(\.identifier)
            state.pending.removeAll { identifier == nil || $0.identifier == identifier }
        }
    }

    package func transfersFinished(session: String, count: Int, id: String?) {
        self.state.withLock { state in
            if let id, !state.reports[session, default: []].insert(id).inserted { return }
            state.transfers[session, default: 0] += count
        }
    }
}
