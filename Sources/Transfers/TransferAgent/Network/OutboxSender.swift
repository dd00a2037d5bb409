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
        case again(String)
        /// The gateway will never accept the report, for this reason.
        case refused(String)
    }

    private let entry: OutboxEntry
    private let settings: AgentSettings
    private let report: @Sendable (Outcome) -> Void
    private static let timeoutMilliseconds = 30_000
    private static let tokenBytesMax = 65_536

    package init(_ entry: OutboxEntry, _ settings: AgentSettings, report: @escaping @Sendable (Outcome) -> Void) {
        self.entry = entry
        self.settings = settings
        self.report = report
    }

    package func begin(on loop: HTTPLoop) {
        guard let gateway = self.settings.gateway else { return self.report(.again("no gateway is named")) }
        var settings = HTTPClientSettings()
        settings.certificateAuthorityFile = self.settings.gatewayAuthority
        settings.bodyBytesMax = 1 << 20
        var base = gateway.hasSuffix("/") ? String(gateway.dropLast()) : gateway
        if gateway.hasPrefix("unix:") {
            settings.socketPath = String(gateway.dropFirst("unix:".count))
            base = "http://localhost"
        }
        var request = HTTPRequest(
            "POST",
            "\(base)/v1/devices/\(URLPath.component(self.entry.device))/sessions/"
                + URLPath.component(self.entry.session),
            headers: [("content-type", "application/json")],
            body: self.body,
            timeoutMilliseconds: Self.timeoutMilliseconds
        )
        request.settings = settings
        if let file = self.settings.gatewayToken {
            do throws(SystemError) {
                let bytes = try OrdinaryFile.contents(file, bytesMax: Self.tokenBytesMax) ?? []
                let token = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first ?? ""
                request.headers.append(("authorization", "Bearer \(token)"))
            } catch {
                return self.report(.again("the token's file \(file) cannot be read (\(error.reason))"))
            }
        }
        do throws(HTTPClientError) {
            _ = try loop.start(request, for: self)
        } catch {
            self.report(.again(error.message))
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
            self.report(.again(error.detail.isEmpty ? error.message : "\(error.message): \(error.detail)"))
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
        case 409 where reason == "TooManySessions": return .again(words)
        case 401, 403, 408, 425, 429: return .again(words)
        case 500...: return .again(words)
        default: return .refused(words)
        }
    }
}
