import HTTPClient
import Wire

extension WorkerSession: WakeExtender {
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration {
        let milliseconds = Self.milliseconds(duration)
        return try await self.timeLeft(of: wake) { self.extend(wake, milliseconds: milliseconds, $0, on: $1) }
    }

    /// Asks the gateway something about a wake that is being handled.
    ///
    /// - `ask`: asks it on the session's thread.
    /// - Returns: the time that the wake has left by the answer.
    func timeLeft(
        of wake: String,
        _ ask: @escaping @Sendable (ExtensionWish, HTTPLoop) -> Void
    ) async throws(WakeWorkerError) -> Duration {
        let wish = ExtensionWish()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.thread.submit { loop in
                    wish.awaited(by: continuation)
                    guard self.wakes[wake]?.machine.isRunning == true else {
                        return wish.answer(.failure(Self.noSuchWake))
                    }
                    guard !wish.isAnswered else { return }
                    ask(wish, loop)
                    self.settle(on: loop)
                }
            }
        } onCancel: {
            // The gateway may do it all the same; nobody is left to use it.
            self.thread.submit { _ in wish.answer(.failure(Self.cancelled)) }
        }
        return try result.get()
    }

    func beginKeepingAlive(_ wake: String) {
        self.thread.submit { loop in
            guard let deadline = self.wakes[wake]?.machine.deadline else { return }
            self.wakes[wake]?.keepAlive.begun(deadline: deadline)
            self.schedule(wake)
            self.settle(on: loop)
        }
    }

    func endKeepingAlive(_ wake: String) {
        self.thread.submit { loop in
            self.wakes[wake]?.keepAlive.ended()
            self.schedule(wake)
            self.settle(on: loop)
        }
    }

    func extend(_ id: String, milliseconds: Int64, _ wish: ExtensionWish?, on loop: HTTPLoop) {
        do throws(WakeWorkerError) {
            let request = try self.request.extend(id, milliseconds: milliseconds)
            self.purposes[try self.start(request, on: loop)] = .extend(wake: id, wish)
        } catch {
            if error.isPassing {
                self.wakes[id]?.keepAlive.unanswered(now: loop.now)
                self.schedule(id)
            } else {
                self.wakes[id]?.keepAlive.refused()
            }
            wish?.answer(.failure(error))
        }
    }

    func extensionAnswered(
        _ id: String,
        _ result: Result<HTTPResponse, HTTPClientError>,
        _ wish: ExtensionWish?,
        on loop: HTTPLoop
    ) {
        let error: WakeWorkerError
        switch result {
        case .success(let response) where response.isSuccess:
            guard let timeLeft = WakeMessage.timeLeft(response.body) else {
                error = WakeWorkerError(.badAnswer, "the gateway does not say how much time is left; see its version")
                self.wakes[id]?.keepAlive.refused()
                break
            }
            let deadline = loop.now + timeLeft
            self.wakes[id]?.machine.extended(to: deadline)
            self.wakes[id]?.keepAlive.extended(to: deadline)
            self.wakes[id]?.lease.extended(to: .now + .milliseconds(timeLeft))
            self.schedule(id)
            wish?.answer(.success(.milliseconds(timeLeft)))
            return
        case .success(let response):
            error = GatewayEndpoint.refusal(response)
            if self.request.endpoint.isPassing(response.status) {
                self.wakes[id]?.keepAlive.unanswered(now: loop.now)
            } else {
                self.wakes[id]?.keepAlive.refused()
            }
        case .failure(let failure):
            error = self.request.endpoint.error(failure)
            self.wakes[id]?.keepAlive.unanswered(now: loop.now)
        }
        self.schedule(id)
        wish?.answer(.failure(error))
    }

    /// At least a second and at most a day.
    private static func milliseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        guard seconds < 86_400 else { return 86_400_000 }
        guard seconds > 0 else { return 1000 }
        return max(1000, seconds * 1000 + attoseconds / 1_000_000_000_000_000)
    }
}

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
