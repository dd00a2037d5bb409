import HTTPClient
import Text
import WakeFormat

extension WorkerSession {
    func tell(_ progress: TaskProgress, of wake: String) async throws(WakeWorkerError) {
        _ = try await self.timeLeft(of: wake) { wish, loop in
            do throws(WakeWorkerError) {
                let request = try self.request.progress(progress, wake: wake)
                self.purposes[try self.start(request, on: loop)] = .progress(wake: wake, wish)
            } catch {
                wish.answer(.failure(error))
            }
        }
    }

    func progressAnswered(
        _ id: String,
        _ result: Result<HTTPResponse, HTTPClientError>,
        _ wish: ExtensionWish,
        on loop: HTTPLoop
    ) {
        switch result {
        case .success(let response) where response.isSuccess:
            guard let instant = GatewayEndpoint.object(response.body)?["deadline"]?.integer, let wake = self.wakes[id]
            else { return wish.answer(.failure(Self.noDeadline)) }
            // By the gateway's clock, of which only the distance from the deadline that the wake came with counts.
            let believed = max(0, min(instant, WakeMessage.instantMax))
            let deadline = wake.firstDeadline.here + (believed - wake.firstDeadline.gateway)
            let timeLeft = max(0, min(deadline - loop.now, WakeMessage.timeLeftMax))
            self.wakes[id]?.machine.extended(to: loop.now + timeLeft)
            wake.lease.extended(to: .now + .milliseconds(timeLeft))
            self.schedule(id)
            wish.answer(.success(.milliseconds(timeLeft)))
        case .success(let response): wish.answer(.failure(GatewayEndpoint.refusal(response)))
        case .failure(let error): wish.answer(.failure(self.request.endpoint.error(error)))
        }
    }

    private static let noDeadline = WakeWorkerError(
        .badAnswer,
        "the gateway does not say until when a task may run; see its version"
    )
}
