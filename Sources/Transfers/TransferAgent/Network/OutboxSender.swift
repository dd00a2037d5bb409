import Glibc
package import HTTPClient
import Platform
import Wire

/// Sends one request which reports to the gateway that transfers of a session have ended.
///
/// `@unchecked Sendable`: accessed only on the `HTTPThread`.
package final class OutboxSender: HTTPAgent, @unchecked Sendable {
    /// The outcome of the request.
    package enum Outcome: Hashable, Sendable {
        case delivered
        /// The report must be repeated, for this reason.
        case retry(String)
        /// The gateway will never accept the report, for this reason.
        case refused(String)
    }

    private let entry: OutboxEntry
    private let settings: AgentSettings
    private let report: @Sendable (Outcome) -> Void

    package init(_ entry: OutboxEntry, _ settings: AgentSettings, report: @escaping @Sendable (Outcome) -> Void) {
        self.entry = entry
        self.settings = settings
        self.report = report
    }

    package func begin(on loop: HTTPLoop) {
        let path =
            "/v1/devices/\(URLPath.component(self.entry.device))/sessions/\(URLPath.component(self.entry.session))"
        let request: HTTPRequest
        do throws(UnsendableRequest) {
            request = try self.settings.gatewayRequest("POST", path, self.body)
        } catch {
            return self.report(.retry(error.cause))
        }
        do throws(HTTPClientError) {
            _ = try loop.start(request, for: self)
        } catch {
            self.report(.retry(error.message))
        }
    }

    private var body: [UInt8] {
        JSONWriter.object { json in
            json.member("finished", self.entry.finished)
            json.member("id", self.entry.event)
        }
    }

    package func momentReached(on loop: HTTPLoop) {}

    package func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        guard case .ended(_, let result) = event else { return }
        switch result {
        case .failure(let error):
            self.report(.retry(error.detail.isEmpty ? error.message : "\(error.message): \(error.detail)"))
        case .success(let response):
            let reason = response.refusal?.reason ?? ""
            self.report(Self.outcome(of: response.status, reason: reason))
        }
    }

    /// Returns the outcome for a status. After 401 and 403 the report is repeated, because the token may be renewed.
    package static func outcome(of status: Int, reason: String) -> Outcome {
        let words = reason.isEmpty ? "the gateway answered \(status)" : "the gateway answered \(status) \(reason)"
        switch status {
        case 200..<300: return .delivered
        case 409 where reason == "TooManySessions": return .retry(words)
        case 401, 403, 408, 425, 429: return .retry(words)
        case 500...: return .retry(words)
        default: return .refused(words)
        }
    }
}

/// Asks the gateway whether the app was force-quit on a device; one request.
///
/// `@unchecked Sendable`: it is touched on the `HTTPThread` alone.
package final class ForceQuitQuestion: HTTPAgent, @unchecked Sendable {
    private let device: String
    private let settings: AgentSettings
    private let report: @Sendable (Bool?) -> Void

    package init(_ device: String, _ settings: AgentSettings, report: @escaping @Sendable (Bool?) -> Void) {
        self.device = device
        self.settings = settings
        self.report = report
    }

    package func begin(on loop: HTTPLoop) {
        let path = "/v1/devices/\(URLPath.component(self.device))/conditions"
        guard let request = try? self.settings.gatewayRequest("GET", path, nil),
            (try? loop.start(request, for: self)) != nil
        else { return self.report(nil) }
    }

    package func momentReached(on loop: HTTPLoop) {}

    package func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        guard case .ended(_, let result) = event else { return }
        guard case .success(let response) = result else { return self.report(nil) }
        // A device that is not registered is not force-quit.
        if response.status == 404 || response.status == 410 { return self.report(false) }
        let state = response.status == 200 ? JSONValue(response.body)?["appState"]?.text : nil
        self.report(state.map { $0 == "forceQuit" })
    }
}

/// The reason why a request to the gateway cannot be made.
private struct UnsendableRequest: Error {
    let cause: String
}

extension AgentSettings {
    private static let timeoutMilliseconds = 30_000
    private static let tokenBytesMax = 65_536

    /// Returns a request to the gateway with the agent's credentials.
    fileprivate func gatewayRequest(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?
    ) throws(UnsendableRequest) -> HTTPRequest {
        guard let gateway = self.gateway else { throw UnsendableRequest(cause: "no gateway is named") }
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
            throw UnsendableRequest(cause: "the token's file \(file) cannot be read (\(error.reason))")
        }
        return request
    }
}
