package import Engine
package import HTTPClient
package import HTTPTransport
import Policy
package import Wire

/// The consequence of a webhook's answer, or of a missing answer, for a wake.
package enum WebhookVerdict: Hashable, Sendable {
    /// The webhook has reported the result.
    case result(WakeReport)
    /// The webhook has accepted the wake, and will report the result with a request of its own.
    case accepted
    /// The webhook's answer is invalid; the wake has failed.
    case refused(cause: String)
    /// The webhook may have received the wake; its result is unknown.
    case lost(cause: String)
    /// The webhook did not receive the wake, or gave it back. `retryAfter` is the requested pause, in milliseconds; nil
    /// for none.
    case undelivered(cause: String, retryAfter: Int64?)

    /// Interprets the result of the request that posted a wake of this kind.
    package init(_ result: Result<HTTPResponse, HTTPClientError>, of kind: WakeKind) {
        switch result {
        case .success(let response): self = Self.verdict(on: response, kind)
        case .failure(let error): self = Self.verdict(on: error)
        }
    }

    private static func verdict(on response: HTTPResponse, _ kind: WakeKind) -> WebhookVerdict {
        switch response.status {
        case 200: return self.result(of: response, kind)
        case 202: return .accepted
        case 204: return .result(kind == .push ? .push(.newData) : .task(.success))
        case 300..<400:
            return .refused(cause: "it answered \(response.status), and redirects are not followed; set the final URL")
        case 429, 503:
            guard let seconds = response.retryAfterSeconds else { break }
            let retryAfter = Int64(min(seconds, 86_400)) * 1000
            return .undelivered(
                cause: "it answered \(response.status) and asked for \(retryAfter / 1000) s of rest",
                retryAfter: retryAfter
            )
        default: break
        }
        return .refused(cause: "it answered \(response.status)")
    }

    private static func result(of response: HTTPResponse, _ kind: WakeKind) -> WebhookVerdict {
        // JSON is UTF-8 (RFC 8259, 8.1).
        guard let text = String(validating: response.body, as: UTF8.self) else {
            return .refused(cause: "it answered 200 with a body that is not UTF-8")
        }
        guard let object = try? JSONReader.read(text), case .object = object else {
            return .refused(cause: "it answered 200 with a body that is not a JSON object")
        }
        guard kind == .push else {
            guard case .bool(let isSuccess)? = object["success"] else {
                return .refused(cause: "it answered 200 to a \(kind.name) wake without success, true or false")
            }
            return .result(.task(isSuccess ? .success : .failure))
        }
        guard case .string(let text)? = object["result"], let result = FetchResult(rawValue: text) else {
            return .refused(cause: "it answered 200 without a result of newData, noData or failed")
        }
        return .result(.push(result))
    }

    private static func verdict(on error: HTTPClientError) -> WebhookVerdict {
        if error.code == .tooLarge {
            return .refused(cause: "it answered more than \(WebhookConfiguration.answerBytesMax) bytes")
        }
        if error.code == .headTooLarge {
            let fault = "it answered with header fields of more than \(HTTPResponse.headBytesMax) bytes"
            return .refused(cause: "\(fault); let it send fewer or shorter ones")
        }
        var cause = error.detail.isEmpty ? error.message : error.detail
        if error.code == .refusedAddress { cause += "; set allowPrivate: true if it is your own" }
        return error.mayHaveArrived ? .lost(cause: cause) : .undelivered(cause: cause, retryAfter: nil)
    }
}

/// The signature that lets a receiver verify that a wake comes from the gateway and is recent.
package enum WebhookSignature {
    /// Returns the value of the header `wakegate-signature`: `v1=` followed by an HMAC-SHA256 in lower-case
    /// hexadecimal. Its key is the secret; its message is the time, a period and the body.
    ///
    /// - `timestamp`: the value of the header `wakegate-timestamp`.
    package static func make(body: [UInt8], timestamp: String, secret: [UInt8]) throws(TransportError) -> String {
        let code = try MessageCode.make(Array("\(timestamp).".utf8) + body, key: secret)
        return "v1=\(code.hex)"
    }
}

extension WakeTrace {
    /// The headers that identify the trace of the push or request that caused the wake.
    var headers: [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        if let parent = self.parent {
            var text = ByteBuffer()
            parent.write(to: &text)
            headers.append((name: "traceparent", value: text.view.string))
        }
        if !self.state.isEmpty { headers.append((name: "tracestate", value: self.state.string)) }
        return headers
    }
}
