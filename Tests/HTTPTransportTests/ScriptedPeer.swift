import Glibc
import Testing

/// A raw connection to a server on loopback, whose bytes a test writes by hand.
final class ScriptedPeer {
    struct Frame {
        let type: UInt8
        let flags: UInt8
        let stream: Int
        let payload: [UInt8]

        /// The error code of RST_STREAM or GOAWAY.
        var errorCode: Int? {
            switch self.type {
            case 3 where self.payload.count == 4: ScriptedPeer.number(self.payload[0..<4])
            case 7 where self.payload.count >= 8: ScriptedPeer.number(self.payload[4..<8])
            case _: nil
            }
        }
    }

    static let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private let descriptor: Int32
    private var received: [UInt8] = []

    /// Connects to `address`, which is `127.0.0.1:PORT`.
    init(_ address: String) throws {
        let port = try #require(address.split(separator: ":").last)
        var found: UnsafeMutablePointer<addrinfo>?
        try #require(unsafe getaddrinfo("127.0.0.1", String(port), nil, &found) == 0)
        let info = try unsafe #require(found)
        defer { unsafe freeaddrinfo(info) }
        self.descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // No test waits longer than this for a byte.
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        unsafe setsockopt(self.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, UInt32(MemoryLayout<timeval>.size))
        try #require(unsafe connect(self.descriptor, info.pointee.ai_addr, info.pointee.ai_addrlen) == 0)
    }

    deinit { self.close() }

    func close() { _ = shutdown(self.descriptor, Int32(SHUT_RDWR)) }

    static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    // MARK: Writing

    func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(self.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The server may have ended the connection; what it said is still to be read.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func send(_ text: String) { self.send([UInt8](text.utf8)) }

    static func frame(_ type: UInt8, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        let head = [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
        return head + Self.bytes(UInt32(stream)) + payload
    }

    static func bytes(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }

    static func setting(_ identifier: UInt8, _ value: UInt32) -> [UInt8] { [0, identifier] + Self.bytes(value) }

    /// A header block without compression: method, scheme, path and host.
    static func headers(_ path: String, isPost: Bool = false) -> [UInt8] {
        [isPost ? 0x83 : 0x82, 0x86, 0x04, UInt8(path.utf8.count)] + [UInt8](path.utf8) + Self.field("host", "h")
    }

    static func field(_ name: String, _ value: String) -> [UInt8] {
        precondition(name.utf8.count < 127 && value.utf8.count < 127, "longer ones need a longer integer")
        return [0x00, UInt8(name.utf8.count)] + [UInt8](name.utf8) + [UInt8(value.utf8.count)] + [UInt8](value.utf8)
    }

    /// HEADERS of a request; with `ended` it has no body.
    static func request(_ path: String, stream: Int, ended: Bool = true) -> [UInt8] {
        Self.frame(1, flags: ended ? 5 : 4, stream: stream, Self.headers(path, isPost: !ended))
    }

    /// The preface and our settings.
    func beginHTTP2(settings: [UInt8] = []) {
        self.send(Self.preface + Self.frame(4, settings))
    }

    // MARK: Reading

    /// - Returns: false at the end of the connection.
    private func receive() -> Bool {
        var room = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(self.descriptor, &room, room.count, 0)
        guard count > 0 else { return false }
        self.received += room[..<count]
        return true
    }

    /// The next frame, or nil at the end of the connection.
    func nextFrame() -> Frame? {
        while true {
            if self.received.count >= 9 {
                let count = Self.number(self.received[0..<3])
                if self.received.count >= 9 + count {
                    let frame = Frame(
                        type: self.received[3],
                        flags: self.received[4],
                        stream: Self.number(self.received[5..<9]),
                        payload: Array(self.received[9..<(9 + count)])
                    )
                    self.received.removeFirst(9 + count)
                    return frame
                }
            }
            if !self.receive() { return nil }
        }
    }

    /// Reads on to the first frame of a type, of a stream unless nil.
    func frame(type: UInt8, stream: Int? = nil) -> Frame? {
        while let frame = self.nextFrame() {
            if frame.type == type && (stream == nil || frame.stream == stream) { return frame }
        }
        return nil
    }

    /// Reads on to the end of a stream: the bytes of its DATA frames; nil when it was reset or the connection ended.
    func body(stream: Int) -> [UInt8]? {
        var body: [UInt8] = []
        while let frame = self.nextFrame() {
            guard frame.stream == stream else { continue }
            if frame.type == 3 { return nil }
            if frame.type == 0 { body += frame.payload }
            if frame.flags & 1 != 0 { return body }
        }
        return nil
    }

    /// Reads on until the connection has ended.
    func hasEnded() -> Bool {
        while self.receive() {}
        return true
    }

    /// Reads on until `text` has come; what is behind it stays.
    func text(through text: String) -> String? {
        let wanted = [UInt8](text.utf8)
        while true {
            let starts = self.received.indices.dropLast(wanted.count - 1)
            if let start = starts.first(where: { Array(self.received[$0..<($0 + wanted.count)]) == wanted }) {
                let end = start + wanted.count
                defer { self.received.removeFirst(end) }
                return String(decoding: self.received[..<end], as: UTF8.self)
            }
            if !self.receive() { return nil }
        }
    }
}
