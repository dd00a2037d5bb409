internal import CLibcurl
import Glibc

/// An HTTP/2 and HTTP/1.1 client: many requests at once over few connections, driven by `poll`.
///
/// It belongs to one thread. Nothing happens outside `poll`, so whoever does not poll is not sent more than the
/// sockets hold.
@safe
package final class HTTPClient {
    private let settings: HTTPClientSettings
    private let multi: UnsafeMutableRawPointer
    private var active: [UnsafeMutableRawPointer: ActiveTransfer] = unsafe [:]
    private var handles: [HTTPRequestID: UnsafeMutableRawPointer] = unsafe [:]
    private var nextNumber: UInt64 = 0

    @safe
    private struct ActiveTransfer {
        let transfer: HTTPTransfer
        let headers: UnsafeMutablePointer<curl_slist>?
        let url: String
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// - Throws: `unavailable` when libcurl cannot be set up.
    package init(_ settings: HTTPClientSettings = HTTPClientSettings()) throws(HTTPClientError) {
        guard Self.isLibraryReady, let multi = unsafe curl_multi_init() else {
            throw HTTPClientError(.unavailable, "libcurl cannot be set up")
        }
        self.settings = settings
        unsafe self.multi = multi
        _ = unsafe wakegate_curl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        _ = unsafe wakegate_curl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000)
    }

    deinit {
        while let (handle, active) = unsafe self.active.popFirst() {
            unsafe Self.release(handle, active, from: self.multi)
        }
        _ = unsafe curl_multi_cleanup(self.multi)
    }

    /// The number of requests that have not ended.
    package var activeCount: Int { unsafe self.active.count }

    /// Begins a request; `poll` reports what becomes of it.
    ///
    /// - Throws: `badRequest` and `badCredentials` for what cannot even be tried.
    package func start(_ request: HTTPRequest) throws(HTTPClientError) -> HTTPRequestID {
        guard let handle = unsafe curl_easy_init() else {
            throw HTTPClientError(.unavailable, "libcurl cannot begin a request: out of memory")
        }
        let id = HTTPRequestID(number: self.nextNumber)
        self.nextNumber += 1
        let transfer = HTTPTransfer(
            id: id,
            isStreaming: request.isStreaming,
            bodyBytesMax: self.settings.bodyBytesMax
        )
        let headers = unsafe Self.headerList(request.headers)
        let active = unsafe ActiveTransfer(transfer: transfer, headers: headers, url: request.url)
        do throws(HTTPClientError) {
            try unsafe self.configure(handle, for: request)
            try unsafe self.configureSecurity(of: handle)
            _ = unsafe wakegate_curl_set_headers(handle, headers)
            // The transfer outlives the handle: `self.active` holds it until the handle is cleaned up.
            let context = unsafe Unmanaged.passUnretained(transfer).toOpaque()
            try Self.check(
                unsafe wakegate_curl_set_receivers(handle, receiveHeader, receiveBody, context),
                .badRequest,
                request.url
            )
            guard unsafe curl_multi_add_handle(self.multi, handle) == CURLM_OK else {
                throw HTTPClientError(.unavailable, "libcurl cannot begin a request")
            }
        } catch {
            unsafe Self.release(handle, active, from: nil)
            throw error
        }
        unsafe self.active[handle] = active
        unsafe self.handles[id] = handle
        return id
    }

    /// Ends a request without another event; of an ended one nothing happens.
    package func cancel(_ id: HTTPRequestID) {
        guard let handle = unsafe self.handles.removeValue(forKey: id) else { return }
        guard let active = unsafe self.active.removeValue(forKey: handle) else { return }
        unsafe Self.release(handle, active, from: self.multi)
    }

    /// Sends and receives what can be, after waiting for it for at most `timeoutMilliseconds`, or until one of
    /// `descriptors` is ready.
    package func poll(timeoutMilliseconds: Int, descriptors: [PollDescriptor] = []) -> [HTTPEvent] {
        var running: Int32 = 0
        _ = unsafe curl_multi_perform(self.multi, &running)
        var events = self.takeEvents()
        guard events.isEmpty else { return events }
        var waits = descriptors.map { descriptor in
            var wait = curl_waitfd()
            wait.fd = descriptor.descriptor
            // CURL_WAIT_POLLIN and CURL_WAIT_POLLOUT
            wait.events = descriptor.interest == .readable ? 1 : 4
            return wait
        }
        let count = UInt32(waits.count)
        let timeout = Int32(clamping: max(0, timeoutMilliseconds))
        _ = unsafe waits.withUnsafeMutableBufferPointer {
            unsafe curl_multi_poll(self.multi, $0.baseAddress, count, timeout, nil)
        }
        _ = unsafe curl_multi_perform(self.multi, &running)
        events = self.takeEvents()
        return events
    }

    /// Sends `request` and waits for the whole answer. Events of other requests are lost meanwhile, so this is for
    /// clients that do one thing at a time.
    package func perform(_ request: HTTPRequest) throws(HTTPClientError) -> HTTPResponse {
        let id = try self.start(request)
        while true {
            for case .ended(id, let result) in self.poll(timeoutMilliseconds: 1000) { return try result.get() }
        }
    }
}

extension HTTPClient {
    private func takeEvents() -> [HTTPEvent] {
        var events: [HTTPEvent] = []
        let transfers = unsafe self.active.values.map { $0.transfer }
        for transfer in transfers { events += transfer.takeEvents() }
        var code = CURLE_OK
        while let handle = unsafe wakegate_curl_next_done(self.multi, &code) {
            guard let active = unsafe self.active.removeValue(forKey: handle) else { continue }
            let transfer = active.transfer
            unsafe self.handles.removeValue(forKey: transfer.id)
            if code == CURLE_OK {
                events.append(.ended(transfer.id, .success(transfer.response)))
            } else {
                let error = Self.error(code, url: active.url, isTooLarge: transfer.isTooLarge)
                events.append(.ended(transfer.id, .failure(error)))
            }
            unsafe Self.release(handle, active, from: self.multi)
        }
        return events
    }

    private func configure(_ handle: UnsafeMutableRawPointer, for request: HTTPRequest) throws(HTTPClientError) {
        let isCleartext = request.url.hasPrefix("http://")
        let isAlone = isCleartext && self.settings.cleartextHTTP2 ? 1 : 0
        let version =
            !isCleartext
            ? CURL_HTTP_VERSION_2TLS
            : self.settings.cleartextHTTP2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_1_1
        var codes = [
            unsafe wakegate_curl_set_text(handle, CURLOPT_URL, request.url),
            unsafe wakegate_curl_set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https"),
            unsafe wakegate_curl_set_long(handle, CURLOPT_NOSIGNAL, 1),
            unsafe wakegate_curl_set_long(handle, CURLOPT_HTTP_VERSION, version),
            // Requests wait for the connection that is being made rather than open one each.
            unsafe wakegate_curl_set_long(handle, CURLOPT_PIPEWAIT, 1 - isAlone),
            // libcurl 7.88 begins HTTP/2 anew on a cleartext connection that it uses again, which breaks it.
            unsafe wakegate_curl_set_long(handle, CURLOPT_FRESH_CONNECT, isAlone),
            unsafe wakegate_curl_set_long(handle, CURLOPT_FORBID_REUSE, isAlone),
            unsafe wakegate_curl_set_long(
                handle,
                CURLOPT_CONNECTTIMEOUT_MS,
                self.settings.connectTimeoutMilliseconds
            ),
            unsafe wakegate_curl_set_long(handle, CURLOPT_TIMEOUT_MS, request.timeoutMilliseconds ?? 0),
        ]
        if let body = request.body {
            codes.append(unsafe wakegate_curl_set_long(handle, CURLOPT_POST, 1))
            codes.append(
                unsafe body.withUnsafeBytes { bytes in
                    // A null pointer would mean that the body is read through a callback.
                    guard let base = bytes.baseAddress else {
                        return unsafe wakegate_curl_set_body(handle, "", 0)
                    }
                    return unsafe wakegate_curl_set_body(handle, base, Int64(bytes.count))
                }
            )
        }
        codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, request.method))
        if Self.isLoopback(request.url) || self.settings.socketPath != nil {
            codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_PROXY, ""))
        }
        if let path = self.settings.socketPath {
            codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_UNIX_SOCKET_PATH, path))
        }
        for code in codes { try Self.check(code, .badRequest, request.url) }
    }

    private func configureSecurity(of handle: UnsafeMutableRawPointer) throws(HTTPClientError) {
        let files = [
            (CURLOPT_CAINFO, self.settings.certificateAuthorityFile),
            (CURLOPT_SSLCERT, self.settings.certificateFile), (CURLOPT_SSLKEY, self.settings.privateKeyFile),
        ]
        for case (let option, let path?) in files {
            guard unsafe access(path, R_OK) == 0 else {
                throw HTTPClientError(.badCredentials, "\(path) cannot be read")
            }
            try Self.check(unsafe wakegate_curl_set_text(handle, option, path), .badCredentials, path)
        }
        // Certificates that are made for the loopback addresses are checked like all others.
        try Self.check(unsafe wakegate_curl_set_long(handle, CURLOPT_SSL_VERIFYPEER, 1), .badCredentials, "TLS")
    }

    private static func isLoopback(_ url: String) -> Bool {
        let host = url.split(separator: "/", maxSplits: 2).dropFirst().first ?? ""
        return ["localhost", "127.", "[::1]"].contains { host.hasPrefix($0) }
    }

    private static func headerList(_ headers: [(name: String, value: String)]) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        // libcurl leaves a field out when nothing follows the colon, and sends it empty after a semicolon.
        for (name, value) in headers {
            let line = value.isEmpty ? "\(name);" : "\(name): \(value)"
            unsafe list = curl_slist_append(list, line) ?? list
        }
        // Without this a body of more than a megabyte waits a second for 100 Continue.
        unsafe list = curl_slist_append(list, "expect:") ?? list
        return unsafe list
    }

    private static func release(
        _ handle: UnsafeMutableRawPointer,
        _ active: ActiveTransfer,
        from multi: UnsafeMutableRawPointer?
    ) {
        if let multi = unsafe multi { _ = unsafe curl_multi_remove_handle(multi, handle) }
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(active.headers)
        // Keeps the transfer until libcurl can no longer call back.
        withExtendedLifetime(active.transfer) {}
    }

    private static func check(_ code: CURLcode, _ kind: HTTPClientError.Code, _ what: String) throws(HTTPClientError) {
        guard code != CURLE_OK else { return }
        throw HTTPClientError(kind, "\(what): \(self.text(of: code))")
    }

    private static func text(of code: CURLcode) -> String {
        unsafe String(cString: curl_easy_strerror(code))
    }

    private static func error(_ code: CURLcode, url: String, isTooLarge: Bool) -> HTTPClientError {
        let kind: HTTPClientError.Code =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY: .unreachable
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_ISSUER_ERROR: .untrusted
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE: .badCredentials
            case CURLE_OPERATION_TIMEDOUT: .timedOut
            case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .badRequest
            case CURLE_OUT_OF_MEMORY: .unavailable
            default: isTooLarge ? .tooLarge : .broken
            }
        return HTTPClientError(kind, isTooLarge ? "the answer is too large" : self.text(of: code))
    }
}

/// Hands what libcurl received to the transfer that `HTTPClient.start` registered as `context`.
///
/// - Returns: the bytes taken; fewer than there are makes libcurl end the transfer.
private func receive(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?,
    _ take: (HTTPTransfer, UnsafeRawBufferPointer) -> Bool
) -> Int {
    guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    return unsafe take(transfer, UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
}

private func receiveHeader(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    unsafe receive(bytes, size * count, context) { transfer, line in
        unsafe transfer.headerReceived(String(decoding: line, as: UTF8.self))
        return true
    }
}

private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    unsafe receive(bytes, size * count, context) { transfer, chunk in unsafe transfer.bodyReceived(chunk) }
}
