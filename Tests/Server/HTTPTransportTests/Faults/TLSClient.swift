import COpenSSL

/// A client's end of one TLS connection, without its socket: it speaks HTTP/2 and believes any certificate.
@safe
final class TLSClient {
    private let context: OpaquePointer
    private let ssl: OpaquePointer
    /// What came from the server, and what is to go to it; `ssl` owns both.
    private let input: OpaquePointer
    private let output: OpaquePointer
    /// What is said behind the handshake.
    private var waiting: [UInt8] = []

    init?() {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()), let ssl = unsafe SSL_new(context),
            let input = unsafe BIO_new(BIO_s_mem()), let output = unsafe BIO_new(BIO_s_mem())
        else { return nil }
        unsafe SSL_set_bio(ssl, input, output)
        unsafe SSL_set_connect_state(ssl)
        unsafe SSL_set_alpn_protos(ssl, [2, 0x68, 0x32], 3)
        unsafe (self.context, self.ssl) = unsafe (context, ssl)
        unsafe (self.input, self.output) = unsafe (input, output)
    }

    deinit {
        unsafe SSL_free(self.ssl)
        unsafe SSL_CTX_free(self.context)
    }

    /// What goes to the server once `bytes` are said, and the handshake goes on.
    func send(_ bytes: [UInt8]) -> [UInt8] {
        self.waiting += bytes
        if unsafe SSL_do_handshake(self.ssl) == 1, !self.waiting.isEmpty {
            unsafe SSL_write(self.ssl, self.waiting, Int32(self.waiting.count))
            self.waiting = []
        }
        // What went wrong is seen by what does not come.
        ERR_clear_error()
        return unsafe Self.all { unsafe BIO_read(self.output, $0.baseAddress, Int32($0.count)) }
    }

    /// What the server has said with `bytes`.
    func receive(_ bytes: [UInt8]) -> [UInt8] {
        unsafe BIO_write(self.input, bytes, Int32(bytes.count))
        _ = unsafe SSL_do_handshake(self.ssl)
        defer { ERR_clear_error() }
        return unsafe Self.all { unsafe SSL_read(self.ssl, $0.baseAddress, Int32($0.count)) }
    }

    private static func all(_ read: (UnsafeMutableRawBufferPointer) -> Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe room.withUnsafeMutableBytes { unsafe read($0) }
            guard count > 0 else { return bytes }
            bytes += room[..<Int(count)]
        }
    }
}
