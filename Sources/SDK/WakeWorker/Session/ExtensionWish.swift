/// Whoever waits for more time: the first answer counts.
///
/// `@unchecked Sendable`: it is touched on its `HTTPThread` alone.
final class ExtensionWish: @unchecked Sendable {
    typealias Answer = Result<Duration, WakeWorkerError>

    private var continuation: CheckedContinuation<Answer, Never>?
    private var first: Answer?

    var isAnswered: Bool { self.first != nil }

    func awaited(by continuation: CheckedContinuation<Answer, Never>) {
        if let first = self.first { return continuation.resume(returning: first) }
        self.continuation = continuation
    }

    func answer(_ answer: Answer) {
        guard self.first == nil else { return }
        self.first = answer
        self.continuation?.resume(returning: answer)
        self.continuation = nil
    }
}
