import HTTPClient
import Platform
import Wire

/// The address of the gateway, and the settings of requests to it.
package struct GatewayEndpoint: Sendable {
    /// The URL, without a trailing slash.
    let url: String
    private let proof: GatewayProof
    private let settings: HTTPClientSettings

    /// The maximum size of an answer other than a stream, in bytes. Typical answers have a few hundred bytes.
    private static let bodyBytesMax = 1 << 16
    /// The timeout of an answer, in milliseconds.
    private static let timeoutMilliseconds = 10_000

    /// - `url`: `https://HOST:PORT`, `http://HOST:PORT`, or `unix:/PATH`. A Unix socket uses TLS if a certificate
    ///   authority is given.
    /// - Throws: `badArgument`.
    package init(_ url: String, _ credentials: GatewayCredentials) throws(WakeWorkerError) {
        var settings = HTTPClientSettings()
        var address = url
        if address.hasPrefix("unix:/") {
            settings.socketPath = String(address.dropFirst("unix:".count))
            address = credentials.certificateAuthority == nil ? "http://localhost" : "https://localhost"
        }
        while address.hasSuffix("/") { address.removeLast() }
        let host = ["https://", "http://"].first { address.hasPrefix($0) }.map { address.dropFirst($0.count) }
        guard let host, !host.isEmpty, !host.contains(where: { "/?#@ \r\n".contains($0) }) else {
            throw WakeWorkerError(
                .badArgument,
                "the gateway is \"\(url)\"; write https://HOST:PORT, http://HOST:PORT or unix:/PATH"
            )
        }
        settings.certificateAuthorityFile = credentials.certificateAuthority
        settings.certificateFile = credentials.certificate?.file
        settings.privateKeyFile = credentials.certificate?.key
        settings.cleartextHTTP2 = true
        settings.bodyBytesMax = Self.bodyBytesMax
        self.url = address
        self.proof = GatewayProof(credentials.token)
        self.settings = settings
    }

    /// Creates a request to a path of the gateway.
    ///
    /// - Throws: `badCredentials` if the token's file cannot be read.
    func request(_ method: String, _ path: String, body: [UInt8]? = nil) throws(WakeWorkerError) -> HTTPRequest {
        var headers: [(name: String, value: String)] = []
        if let token = try self.proof.text() { headers.append(("authorization", "bearer \(token)")) }
        if body != nil { headers.append(("content-type", "application/json")) }
        var request = HTTPRequest(
            method,
            self.url + path,
            headers: headers,
            body: body,
            timeoutMilliseconds: Self.timeoutMilliseconds
        )
        request.settings = self.settings
        return request
    }
}

// MARK: - Answers

extension GatewayEndpoint {
    /// Converts a client error to an error of this library.
    func error(_ error: HTTPClientError) -> WakeWorkerError {
        let (code, message) = self.explanation(of: error)
        return WakeWorkerError(code, message, cause: error, isPassing: self.isPassing(error))
    }

    private func explanation(of error: HTTPClientError) -> (WakeWorkerError.Code, String) {
        switch error.code {
        case .unreachable:
            (.unreachable, "no gateway answers at \(self.url) (\(error)); see whether it runs there")
        case .broken, .tooLarge, .headTooLarge:
            (.unreachable, "\(self.url) ended the exchange (\(error)); see the gateway's log")
        case .timedOut:
            (.timedOut, "\(self.url) did not answer in time (\(error)); see its load, and the network")
        case .untrusted:
            (
                .untrusted,
                "the certificate of \(self.url) is not trusted (\(error)); name its authority with "
                    + "credentials.trusting(certificateAuthority:)"
            )
        case .badCredentials: (.badCredentials, "\(error); see the files that the credentials name")
        case .badRequest, .refusedAddress: (.badArgument, "\(error); see the gateway's URL")
        case .unavailable: (.unavailable, "\(error)")
        case .cancelled: (.cancelled, "\(error)")
        }
    }

    /// Converts an error answer of the gateway to an error of this library.
    static func refusal(_ response: HTTPResponse) -> WakeWorkerError {
        guard let (reason, words) = response.refusal else {
            return WakeWorkerError(
                .badAnswer,
                "the answer is \(response.status) without a reason; see whether the URL is that of a gateway's edge"
            )
        }
        let code: WakeWorkerError.Code =
            switch reason {
            case "ExtensionLimitReached": .extensionLimitReached
            case "WakeEnded", "UnknownWake": .wakeEnded
            default: .refused
            }
        // Every 403 has the reason `Forbidden`. A challenge means that the token was refused. A refused certificate has
        // none, so only the message distinguishes it from a refused network or host.
        let isForbidden = response.header("www-authenticate") != nil || words.contains("The client certificate ")
        return WakeWorkerError(
            code,
            "the gateway answered \(words)",
            refusal: GatewayRefusal(
                status: response.status,
                reason: reason,
                retryAfter: response.retryAfterSeconds,
                isOfCredential: response.status == 401 || (response.status == 403 && isForbidden)
            )
        )
    }

    /// Returns the error of a request, whether the request may succeed later, and the `retry-after` of an answer with
    /// status 429, in milliseconds; nil if the gateway answered with success.
    ///
    /// The `retry-after` of a 503 is ignored. It announces the end of a restart, and the random waits already spread
    /// the workers.
    func failure(
        of result: Result<HTTPResponse, HTTPClientError>
    ) -> (error: WakeWorkerError, isPassing: Bool, retryAfter: Int64)? {
        switch result {
        case .success(let response) where response.isSuccess: return nil
        case .success(let response):
            let seconds = response.status == 429 ? response.retryAfterSeconds ?? 0 : 0
            return (Self.refusal(response), self.isPassing(response.status), Int64(min(seconds, 300)) * 1000)
        case .failure(let error): return (self.error(error), self.isPassing(error), 0)
        }
    }

    /// Records that the gateway accepted the credentials of a request.
    func accepted() {
        self.proof.accepted()
    }

    /// Returns true if the request may succeed later, for a request that was answered with this status.
    func isPassing(_ status: Int) -> Bool {
        if status == 401 { return self.proof.refusalMayPass() }
        return status >= 500 || status == 429
    }

    /// Returns true if the request may succeed later, for a request that failed with this error.
    func isPassing(_ error: HTTPClientError) -> Bool {
        switch error.code {
        case .unreachable, .timedOut, .broken, .tooLarge, .headTooLarge: true
        case .badCredentials: self.proof.mayPass()
        case .untrusted, .badRequest, .refusedAddress, .unavailable, .cancelled: false
        }
    }
}

/// Sends requests to the gateway and waits for the answers.
struct GatewayCaller: Sendable {
    let endpoint: GatewayEndpoint
    let thread: HTTPThread

    /// The maximum number of tries for a request. A request is retried if it does not reach the gateway or the gateway
    /// is busy.
    private static let triesMax = 5
    /// The maximum `retry-after`, in milliseconds, for which the caller waits. If the gateway requests a longer wait,
    /// the error is thrown.
    private static let gracePeriod: Int64 = 5000

    /// Sends a request and returns the answer. Retries the request a few times if it did not reach the gateway or the
    /// gateway was busy.
    ///
    /// - `isIdempotent`: true if the request may be repeated; by default true for all methods except POST.
    func answer(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        isIdempotent: Bool? = nil
    ) async throws(WakeWorkerError) -> HTTPResponse {
        var backoff = Backoff(firstMilliseconds: 200, lastMilliseconds: 5000)
        var generator = RandomBits()
        var tries = 1
        var isConnectionDoubtful = false
        let mayArriveTwice = isIdempotent ?? (method != "POST")
        while true {
            let (fault, mayRepeat): (WakeWorkerError, Bool)
            var retryAfter: Int64 = 0
            do throws(WakeWorkerError) {
                let response = try await self.response(method, path, body, isFresh: isConnectionDoubtful)
                guard let failure = self.endpoint.failure(of: .success(response)) else {
                    self.endpoint.accepted()
                    return response
                }
                // Only a gateway's answer counts, not one of a proxy.
                retryAfter = failure.error.refusal == nil ? 0 : failure.retryAfter
                (fault, mayRepeat) = (failure.error, failure.isPassing && retryAfter <= Self.gracePeriod)
            } catch {
                // A request that is not idempotent is not repeated if it may have arrived. A second registration, for
                // example, would create a second device.
                (fault, mayRepeat) = (
                    error, error.isPassing && (mayArriveTwice || error.cause?.mayHaveArrived != true)
                )
            }
            guard mayRepeat, tries < Self.triesMax, !Task.isCancelled else { throw fault }
            tries += 1
            isConnectionDoubtful = fault.code == .timedOut
            await self.thread.wait(milliseconds: max(Int64(backoff.failed(using: &generator)), retryAfter))
        }
    }

    private func response(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        isFresh: Bool
    ) async throws(WakeWorkerError) -> HTTPResponse {
        var request = try self.endpoint.request(method, path, body: body)
        request.isFresh = isFresh
        do throws(HTTPClientError) {
            return try await self.thread.perform(request)
        } catch {
            throw self.endpoint.error(error)
        }
    }

    /// Checks a device's token and returns it for use in a URL path.
    static func hexadecimal(_ token: String) throws(WakeWorkerError) -> String {
        let isToken = (32...200).contains(token.utf8.count) && token.utf8.count.isMultiple(of: 2)
        guard isToken, token.utf8.allSatisfy({ $0.hexDigitValue != nil }) else {
            throw WakeWorkerError(
                .badArgument,
                "a device token is an even number of hexadecimal digits, 32 to 200 of them; this is something else"
            )
        }
        return token
    }
}
