package import Engine
package import HTTPClient
import Policy
package import Wire

/// What an answer, or the lack of one, says about a wake.
package enum WebhookVerdict: Hashable, Sendable {
    /// The webhook reports the result.
    case result(WakeReport)
    /// The webhook has taken the wake, and will report the result itself.
    case accepted
    /// The webhook answered, but not as agreed: the wake has failed.
    case refused(cause: String)
    /// The webhook may have got the wake, and nobody knows what it made of it.
    case lost(cause: String)
    /// The webhook never got the wake, or sent it back; it may have asked for rest, in milliseconds.
    case undelivered(cause: String, retryAfter: Int64?)

    /// - `kind`: what the wake is for.
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
            return .refused(cause: "it answered 200 with a body that is no JSON object")
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
