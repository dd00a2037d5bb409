import HTTPClient
import Wire

extension WakeWorker {
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
        if let deviceToken { body = "{\"token\":\"\(try GatewayCaller.hexadecimal(deviceToken))\"}" }
        let response = try await self.caller.answer("POST", "\(self.request.topicPath)/devices", Array(body.utf8))
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
        _ = try await self.caller.answer("DELETE", "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))", nil)
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
        let path = "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))/conditions"
        let body = try conditions.json()
        if conditions.appState != nil { await self.takeAppState(path: path) }
        let response = try await self.caller.answer("PATCH", path, body)
        guard let object = GatewayEndpoint.object(response.body) else {
            throw WakeWorkerError(.badAnswer, "the gateway's answer is no JSON object; see the gateway's version")
        }
        return DeviceConditions(object)
    }
}
