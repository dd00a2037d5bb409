internal import CLibcurl
import Glibc
package import Platform

/// A client for HTTP/2 and HTTP/1.1 that sends many concurrent requests over few connections.
///
/// It belongs to one thread. All work happens in `poll`; between calls, servers can only fill the sockets' buffers.
@safe
package final class HTTPClient {
    private let settings: HTTPClientSettings
    private let multi: UnsafeMutableRawPointer
    /// A waker that ends a wait in `poll` from any thread.
    package let waker: HTTPWaker
    /// The handles of ended requests, for reuse.
    private var idle: [UnsafeMutableRawPointer] = unsafe []
    private let unreported = UnreportedTransfers()
    private var active: [UnsafeMutableRawPointer: ActiveTransfer] = unsafe [:]
    private var handles: [HTTPRequestID: UnsafeMutableRawPointer] = unsafe [:]
    /// The cancelled requests since the last call of `poll`.
    private var cancelled: [(handle: UnsafeMutableRawPointer, active: ActiveTransfer)] = unsafe []
    private var nextNumber: UInt64 = 0

    @safe
    private struct ActiveTransfer {
        let transfer: HTTPTransfer
        let headers: UnsafeMutablePointer<curl_slist>?
        let resolutions: UnsafeMutablePointer<curl_slist>?
        let url: String
        /// The cookies. They must outlive the handle.
        let cookies: HTTPCookies?
    }

    /// The size of libcurl's receive buffer: twice the maximum size of a head. With a much smaller buffer, libcurl 7.88
    /// loses a part of a long HTTP/2 head and the answer after it, and the request never ends. Streams use the default
    /// of 16 KiB, because there may be thousands of them.
    private static let bufferBytes = 262_144

    /// The maximum number of idle handles.
    private static let idleMax = 256

    private static let isLibraryReady = wakegate_curl_begin() == CURLE_OK

    /// - Throws: `unavailable` if libcurl cannot be set up.
    package init(_ settings: HTTPClientSettings = HTTPClientSettings()) throws(HTTPClientError) {
        guard Self.isLibraryReady, let multi = unsafe curl_multi_init() else {
            throw HTTPClientError(.unavailable, "libcurl cannot be set up")
        }
        self.settings = settings
        unsafe self.multi = multi
        self.waker = unsafe HTTPWaker(multi)
        _ = unsafe wakegate_curl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        _ = unsafe wakegate_curl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000)
    }

    deinit {
        self.endCancelled()
        while let (handle, active) = unsafe self.active.popFirst() {
            unsafe Self.release(handle, active, from: self.multi)
        }
        while let handle = unsafe self.idle.popLast() { unsafe curl_easy_cleanup(handle) }
    }

    /// The number of requests that have not ended.
    package var activeCount: Int { unsafe self.active.count }

    /// Starts a request. `poll` returns its events.
    ///
    /// - Throws: `badRequest` or `badCredentials` if the request cannot be sent at all.
    package func start(_ request: HTTPRequest) throws(HTTPClientError) -> HTTPRequestID {
        guard let handle = unsafe self.handle(isStreaming: request.isStreaming && request.sink == nil) else {
            throw HTTPClientError(.unavailable, "libcurl cannot begin a request: out of memory")
        }
        let id = HTTPRequestID(number: self.nextNumber)
        self.nextNumber += 1
        let settings = request.settings ?? self.settings
        let transfer = HTTPTransfer(id: id, request: request, settings: settings, unreported: self.unreported)
        let active = unsafe ActiveTransfer(
            transfer: transfer,
            headers: Self.headerList(request),
            resolutions: Self.list(settings.resolutions),
            url: request.url,
            cookies: request.cookies
        )
        do throws(HTTPClientError) {
            try unsafe self.configure(handle, for: request, settings)
            try unsafe self.configureConnection(of: handle, settings)
            try unsafe self.configureSecurity(of: handle, settings)
            try unsafe self.attach(active, to: handle)
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

    /// Continues to send a file at the offset that `HTTPFileBody.onNeed` requested. If there are none, it fails.
    package func supply(_ bytes: [UInt8], at offset: Int64, to id: HTTPRequestID) {
        guard let handle = unsafe self.handles[id], let transfer = unsafe self.active[handle]?.transfer,
            transfer.supply(bytes, at: offset)
        else { return }
        _ = unsafe curl_easy_pause(handle, CURLPAUSE_CONT)
    }

    /// Ends a request without further events. The next `poll` notifies the server. Does nothing for an ended request.
    package func cancel(_ id: HTTPRequestID) {
        guard let handle = unsafe self.handles.removeValue(forKey: id),
            let active = unsafe self.active.removeValue(forKey: handle)
        else { return }
        active.transfer.isCancelled = true
        unsafe self.cancelled.append((handle, active))
    }

    /// Sends and receives available data, and returns events. Without events, waits until data arrives, one of
    /// `descriptors` is ready, the waker is used, or `timeoutMilliseconds` have passed.
    package func poll(timeoutMilliseconds: Int, descriptors: [Descriptor.Wait] = []) -> [HTTPEvent] {
        var running: Int32 = 0
        _ = unsafe curl_multi_perform(self.multi, &running)
        self.endCancelled()
        let events = self.takeEvents()
        guard events.isEmpty else { return events }
        var waits = descriptors.map { descriptor in
            var wait = curl_waitfd()
            wait.fd = descriptor.descriptor
            // CURL_WAIT_POLLIN and CURL_WAIT_POLLOUT
            wait.events = descriptor.readiness == .readable ? 1 : 4
            return wait
        }
        let count = UInt32(waits.count)
        let timeout = Int32(clamping: max(0, timeoutMilliseconds))
        _ = unsafe waits.withUnsafeMutableBufferPointer {
            unsafe curl_multi_poll(self.multi, $0.baseAddress, count, timeout, nil)
        }
        _ = unsafe curl_multi_perform(self.multi, &running)
        return self.takeEvents()
    }
}

extension HTTPClient {
    /// Ends the cancelled requests, and notifies their servers immediately.
    ///
    /// libcurl 7.88 delays the RST_STREAM of a cancelled request until another request of the connection sends
    /// something. So this makes another request send something, or closes a connection without other requests.
    private func endCancelled() {
        var ports: Set<Int32> = []
        while let (handle, active) = unsafe self.cancelled.popLast() {
            if let port = active.transfer.localPort { ports.insert(port) }
            _ = unsafe wakegate_curl_set_long(handle, CURLOPT_FORBID_REUSE, 1)
            unsafe Self.release(handle, active, from: self.multi)
        }
        for port in ports {
            let other = unsafe self.active.first { unsafe $0.value.transfer.localPort == port }
            guard let handle = unsafe other?.key else { continue }
            // Resuming after a pause sends a window update and all delayed frames.
            _ = unsafe curl_easy_pause(handle, CURLPAUSE_RECV)
            _ = unsafe curl_easy_pause(handle, CURLPAUSE_CONT)
        }
    }

    private func takeEvents() -> [HTTPEvent] {
        var events: [HTTPEvent] = []
        for transfer in self.unreported.take() where unsafe self.handles[transfer.id] != nil {
            events += transfer.takeEvents()
        }
        var code = CURLE_OK
        while let handle = unsafe wakegate_curl_next_done(self.multi, &code) {
            guard let active = unsafe self.active.removeValue(forKey: handle) else { continue }
            let transfer = active.transfer
            unsafe self.handles.removeValue(forKey: transfer.id)
            events.append(.ended(transfer.id, unsafe self.result(of: active, handle, code)))
            unsafe self.recycle(handle, active)
        }
        return events
    }

    /// Returns the result of a request that libcurl has ended with this code.
    private func result(
        of active: ActiveTransfer,
        _ handle: UnsafeMutableRawPointer,
        _ code: CURLcode
    ) -> Result<HTTPResponse, HTTPClientError> {
        let transfer = active.transfer
        transfer.response.readRetryAfter()
        if code == CURLE_OK, unsafe self.isCut(transfer, handle) { return .failure(.endlessTLS) }
        if code == CURLE_OK || Self.isAnswered(transfer, code) {
            if let file = transfer.file {
                let sent = unsafe Int64(wakegate_curl_sent_bytes(handle))
                transfer.response.unsentBytes = max(0, file.byteCount - sent)
            }
            return .success(transfer.response)
        }
        let number = unsafe Int32(clamping: wakegate_curl_system_error(handle))
        var error = Self.error(code, transfer, url: active.url, systemError: number)
        error.retryAfterSeconds = transfer.response.retryAfterSeconds
        return .failure(error)
    }

    /// Returns true if the complete answer had arrived before a request failed. The answer is then valid (RFC 9113
    /// §8.1). For example, a server may answer before it has read the whole request, and then reset the stream.
    private static func isAnswered(_ transfer: HTTPTransfer, _ code: CURLcode) -> Bool {
        switch code {
        // Without a message, this code means that libcurl wanted to send more on a stream that had ended normally.
        case CURLE_HTTP2_STREAM where unsafe transfer.words.pointee == 0: transfer.hasFinalHead
        case CURLE_HTTP2_STREAM, CURLE_HTTP2, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE,
            CURLE_OPERATION_TIMEDOUT:
            transfer.isWhole
        default: false
        }
    }

    /// Returns true if an attacker may have truncated the answer: its end is the end of the connection, and the server
    /// sent no close_notify.
    private func isCut(_ transfer: HTTPTransfer, _ handle: UnsafeMutableRawPointer) -> Bool {
        guard let connection = unsafe transfer.tlsConnection, !transfer.response.hasEndOfItsOwn else { return false }
        return unsafe wakegate_curl_is_cut(handle, self.waker.ends, connection) != 0
    }

    /// Returns a handle with a buffer for the answer; nil if memory is exhausted.
    private func handle(isStreaming: Bool) -> UnsafeMutableRawPointer? {
        while let handle = unsafe self.idle.popLast() ?? curl_easy_init() {
            // A handle keeps its buffer and accepts no new size if other requests used its connection until it ended.
            if isStreaming { return unsafe handle }
            let code = unsafe wakegate_curl_set_long(handle, CURLOPT_BUFFERSIZE, Self.bufferBytes)
            if code == CURLE_OK { return unsafe handle }
            unsafe curl_easy_cleanup(handle)
        }
        return nil
    }

    private func configure(
        _ handle: UnsafeMutableRawPointer,
        for request: HTTPRequest,
        _ settings: HTTPClientSettings
    ) throws(HTTPClientError) {
        let isCleartext = request.url.hasPrefix("http://")
        let isAlone = isCleartext && settings.cleartextHTTP2 ? 1 : 0
        let version =
            !isCleartext
            ? CURL_HTTP_VERSION_2TLS
            : settings.cleartextHTTP2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_1_1
        var codes = [
            unsafe wakegate_curl_set_text(handle, CURLOPT_URL, request.url),
            unsafe wakegate_curl_set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https"),
            unsafe wakegate_curl_set_long(handle, CURLOPT_NOSIGNAL, 1),
            // Let the resolver's thread end on its own. Otherwise the end of a request would block this thread until
            // the timeout of a silent name server.
            unsafe wakegate_curl_set_long(handle, CURLOPT_QUICK_EXIT, 1),
            unsafe wakegate_curl_set_long(handle, CURLOPT_HTTP_VERSION, version),
            // Let requests wait for a connection in progress instead of opening separate connections.
            unsafe wakegate_curl_set_long(handle, CURLOPT_PIPEWAIT, request.isFresh ? 0 : 1 - isAlone),
            // libcurl 7.88 starts HTTP/2 again when it reuses a cleartext connection, which breaks the connection.
            unsafe wakegate_curl_set_long(handle, CURLOPT_FRESH_CONNECT, request.isFresh ? 1 : isAlone),
            unsafe wakegate_curl_set_long(handle, CURLOPT_FORBID_REUSE, isAlone),
            unsafe wakegate_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, settings.connectTimeoutMilliseconds),
            unsafe wakegate_curl_set_long(handle, CURLOPT_TIMEOUT_MS, request.timeoutMilliseconds ?? 0),
        ]
        if let body = request.body {
            codes.append(unsafe wakegate_curl_set_long(handle, CURLOPT_POST, 1))
            codes.append(
                unsafe body.withUnsafeBytes { bytes in
                    // A null pointer would mean that a callback provides the body.
                    guard let base = bytes.baseAddress else {
                        return unsafe wakegate_curl_set_body(handle, "", 0)
                    }
                    return unsafe wakegate_curl_set_body(handle, base, Int64(bytes.count))
                }
            )
        }
        codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, request.method))
        // The head of a proxy's answer to CONNECT is not part of the server's answer.
        codes.append(unsafe wakegate_curl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1))
        let isOwn = request.isForLoopback && !settings.usesProxiesForLoopback
        if !settings.usesProxies || isOwn || settings.socketPath != nil {
            codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_PROXY, ""))
        } else if let proxy = settings.proxy {
            codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_PROXY, proxy))
        }
        if let cookies = request.cookies {
            codes.append(unsafe wakegate_curl_set_pointer(handle, CURLOPT_SHARE, cookies.share))
            // An empty name enables libcurl's cookies without reading a file.
            codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_COOKIEFILE, ""))
            // libcurl joins these cookies with those of earlier answers in one field.
            let own = HTTPCookies.own(in: request.headers)
            if !own.isEmpty { codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_COOKIE, own)) }
        }
        if let seconds = request.silenceSecondsMax {
            codes.append(unsafe wakegate_curl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1))
            codes.append(unsafe wakegate_curl_set_long(handle, CURLOPT_LOW_SPEED_TIME, seconds))
        }
        for code in codes { try Self.check(code, .badRequest, request.url) }
    }

    private func configureConnection(
        of handle: UnsafeMutableRawPointer,
        _ settings: HTTPClientSettings
    ) throws(HTTPClientError) {
        var codes: [CURLcode] = []
        if let path = settings.socketPath {
            codes.append(unsafe wakegate_curl_set_text(handle, CURLOPT_UNIX_SOCKET_PATH, path))
        }
        if let milliseconds = settings.peerSilenceMillisecondsMax {
            let seconds = max(1, milliseconds / 2000)
            for option in [CURLOPT_TCP_KEEPIDLE, CURLOPT_TCP_KEEPINTVL] {
                codes.append(unsafe wakegate_curl_set_long(handle, option, seconds))
            }
            codes.append(unsafe wakegate_curl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1))
        }
        for code in codes { try Self.check(code, .badRequest, "the connection's settings") }
    }

    private func configureSecurity(
        of handle: UnsafeMutableRawPointer,
        _ settings: HTTPClientSettings
    ) throws(HTTPClientError) {
        let files = [
            (CURLOPT_CAINFO, settings.certificateAuthorityFile),
            (CURLOPT_SSLCERT, settings.certificateFile), (CURLOPT_SSLKEY, settings.privateKeyFile),
        ]
        for case (let option, let path?) in files {
            if let reason = FileSystem.unreadable(path) {
                throw HTTPClientError(.badCredentials, "\(path) cannot be read (\(reason))")
            }
            try Self.check(unsafe wakegate_curl_set_text(handle, option, path), .badCredentials, path)
        }
        if settings.heedsTLSEnd {
            try Self.check(unsafe wakegate_curl_set_tls_ends(handle, self.waker.ends), .badCredentials, "TLS")
        }
        // Certificates for the loopback addresses are verified like all others.
        try Self.check(unsafe wakegate_curl_set_long(handle, CURLOPT_SSL_VERIFYPEER, 1), .badCredentials, "TLS")
    }

    /// Registers the transfer for libcurl's callbacks. `self.active` retains the transfer until the handle is released.
    private func attach(_ active: ActiveTransfer, to handle: UnsafeMutableRawPointer) throws(HTTPClientError) {
        let transfer = active.transfer
        unsafe transfer.handle = transfer.heedsTLSEnd || transfer.sendsBody ? handle : nil
        let context = unsafe Unmanaged.passUnretained(transfer).toOpaque()
        var codes = [
            unsafe wakegate_curl_set_headers(handle, active.headers),
            unsafe wakegate_curl_set_list(handle, CURLOPT_RESOLVE, active.resolutions),
            unsafe wakegate_curl_set_text(handle, CURLOPT_ERRORBUFFER, transfer.words),
            unsafe wakegate_curl_set_receivers(handle, receiveHeader, receiveBody, context),
            unsafe wakegate_curl_set_gate(handle, openSocket, beginRequest, context),
        ]
        if let file = transfer.file {
            codes.append(unsafe wakegate_curl_set_sender(handle, sendBody, seekBody, file.byteCount, context))
        }
        for code in codes { try Self.check(code, .badRequest, active.url) }
    }

    private static func headerList(_ request: HTTPRequest) -> UnsafeMutablePointer<curl_slist>? {
        let isJoined = request.cookies != nil
        let headers = request.headers.filter { !(isJoined && HTTPCookies.isField($0.name)) }
        // libcurl omits a field without text after the colon. A semicolon instead makes it send an empty value.
        let lines = headers.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        // Without the last line, libcurl waits a second for 100 Continue before it sends a body of more than 1 MB.
        return unsafe self.list(lines + ["expect:"])
    }

    private static func list(_ lines: [String]) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines { unsafe list = curl_slist_append(list, line) ?? list }
        return unsafe list
    }

    /// Stores the handle of an ended request for reuse.
    private func recycle(_ handle: UnsafeMutableRawPointer, _ active: ActiveTransfer) {
        // `curl_easy_reset` keeps cookies.
        guard unsafe self.idle.count < Self.idleMax, active.cookies == nil else {
            return unsafe Self.release(handle, active, from: self.multi)
        }
        _ = unsafe curl_multi_remove_handle(self.multi, handle)
        unsafe curl_easy_reset(handle)
        unsafe self.idle.append(handle)
        Self.free(active)
    }

    private static func release(
        _ handle: UnsafeMutableRawPointer,
        _ active: ActiveTransfer,
        from multi: UnsafeMutableRawPointer?
    ) {
        if let multi = unsafe multi { _ = unsafe curl_multi_remove_handle(multi, handle) }
        unsafe curl_easy_cleanup(handle)
        self.free(active)
    }

    /// Frees the objects of a transfer whose handle no longer uses them.
    private static func free(_ active: ActiveTransfer) {
        unsafe curl_slist_free_all(active.headers)
        unsafe curl_slist_free_all(active.resolutions)
        // libcurl may have called back until now.
        withExtendedLifetime(active.transfer) {}
    }

    private static func check(_ code: CURLcode, _ kind: HTTPClientError.Code, _ what: String) throws(HTTPClientError) {
        guard code != CURLE_OK else { return }
        throw HTTPClientError(kind, "\(what): \(self.text(of: code))")
    }

    private static func text(of code: CURLcode) -> String {
        // libcurl's message could blame the file's path or permissions, but these were checked before.
        if code == CURLE_SSL_CACERT_BADFILE { return "the authority's file holds no certificate in PEM" }
        if code == CURLE_PEER_FAILED_VERIFICATION { return "the certificate has another name or no trusted authority" }
        return unsafe String(cString: curl_easy_strerror(code))
    }

    private static func error(
        _ code: CURLcode,
        _ transfer: HTTPTransfer,
        url: String,
        systemError: Int32
    ) -> HTTPClientError {
        var error: HTTPClientError
        if let address = transfer.refusedAddress, !transfer.hasBegun {
            let scope = address.scope.rawValue
            error = HTTPClientError(.refusedAddress, "the address \(address) (\(scope)) may not be reached")
        } else if transfer.isTooLarge {
            error = HTTPClientError(.tooLarge, "the answer is too large")
        } else if transfer.isHeadTooLarge || (transfer.hasBegun && self.isHeadTooLarge(code, transfer)) {
            error = HTTPClientError(.headTooLarge, "the header fields of the answer are too large")
        } else {
            let words = unsafe String(cString: transfer.words)
            error = HTTPClientError(self.kind(of: code, words), self.text(of: code))
            error.detail = words
            if error.code == .unreachable, systemError != 0 {
                error.detail = unsafe String(cString: strerror(systemError))
            }
            // This code is libcurl's only report of a field that is too long for libnghttp2.
            if code == CURLE_GOT_NOTHING {
                let hint = "over HTTP/2 a header field of more than 64 KiB ends it"
                error.detail = "the connection ended without an answer; \(hint)"
            }
        }
        error.mayHaveArrived = transfer.hasBegun
        return error
    }

    /// Returns true if libcurl rejected a head because of its size. Over HTTP/1.1, libcurl reports "out of memory".
    /// Over HTTP/2, its callback refuses the head.
    private static func isHeadTooLarge(_ code: CURLcode, _ transfer: HTTPTransfer) -> Bool {
        if code == CURLE_OUT_OF_MEMORY { return true }
        let isRefused = unsafe String(cString: transfer.words).contains("Too large response headers")
        return code == CURLE_RECV_ERROR && (isRefused || transfer.hasRefusedHead)
    }

    private static func kind(of code: CURLcode, _ words: String) -> HTTPClientError.Code {
        switch code {
        // This code also means that a server closed the connection during the handshake. The message then has no error
        // of OpenSSL.
        case CURLE_SSL_CONNECT_ERROR where !words.contains(":SSL routines:"): .broken
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY: .unreachable
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_ISSUER_ERROR: .untrusted
        case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE: .badCredentials
        case CURLE_OPERATION_TIMEDOUT: .timedOut
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .badRequest
        case CURLE_OUT_OF_MEMORY: .unavailable
        default: .broken
        }
    }
}

extension HTTPURL {
    /// Resolves a URL reference relative to `base`; returns nil if it is invalid. Encodes spaces, because many servers
    /// send them unencoded.
    package static func resolved(_ reference: String, at base: String) -> String? {
        guard let url = unsafe curl_url() else { return nil }
        defer { unsafe curl_url_cleanup(url) }
        let flags = CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE
        guard unsafe curl_url_set(url, CURLUPART_URL, base, 0) == CURLUE_OK,
            unsafe curl_url_set(url, CURLUPART_URL, reference, UInt32(flags)) == CURLUE_OK
        else { return nil }
        return unsafe self.part(CURLUPART_URL, of: url)
    }

    private static func part(_ part: CURLUPart, of url: OpaquePointer, _ flags: Int32 = 0) -> String? {
        var found: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_get(url, part, &found, UInt32(flags)) == CURLUE_OK, let found = unsafe found else {
            return nil
        }
        defer { unsafe curl_free(found) }
        return unsafe String(cString: found)
    }

    /// Parses an absolute `http` or `https` URL.
    ///
    /// - Returns: nil if libcurl would not connect to the URL, or if the scheme is not followed by exactly two slashes.
    package init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let rest = text[text.index(after: colon)...]
        guard rest.hasPrefix("//"), !rest.hasPrefix("///") else { return nil }
        guard let url = unsafe curl_url() else { return nil }
        defer { unsafe curl_url_cleanup(url) }
        guard unsafe curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK else { return nil }
        func part(_ part: CURLUPart, _ flags: Int32 = 0) -> String? { unsafe Self.part(part, of: url, flags) }
        guard let scheme = part(CURLUPART_SCHEME), scheme == "http" || scheme == "https",
            let host = part(CURLUPART_HOST, CURLU_URLDECODE), !host.isEmpty,
            let port = part(CURLUPART_PORT, CURLU_DEFAULT_PORT).flatMap({ Int($0) })
        else { return nil }
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = part(CURLUPART_PATH) ?? "/"
        self.hasCredentials = part(CURLUPART_USER) != nil || part(CURLUPART_PASSWORD) != nil
        self.hasQuery = part(CURLUPART_QUERY) != nil
        self.hasFragment = part(CURLUPART_FRAGMENT) != nil
    }
}

/// Opens a socket to an address, if the transfer in `context` may connect to the address. `HTTPClient.start` registers
/// the context.
func openSocket(
    _ context: UnsafeMutableRawPointer?,
    _ purpose: curlsocktype,
    _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let context = unsafe context, let address = unsafe address else { return CURL_SOCKET_BAD }
    let transfer = unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = unsafe wakegate_curl_address(address, &bytes)
    guard transfer.admits(IPAddress(bytes: Array(bytes[..<count]))) else { return CURL_SOCKET_BAD }
    return unsafe wakegate_curl_open_socket(address, transfer.peerSilenceMillisecondsMax)
}

/// Allows a request on a connection if the request's transfer may connect to the peer. Another request may have opened
/// the connection.
func beginRequest(
    _ context: UnsafeMutableRawPointer?,
    _ peer: UnsafeMutablePointer<CChar>?,
    _: UnsafeMutablePointer<CChar>?,
    _: Int32,
    _ localPort: Int32
) -> Int32 {
    guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
    let transfer = unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    guard !transfer.isCancelled else { return CURL_PREREQFUNC_ABORT }
    transfer.localPort = localPort
    let address = unsafe peer.flatMap { unsafe IPAddress(String(cString: $0)) }
    guard transfer.admits(address) else { return CURL_PREREQFUNC_ABORT }
    // libcurl repeats a request if a reused connection ends without an answer, even if libcurl itself ended it.
    if transfer.hasBegun, transfer.hasRefusedHead {
        transfer.isHeadTooLarge = true
        return CURL_PREREQFUNC_ABORT
    }
    transfer.hasBegun = true
    return CURL_PREREQFUNC_OK
}

/// Reads the properties of the connection, and adapts the handle to the protocol.
func look(at handle: UnsafeMutableRawPointer, of transfer: HTTPTransfer, _ line: UnsafeRawBufferPointer) {
    if transfer.heedsTLSEnd { unsafe transfer.tlsConnection = wakegate_curl_tls_connection(handle) }
    // libcurl 7.88 stops reading a stream after `content-length` bytes. It would then miss a reset with which the
    // server stops the request's body. libnghttp2 also checks the length.
    let version = Array("HTTP/".utf8)
    guard transfer.sendsBody, unsafe line.starts(with: version), line.count > version.count else { return }
    let isHTTP2 = unsafe line[version.count] == UInt8(ascii: "2")
    _ = unsafe wakegate_curl_set_long(handle, CURLOPT_IGNORE_CONTENT_LENGTH, isHTTP2 ? 1 : 0)
}

/// Functions for HTTP dates (RFC 9110 §5.6.7).
package enum HTTPDate {
    /// Returns the seconds since 1970 in a date; nil for other text.
    package static func seconds(_ text: String) -> Int64? {
        let seconds = unsafe curl_getdate(text, nil)
        return seconds < 0 ? nil : Int64(seconds)
    }
}

extension HTTPCookies {
    static func makeShare() -> UnsafeMutableRawPointer? { unsafe wakegate_curl_make_cookies() }

    static func end(_ share: UnsafeMutableRawPointer) { _ = unsafe curl_share_cleanup(share) }
}

/// The owner of a client's multi handle, with which any thread can end the current or next wait in `poll`. The handle
/// is freed when the client and all other owners of the waker are released.
///
/// `@unchecked Sendable`: threads other than the client's only call `curl_multi_wakeup`, which is thread-safe.
@safe
package final class HTTPWaker: @unchecked Sendable {
    private let multi: UnsafeMutableRawPointer
    /// Records of how TLS connections ended. Callbacks write them until the multi handle is freed.
    let ends: UnsafeMutablePointer<wakegate_curl_tls_ends>

    init(_ multi: UnsafeMutableRawPointer) {
        unsafe self.multi = multi
        unsafe self.ends = .allocate(capacity: 1)
        unsafe memset(self.ends, 0, MemoryLayout<wakegate_curl_tls_ends>.size)
    }

    deinit {
        _ = unsafe curl_multi_cleanup(self.multi)
        unsafe self.ends.deallocate()
    }

    package func wake() { _ = unsafe curl_multi_wakeup(self.multi) }
}
