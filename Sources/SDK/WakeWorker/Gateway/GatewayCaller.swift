import HTTPClient
import Platform

/// Asks the gateway, and waits for its answer.
struct GatewayCaller: Sendable {
    let endpoint: GatewayEndpoint
    let thread: HTTPThread

    /// How often a request is tried that does not reach the gateway, or finds it busy.
    private static let triesMax = 5
    /// The longest that the gateway may want to be left alone before another try is the caller's to make, in seconds.
    private static let patience: Int64 = 5

    /// Asks until there is an answer, a few times: what did not reach the gateway, or found it busy, is tried again.
    ///
    /// - `countsOnce`: whether it comes to the same when a request arrives twice; by default for all but POST.
    func answer(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        countsOnce: Bool? = nil
    ) async throws(WakeWorkerError) -> HTTPResponse {
        var backoff = Backoff(firstMilliseconds: 200, lastMilliseconds: 5000)
        var generator = RandomBits()
        var tries = 1
        var isConnectionDoubtful = false
        let mayArriveTwice = countsOnce ?? (method != "POST")
        while true {
            let mayRepeat: Bool
            let fault: WakeWorkerError
            switch await self.outcome(method, path, body, isFresh: isConnectionDoubtful) {
            case .success(let response):
                guard !response.isSuccess else {
                    self.endpoint.accepted()
                    return response
                }
                fault = GatewayEndpoint.refusal(response)
                mayRepeat = self.endpoint.isPassing(response.status) && Self.wait(fault) <= Self.patience
            case .failure(let error):
                fault = error
                // What may have arrived is not sent again: a registration would make a second device.
                mayRepeat = error.isPassing && (mayArriveTwice || error.cause?.mayHaveArrived != true)
            }
            guard mayRepeat, tries < Self.triesMax, !Task.isCancelled else { throw fault }
            tries += 1
            isConnectionDoubtful = fault.code == .timedOut
            let wait = Int64(backoff.failed(using: &generator))
            await self.thread.wait(milliseconds: max(wait, Self.wait(fault) * 1000))
        }
    }

    /// How many seconds the gateway is to be left alone. With 503 it says when it will have restarted, and callers
    /// spread their tries by themselves, so only 429 counts.
    private static func wait(_ fault: WakeWorkerError) -> Int64 {
        guard let refusal = fault.refusal, refusal.status == 429 else { return 0 }
        return refusal.retryAfter ?? 0
    }

    private func outcome(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        isFresh: Bool
    ) async -> Result<HTTPResponse, WakeWorkerError> {
        do throws(WakeWorkerError) {
            var request = try self.endpoint.request(method, path, body: body)
            request.isFresh = isFresh
            do throws(HTTPClientError) {
                return .success(try await self.thread.perform(request))
            } catch {
                return .failure(self.endpoint.error(error))
            }
        } catch {
            return .failure(error)
        }
    }

    /// A device's token as it stands in a path.
    static func hexadecimal(_ token: String) throws(WakeWorkerError) -> String {
        let isToken = (32...200).contains(token.utf8.count) && token.utf8.count.isMultiple(of: 2)
        guard isToken, token.utf8.allSatisfy({ $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 6 }) else {
            throw WakeWorkerError(
                .badArgument,
                "a device token is an even number of hexadecimal digits, 32 to 200 of them; this is something else"
            )
        }
        return token
    }
}
