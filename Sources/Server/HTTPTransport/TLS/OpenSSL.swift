// The only file that uses OpenSSL.
internal import COpenSSL
internal import Platform
internal import Wire

/// A server's certificate and key, and the setting to ask clients for a certificate.
///
/// `@unchecked Sendable`: OpenSSL counts references atomically, and the context never changes after `init`.
@safe
package final class TLSContext: @unchecked Sendable {
    /// The maximum number of bytes of a client's certificate chain: 16 KiB, enough for four of the largest keys in use.
    /// The chain stays in memory as long as the connection.
    package static let clientChainBytesMax = 16_384

    fileprivate let context: OpaquePointer

    /// - Parameters:
    ///   - certificateChainFile: PEM, the server's own certificate first.
    ///   - privateKeyFile: PEM.
    ///   - asksForCertificate: true to ask clients for an optional certificate. The handshake accepts a certificate of
    ///     any issuer. The handler receives it before the first request, and `ClientTrust` verifies it. A session with
    ///     a client certificate is never resumed, because a resumption would skip this verification.
    package init(
        certificateChainFile: String,
        privateKeyFile: String,
        asksForCertificate: Bool = false
    ) throws(TransportError) {
        for (code, file) in [(TransportError.Code.certificate, certificateChainFile), (.privateKey, privateKeyFile)]
        where OrdinaryFile.isOther(file) {
            throw TransportError(code, "\(file) is not a regular file; give one in PEM.")
        }
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else {
            throw TransportError(.system, "TLS cannot be set up: \(OpenSSL.reason()).")
        }
        unsafe self.context = unsafe context
        unsafe wakegate_ctx_min_tls12(context)
        unsafe wakegate_ctx_mode(context)
        unsafe wakegate_ctx_read_ahead(context)
        unsafe wakegate_ctx_options(context)
        guard unsafe wakegate_ctx_ciphers(context) == 1 else {
            throw TransportError(.system, "TLS cannot be set up: \(OpenSSL.reason()).")
        }
        unsafe SSL_CTX_set_num_tickets(context, 1)
        unsafe SSL_CTX_set_session_id_context(context, [1], 1)
        unsafe SSL_CTX_set_alpn_select_cb(context, selectProtocol, nil)
        guard unsafe SSL_CTX_use_certificate_chain_file(context, certificateChainFile) == 1 else {
            throw TransportError(
                .certificate,
                "The certificate \(certificateChainFile) cannot be used (\(OpenSSL.reason())); give PEM, server first."
            )
        }
        guard unsafe SSL_CTX_use_PrivateKey_file(context, privateKeyFile, SSL_FILETYPE_PEM) == 1 else {
            throw TransportError(
                .privateKey,
                "The private key \(privateKeyFile) cannot be used (\(OpenSSL.reason())); give the PEM key."
            )
        }
        if asksForCertificate { unsafe wakegate_ctx_ask_certificate(context, Self.clientChainBytesMax) }
    }

    deinit {
        unsafe SSL_CTX_free(self.context)
    }

    /// The end of the certificate's validity, in seconds since 1970; nil if it is not readable.
    package var certificateExpiry: Int64? {
        guard let certificate = unsafe SSL_CTX_get0_certificate(self.context) else { return nil }
        let expiry = unsafe wakegate_expiry(certificate)
        return expiry < 0 ? nil : expiry / 1000
    }
}

/// Selects `h2` from the protocols that a client offers, and refuses a list without `h2`.
private func selectProtocol(
    _: OpaquePointer?,
    _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenCount: UnsafeMutablePointer<UInt8>?,
    _ offered: UnsafePointer<UInt8>?,
    _ offeredCount: UInt32,
    _: UnsafeMutableRawPointer?
) -> Int32 {
    let list = unsafe ByteView(UnsafeRawBufferPointer(start: offered, count: Int(offeredCount)))
    var start = 0
    while start < list.count {
        let count = Int(list[start])
        guard start + 1 + count <= list.count else { break }
        if list[(start + 1)..<(start + 1 + count)] == "h2" {
            unsafe chosen?.pointee = offered.map { unsafe $0 + start + 1 }
            unsafe chosenCount?.pointee = UInt8(count)
            return SSL_TLSEXT_ERR_OK
        }
        start += 1 + count
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// The input and output of OpenSSL. All connections of a loop share one pipe; the loop serves one connection at a time.
@safe
final class TLSPipe {
    /// The bytes from the socket. The caller sets them before each call, and the call consumes them.
    var input = ByteView()
    /// The bytes to send to the socket. The caller empties the buffer after each call.
    var output = ByteBuffer()
    fileprivate let method: OpaquePointer
    /// Counts the records that are not application data.
    fileprivate let records = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)

    init() {
        guard let method = unsafe BIO_meth_new(BIO_TYPE_SOURCE_SINK | 0x7F, "WakeGate") else {
            preconditionFailure("out of memory")
        }
        unsafe self.method = unsafe method
        unsafe self.records.initialize(to: 0)
        unsafe BIO_meth_set_create(method) { bio in
            unsafe BIO_set_init(bio, 1)
            return 1
        }
        unsafe BIO_meth_set_read(method, pipeRead)
        unsafe BIO_meth_set_write(method, pipeWrite)
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    }

    deinit {
        unsafe BIO_meth_free(self.method)
        unsafe self.records.deallocate()
    }

    /// Returns the number of records since the last call that were handshakes, alerts, key updates or anything else but
    /// application data.
    func takeControlRecords() -> Int {
        defer { unsafe self.records.pointee = 0 }
        return Int(unsafe self.records.pointee)
    }
}

/// Calls `body` with the pipe of a BIO. The BIO does not retain the pipe; the loop keeps it alive longer than any
/// connection.
@inline(__always)
private func withPipe<Result>(_ bio: OpaquePointer?, _ body: (TLSPipe) -> Result) -> Result {
    unsafe Unmanaged<TLSPipe>.fromOpaque(BIO_get_data(bio))._withUnsafeGuaranteedRef { body($0) }
}

private func pipeRead(_ bio: OpaquePointer?, _ buffer: UnsafeMutablePointer<CChar>?, _ count: Int32) -> Int32 {
    unsafe withPipe(bio) { pipe in
        unsafe wakegate_bio_clear_retry(bio)
        let taken = min(Int(count), pipe.input.count)
        guard taken > 0 else {
            unsafe wakegate_bio_retry_read(bio)
            return -1
        }
        unsafe UnsafeMutableRawPointer(buffer)?.copyMemory(
            from: pipe.input.buffer.baseAddress.unsafelyUnwrapped,
            byteCount: taken
        )
        pipe.input = pipe.input.dropFirst(taken)
        return Int32(taken)
    }
}

private func pipeWrite(_ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ count: Int32) -> Int32 {
    unsafe withPipe(bio) { pipe in
        unsafe wakegate_bio_clear_retry(bio)
        unsafe pipe.output.append(ByteView(UnsafeRawBufferPointer(start: bytes, count: Int(count))))
        return count
    }
}

/// The server's end of one TLS connection, without its socket.
@safe
final class TLSSession {
    enum Progress {
        case done
        case wantsMore
        case failed
    }

    private let ssl: OpaquePointer
    private let pipe: TLSPipe

    init?(context: TLSContext, pipe: TLSPipe) {
        guard let ssl = unsafe SSL_new(context.context) else { return nil }
        guard let bio = unsafe BIO_new(pipe.method) else {
            unsafe SSL_free(ssl)
            return nil
        }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(pipe).toOpaque())
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe SSL_set_accept_state(ssl)
        unsafe wakegate_count_records(ssl, pipe.records)
        unsafe self.ssl = unsafe ssl
        self.pipe = pipe
    }

    deinit {
        unsafe SSL_free(self.ssl)
    }

    /// Continues the handshake with the bytes in `pipe.input`.
    func handshake() -> Progress {
        OpenSSL.forgetErrors()
        let result = unsafe SSL_do_handshake(self.ssl)
        if result == 1 { return .done }
        return unsafe SSL_get_error(self.ssl, result) == SSL_ERROR_WANT_READ ? .wantsMore : .failed
    }

    /// Decrypts bytes from `pipe.input` and earlier input into `buffer`.
    ///
    /// - Returns: the number of bytes; 0 if more input is needed; nil if the connection has ended or failed.
    func read(into buffer: borrowing ReadBuffer) -> Int? {
        OpenSSL.forgetErrors()
        let count = unsafe SSL_read(self.ssl, buffer.memory.baseAddress, Int32(buffer.count))
        if count > 0 { return Int(count) }
        return unsafe SSL_get_error(self.ssl, count) == SSL_ERROR_WANT_READ ? 0 : nil
    }

    /// True if a record has arrived only in part.
    var hasPartOfRecord: Bool { unsafe SSL_has_pending(self.ssl) == 1 }

    /// Encrypts all of `bytes` to `pipe.output`.
    func write(_ bytes: ByteView) -> Bool {
        // The caller does not read the reason of a failure, so errors that stay in the queue do no harm.
        var rest = bytes
        while rest.count > 0 {
            let count = unsafe SSL_write(self.ssl, rest.buffer.baseAddress, Int32(rest.count))
            guard count > 0 else { return false }
            rest = rest.dropFirst(Int(count))
        }
        return true
    }

    /// Writes the alert that ends the connection (close_notify) to `pipe.output`.
    func shutdown() {
        ERR_clear_error()
        unsafe SSL_shutdown(self.ssl)
    }

    /// The certificate that the client showed in the handshake, whether or not it is trusted.
    var clientCertificate: ClientCertificate? {
        guard let leaf = unsafe SSL_get1_peer_certificate(self.ssl) else { return nil }
        let chain = unsafe SSL_get_peer_cert_chain(self.ssl).flatMap { unsafe X509_chain_up_ref($0) }
        return unsafe ClientCertificate(leaf: leaf, chain: chain)
    }
}

/// The certificate of a client that has proved possession of the private key. The issuer may be unknown.
@safe
package final class ClientCertificate {
    fileprivate let leaf: OpaquePointer
    /// The other certificates that the client sent, which may lead to a trusted authority.
    fileprivate let chain: OpaquePointer?

    fileprivate init(leaf: OpaquePointer, chain: OpaquePointer?) {
        unsafe self.leaf = unsafe leaf
        unsafe self.chain = unsafe chain
    }

    /// Reads the first certificate of a PEM text, as if a client had shown it alone; nil if there is none.
    package init?(pem: [UInt8]) {
        let leaf = unsafe OpenSSL.reading(pem) { unsafe PEM_read_bio_X509($0, nil, nil, nil) }
        guard let leaf = unsafe leaf else { return nil }
        unsafe self.leaf = unsafe leaf
        unsafe self.chain = nil
    }

    deinit {
        unsafe X509_free(self.leaf)
        unsafe wakegate_free_chain(self.chain)
    }

    /// The first instant, in milliseconds since 1970, at which the certificate has expired.
    package var expiresAt: Int64 { unsafe wakegate_expiry(self.leaf) + 1 }

    /// The subject on one line in the form of RFC 2253, without line breaks.
    package var subject: String {
        let text = unsafe OpenSSL.output { unsafe wakegate_write_subject($0, self.leaf) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The user identifiers (UID, 0.9.2342.19200300.100.1.1) of the subject.
    package var userIDs: [String] { self.values(NID_userId) }

    /// The organizational units (OU) of the subject.
    package var organizationalUnits: [String] { self.values(NID_organizationalUnitName) }

    private func values(_ kind: Int32) -> [String] {
        var values: [String] = []
        var index: Int32 = -1
        while true {
            var bytes: UnsafeMutablePointer<UInt8>?
            let count = unsafe wakegate_subject_value(self.leaf, kind, &index, &bytes)
            guard index >= 0 else { return values }
            guard count >= 0, let text = unsafe bytes else { continue }
            unsafe values.append(String(decoding: UnsafeBufferPointer(start: text, count: Int(count)), as: UTF8.self))
            unsafe CRYPTO_free(text, nil, 0)
        }
    }

    /// Returns the value of an extension.
    ///
    /// - Parameter identifier: the dotted object identifier, such as `1.2.840.113635.100.6.3.6`.
    /// - Returns: nil if the certificate does not have the extension.
    package func value(ofExtension identifier: String) -> [UInt8]? {
        guard let value = unsafe wakegate_extension(self.leaf, identifier) else { return nil }
        let count = unsafe Int(ASN1_STRING_length(value))
        return unsafe Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(value), count: count))
    }
}

/// The authorities whose client certificates are trusted, and their lists of revoked certificates.
///
/// `@unchecked Sendable`: OpenSSL locks a store, and the store never changes after `init`.
@safe
package final class ClientTrust: @unchecked Sendable {
    /// True if the next issue of a revocation list is overdue.
    package let isOverdue: Bool
    private let store: OpaquePointer

    /// - Parameters:
    ///   - authorities: certificates in PEM, each trusted on its own; text around them is skipped.
    ///   - revocations: revocation lists in PEM, each signed by one of the authorities; nil for none.
    /// - Throws: `TransportError` that names the file whose content cannot be used.
    package init(
        authorities: (pem: [UInt8], file: String),
        revocations: (pem: [UInt8], file: String)?
    ) throws(TransportError) {
        guard let store = unsafe wakegate_store_new() else {
            throw TransportError(.system, "TLS cannot be set up: \(OpenSSL.reason()).")
        }
        unsafe self.store = unsafe store
        var overdue: Int32 = 0
        defer { ERR_clear_error() }
        guard unsafe OpenSSL.reading(authorities.pem, { unsafe wakegate_store_add_authorities(store, $0) }) > 0 else {
            self.isOverdue = false
            throw TransportError(
                .certificate,
                "\(authorities.file) holds no certificate in PEM; name the authorities of client certificates."
            )
        }
        let added = revocations.map { list in
            unsafe OpenSSL.reading(list.pem) { unsafe wakegate_store_add_revocations(store, $0, &overdue) }
        }
        self.isOverdue = overdue != 0
        switch added {
        case nil, .some(1...): break
        case -2:
            throw TransportError(
                .certificate,
                "\(revocations?.file ?? "") holds a list that no authority in \(authorities.file) has signed; "
                    + "add its authority there, or take the list out."
            )
        default:
            throw TransportError(
                .certificate,
                "\(revocations?.file ?? "") holds no list of revoked certificates in PEM; make one with openssl ca."
            )
        }
    }

    deinit { unsafe X509_STORE_free(self.store) }

    /// Returns OpenSSL's reason why the certificate is not trusted now; nil if it is trusted.
    package func fault(of certificate: ClientCertificate) -> String? {
        let error = unsafe wakegate_verify_client(self.store, certificate.leaf, certificate.chain)
        guard error != X509_V_OK else { return nil }
        return unsafe String(cString: X509_verify_cert_error_string(Int(error)))
    }
}

/// The functions for keys and certificates that need OpenSSL.
enum OpenSSL {
    /// Returns OpenSSL's description of the last failure.
    static func reason() -> String {
        let error = ERR_peek_last_error()
        ERR_clear_error()
        guard let text = unsafe ERR_reason_error_string(error) else { return "no reason given" }
        return unsafe String(cString: text)
    }

    /// Empties the error queue. An older error would otherwise be reported as the cause of the next failure. Checking
    /// for an empty queue costs a fifth as much as emptying it.
    static func forgetErrors() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    /// A P-256 key pair, or a public key alone.
    ///
    /// `@unchecked Sendable`: the key never changes after `init`, and OpenSSL may read it on any thread.
    @safe
    final class Key: @unchecked Sendable {
        fileprivate let pointer: OpaquePointer

        fileprivate init(_ pointer: OpaquePointer) { unsafe self.pointer = unsafe pointer }

        deinit { unsafe EVP_PKEY_free(self.pointer) }

        static func make() throws(TransportError) -> Key {
            guard let pointer = unsafe wakegate_new_p256() else {
                throw TransportError(.privateKey, "A P-256 key cannot be made: \(OpenSSL.reason()).")
            }
            return unsafe Key(pointer)
        }

        /// - `remedy`: the advice in the error if the file does not contain a key.
        init(pem: [UInt8], file: String, remedy: String = "remove it") throws(TransportError) {
            // Without this callback OpenSSL would ask the terminal for the password of an encrypted key.
            let pointer = unsafe OpenSSL.reading(pem) {
                unsafe PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil)
            }
            guard let pointer = unsafe pointer else {
                throw TransportError(
                    .privateKey,
                    "\(file) holds no private key in PEM without a password (\(OpenSSL.reason())); \(remedy)."
                )
            }
            unsafe self.pointer = unsafe pointer
        }

        /// Reads the public key in `pem`, which may also contain the private key; nil if there is none.
        init?(publicPEM pem: [UInt8]) {
            let pointer = unsafe OpenSSL.reading(pem) { unsafe wakegate_public_key($0) }
            guard let pointer = unsafe pointer else { return nil }
            unsafe self.pointer = unsafe pointer
        }

        var isP256: Bool { unsafe wakegate_is_p256(self.pointer) == 1 }

        /// Signs with SHA-256.
        ///
        /// - Returns: R followed by S, 32 bytes each.
        func signES256(_ message: [UInt8]) throws(TransportError) -> [UInt8] {
            var signature = [UInt8](repeating: 0, count: 64)
            guard unsafe wakegate_sign_es256(self.pointer, message, message.count, &signature) == 1 else {
                throw TransportError(.privateKey, "The key cannot sign: \(OpenSSL.reason()).")
            }
            return signature
        }

        /// Returns true if `signature` (R followed by S) is this key's signature for the SHA-256 of `message`.
        func verifiesES256(_ message: ByteView, signature: [UInt8]) -> Bool {
            guard signature.count == 64 else { return false }
            return unsafe wakegate_verify_es256(
                self.pointer,
                message.buffer.baseAddress?.assumingMemoryBound(to: UInt8.self),
                message.count,
                signature
            ) == 1
        }

        /// PKCS#8 in PEM.
        var privatePEM: [UInt8] {
            unsafe OpenSSL.output { unsafe PEM_write_bio_PKCS8PrivateKey($0, self.pointer, nil, nil, 0, nil, nil) }
        }

        /// SubjectPublicKeyInfo in PEM.
        var publicPEM: [UInt8] {
            unsafe OpenSSL.output { unsafe PEM_write_bio_PUBKEY($0, self.pointer) }
        }
    }

    @safe
    final class Certificate {
        fileprivate let pointer: OpaquePointer

        deinit { unsafe X509_free(self.pointer) }

        init(pem: [UInt8], file: String) throws(TransportError) {
            let pointer = unsafe OpenSSL.reading(pem) { unsafe PEM_read_bio_X509($0, nil, nil, nil) }
            guard let pointer = unsafe pointer else {
                throw TransportError(
                    .certificate,
                    "\(file) holds no certificate in PEM (\(OpenSSL.reason())); remove it."
                )
            }
            unsafe self.pointer = unsafe pointer
        }

        var pem: [UInt8] {
            unsafe OpenSSL.output { unsafe PEM_write_bio_X509($0, self.pointer) }
        }

        /// Makes and signs a certificate. Attributes and extensions use the names and values of OpenSSL's configuration
        /// files.
        init(
            subject attributes: [(String, String)],
            key: Key,
            issuer: Certificate?,
            issuerKey: Key,
            days: Int,
            extensions: [(String, String)]
        ) throws(TransportError) {
            let fault = "The certificate \"\(attributes.last?.1 ?? "")\" cannot be made"
            guard let pointer = unsafe X509_new() else {
                throw TransportError(.certificate, "\(fault): out of memory.")
            }
            unsafe self.pointer = unsafe pointer
            unsafe X509_set_version(pointer, 2)
            let serial = unsafe BN_new()
            unsafe BN_rand(serial, 127, 0, 0)
            unsafe BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(pointer))
            unsafe BN_free(serial)
            // The validity begins a day ago, for clients whose clocks are behind.
            unsafe X509_gmtime_adj(X509_getm_notBefore(pointer), -86_400)
            unsafe X509_gmtime_adj(X509_getm_notAfter(pointer), days * 86_400)
            unsafe X509_set_pubkey(pointer, key.pointer)
            let subject = unsafe X509_get_subject_name(pointer)
            for (attribute, value) in attributes {
                guard unsafe X509_NAME_add_entry_by_txt(subject, attribute, MBSTRING_UTF8, value, -1, -1, 0) == 1 else {
                    throw TransportError(.certificate, "\(fault): \(OpenSSL.reason()).")
                }
            }
            unsafe X509_set_issuer_name(pointer, issuer.map { unsafe X509_get_subject_name($0.pointer) } ?? subject)
            var context = unsafe X509V3_CTX()
            unsafe wakegate_x509v3_ctx(&context, issuer?.pointer ?? pointer, pointer)
            for (identifier, value) in extensions {
                guard let made = unsafe X509V3_EXT_nconf(nil, &context, identifier, value) else {
                    throw TransportError(.certificate, "\(fault): \(OpenSSL.reason()).")
                }
                unsafe X509_add_ext(pointer, made, -1)
                unsafe X509_EXTENSION_free(made)
            }
            guard unsafe X509_sign(pointer, issuerKey.pointer, EVP_sha256()) > 0 else {
                throw TransportError(.certificate, "\(fault): \(OpenSSL.reason()).")
            }
        }
    }

    fileprivate static func reading<Result>(_ pem: [UInt8], _ body: (OpaquePointer?) -> Result) -> Result {
        unsafe pem.withUnsafeBytes { bytes in
            let bio = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
            defer { unsafe BIO_free(bio) }
            return unsafe body(bio)
        }
    }

    fileprivate static func output(_ body: (OpaquePointer?) -> Int32) -> [UInt8] {
        let bio = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(bio) }
        guard unsafe body(bio) == 1 else { return [] }
        var result: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe BIO_read(bio, &chunk, Int32(chunk.count))
            guard count > 0 else { return result }
            result += chunk[..<Int(count)]
        }
    }
}

/// Message authentication codes: HMAC with SHA-256 (RFC 2104), 32 bytes.
package enum MessageCode {
    package static func make(_ message: [UInt8], key: [UInt8]) throws(TransportError) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 32)
        guard unsafe HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, nil) != nil else {
            throw TransportError(.system, "A message cannot be signed (\(OpenSSL.reason())); see to free memory.")
        }
        return code
    }

    /// Compares two codes. The comparison time does not depend on the bytes, so a caller cannot guess a code byte by
    /// byte.
    package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe CRYPTO_memcmp(left, right, left.count) == 0
    }
}

/// An incremental SHA-256 (FIPS 180-4) of content that arrives in parts.
@safe
package final class ContentDigest {
    private let context: OpaquePointer

    /// - Returns: nil if OpenSSL is out of memory.
    package init?() {
        guard let context = unsafe EVP_MD_CTX_new() else { return nil }
        unsafe self.context = context
        guard unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else { return nil }
    }

    deinit { unsafe EVP_MD_CTX_free(self.context) }

    /// Adds the next bytes.
    package func update(_ bytes: ArraySlice<UInt8>) {
        _ = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(self.context, $0.baseAddress, $0.count) }
    }

    /// Returns the digest of all bytes in lower-case hexadecimal. May be called only once.
    package func hex() -> String {
        var code = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_DigestFinal_ex(self.context, &code, nil) == 1 else { return "" }
        return code.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
