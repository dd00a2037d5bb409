import HTTPClient
import Platform
import Text

extension WakeWorker {
    /// How often a request is tried that does not reach the gateway, or finds it busy.
    private static let triesMax = 5

    /// Registers a device of the worker's topic, as `registerForRemoteNotifications` does on iOS.
    ///
    /// - Parameter deviceToken: the device's token, an even number of hexadecimal digits, 32 to 200 of them; nil to
    ///   have a new one made. To register a token again changes nothing.
    /// - Returns: the device's token, for providers to push to.
    /// - Throws: ``WakeWorkerError``: `refused` when the gateway does, and what keeps a request from it.
    ///
    /// ```swift
    /// let token = try await worker.registerForRemoteNotifications()
    /// ```
    public func registerForRemoteNotifications(
        deviceToken: String? = nil
    ) async throws(WakeWorkerError) -> String {
        var body = "{}"
        if let deviceToken { body = "{\"token\":\"\(try Self.hexadecimal(deviceToken))\"}" }
        let response = try await self.answer("POST", "\(self.request.topicPath)/devices", Array(body.utf8))
        guard let token = GatewayEndpoint.object(response.body)?["token"]?.text else {
            throw WakeWorkerError(.badAnswer, "the gateway's answer names no token; see the gateway's version")
        }
        return token
    }

    /// Removes a device: what waits for it is discarded, and pushes to it are refused from now on.
    ///
    /// - Parameter deviceToken: the device's token.
    /// - Throws: ``WakeWorkerError``: `refused` when the gateway knows no such device, and what keeps a request from
    ///   it.
    ///
    /// ```swift
    /// try await worker.unregister(deviceToken: token)
    /// ```
    public func unregister(deviceToken: String) async throws(WakeWorkerError) {
        _ = try await self.answer("DELETE", "/v1/devices/\(try Self.hexadecimal(deviceToken))", nil)
    }

    /// Tells the gateway in what state a device is.
    ///
    /// Whoever names `appState` is taken at their word: ``reportMachineConditions(for:_:)``, if it runs for the device,
    /// reports it no more.
    ///
    /// - Parameters:
    ///   - conditions: what has changed.
    ///   - deviceToken: the device's token.
    /// - Returns: all that the gateway now knows of the device's state.
    /// - Throws: ``WakeWorkerError``: `badArgument` for a battery level outside 0...1, `refused` when the gateway knows
    ///   no such device, and what keeps a request from it.
    ///
    /// ```swift
    /// try await worker.report(conditions, for: token)
    /// ```
    @discardableResult
    public func report(
        _ conditions: DeviceConditions,
        for deviceToken: String
    ) async throws(WakeWorkerError) -> DeviceConditions {
        let path = "/v1/devices/\(try Self.hexadecimal(deviceToken))/conditions"
        let body = try conditions.json()
        if conditions.appState != nil { await self.takeAppState(path: path) }
        let response = try await self.answer("PATCH", path, body)
        guard let object = GatewayEndpoint.object(response.body) else {
            throw WakeWorkerError(.badAnswer, "the gateway's answer is no JSON object; see the gateway's version")
        }
        return DeviceConditions(object)
    }

    /// Asks until there is an answer, a few times: what did not reach the gateway, or found it busy, is tried again.
    private func answer(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?
    ) async throws(WakeWorkerError) -> HTTPResponse {
        var backoff = Backoff(firstMilliseconds: 200, lastMilliseconds: 5000)
        var generator = RandomBits()
        var tries = 1
        var isConnectionDoubtful = false
        let endpoint = self.request.endpoint
        while true {
            let mayRepeat: Bool
            let fault: WakeWorkerError
            switch await self.outcome(method, path, body, isFresh: isConnectionDoubtful) {
            case .success(let response):
                guard !response.isSuccess else {
                    endpoint.accepted()
                    return response
                }
                fault = GatewayEndpoint.refusal(response)
                mayRepeat = endpoint.isPassing(response.status)
            case .failure(let error):
                fault = error
                // What may have arrived is not sent again: a registration would make a second device.
                let mayArriveTwice = method == "POST" && error.cause?.mayHaveArrived == true
                mayRepeat = error.isPassing && !mayArriveTwice
            }
            guard mayRepeat, tries < Self.triesMax, !Task.isCancelled else { throw fault }
            tries += 1
            isConnectionDoubtful = fault.code == .timedOut
            await self.thread.wait(milliseconds: Int64(backoff.failed(using: &generator)))
        }
    }

    private func outcome(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        isFresh: Bool
    ) async -> Result<HTTPResponse, WakeWorkerError> {
        let endpoint = self.request.endpoint
        do throws(WakeWorkerError) {
            var request = try endpoint.request(method, path, body: body)
            request.isFresh = isFresh
            do throws(HTTPClientError) {
                return .success(try await self.thread.perform(request))
            } catch {
                return .failure(endpoint.error(error))
            }
        } catch {
            return .failure(error)
        }
    }

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
