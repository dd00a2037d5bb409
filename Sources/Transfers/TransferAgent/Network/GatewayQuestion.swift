import Glibc
import HTTPClient
import Platform
import Wire

/// The reason why a request did not get a usable answer from the gateway.
package struct GatewayFault: Error, Hashable {
    package let cause: String

    package init(cause: String) { self.cause = cause }
}

extension GatewayFault {
    /// Creates the fault for an answer with this status.
    init(_ status: Int, reason: String) {
        self.init(cause: "the gateway answered \(status)\(reason.isEmpty ? "" : " \(reason)")")
    }

    /// Creates the fault for a request without an answer.
    init(_ error: HTTPClientError) {
        self.init(cause: error.detail.isEmpty ? error.message : "\(error.message): \(error.detail)")
    }
}

extension OutboxEntry {
    /// The outcome of a report to the gateway about the ended transfers of a session.
    package enum Outcome: Hashable, Sendable {
        case delivered
        /// The report must be repeated. The value is the reason.
        case retry(String)
        /// The gateway will never accept the report. The value is the reason.
        case refused(String)
    }

    var request: (method: String, path: String, body: [UInt8]?) {
        let body = JSONWriter.object { json in
            json.member("finished", self.finished)
            json.member("id", self.event)
        }
        let path = "/v1/devices/\(URLPath.component(self.device))/sessions/\(URLPath.component(self.session))"
        return ("POST", path, body)
    }

    /// Returns the outcome for a status. After 401 and 403, the report is repeated, because the token may be replaced.
    /// An answer without a reason does not come from a gateway, but for instance from a proxy before it.
    package static func outcome(of status: Int, reason: String) -> Outcome {
        let words = GatewayFault(status, reason: reason).cause
        switch status {
        case 200..<300: return .delivered
        case 409 where reason == "TooManySessions": return .retry(words)
        case 401, 403, 408, 425, 429: return .retry(words)
        case 500...: return .retry(words)
        case _ where reason.isEmpty: return .retry(words)
        default: return .refused(words)
        }
    }
}

extension HTTPResponse {
    /// The gateway's answer to the question whether the app was force-quit on a device; false for an unregistered
    /// device.
    package var isForceQuit: Result<Bool, GatewayFault> {
        let reason = self.refusal?.reason ?? ""
        if reason == "UnknownDevice" || reason == "Unregistered" { return .success(false) }
        guard self.status == 200, let state = JSONValue(self.body)?["appState"]?.text else {
            return .failure(GatewayFault(self.status, reason: reason))
        }
        return .success(state == "forceQuit")
    }
}

extension AgentSettings {
    private static let timeoutMilliseconds = 30_000
    private static let tokenBytesMax = 65_536

    /// Returns a request to the gateway with the agent's credentials.
    func gatewayRequest(_ method: String, _ path: String, _ body: [UInt8]?) throws(GatewayFault) -> HTTPRequest {
        guard let gateway = self.gateway else { throw GatewayFault(cause: "no gateway is named") }
        var settings = HTTPClientSettings()
        settings.certificateAuthorityFile = self.gatewayAuthority
        settings.bodyBytesMax = 1 << 20
        var base = gateway.hasSuffix("/") ? String(gateway.dropLast()) : gateway
        if gateway.hasPrefix("unix:") {
            settings.socketPath = String(gateway.dropFirst("unix:".count))
            base = "http://localhost"
        }
        var request = HTTPRequest(method, base + path, body: body, timeoutMilliseconds: Self.timeoutMilliseconds)
        if body != nil { request.headers.append(("content-type", "application/json")) }
        request.settings = settings
        guard let file = self.gatewayToken else { return request }
        do throws(SystemError) {
            let bytes = try OrdinaryFile.contents(file, bytesMax: Self.tokenBytesMax) ?? []
            let token = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first ?? ""
            request.headers.append(("authorization", "Bearer \(token)"))
        } catch {
            throw GatewayFault(cause: "the token's file \(file) cannot be read (\(error.reason))")
        }
        return request
    }
}
