import Glibc
import HTTPTransport
import Testing
import Wire

/// The types of frames (RFC 9113 §6).
enum FrameType: UInt8 {
    case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
    /// An undefined type.
    case unknown = 0x42
}

/// The flags of frames (RFC 9113 §6).
struct FrameFlags: OptionSet {
    let rawValue: UInt8

    static let ack = FrameFlags(rawValue: 0x1)
    static let endStream = FrameFlags(rawValue: 0x1)
    static let endHeaders = FrameFlags(rawValue: 0x4)
    static let padded = FrameFlags(rawValue: 0x8)
    static let priority = FrameFlags(rawValue: 0x20)
    static let whole: FrameFlags = [.endStream, .endHeaders]
}

/// The identifiers of settings (RFC 9113 §6.5.2).
enum SettingIdentifier: UInt8 {
    case headerTableSize = 1
    case enablePush, maxConcurrentStreams, initialWindowSize, maxFrameSize, maxHeaderListSize
    /// An undefined setting.
    case unknown = 0xF0
}

/// A raw connection to a server on loopback, for which a test writes every byte.
final class ScriptedPeer {
    struct Frame {
        let type: FrameType
        let flags: FrameFlags
        let stream: Int
        let payload: [UInt8]

        /// The status of the first response of a connection; nil for any other frame.
        ///
        /// HPACK's static table has seven statuses; others are sent as a plain literal with the name of entry 8. The
        /// first block may begin with the table's new size.
        var status: Int? {
            guard self.type == .headers else { return nil }
            let block = Array(self.payload.drop { $0 & 0xE0 == 0x20 })
            guard let first = block.first else { return nil }
            let known = [200, 204, 206, 304, 400, 404, 500]
            if first & 0x80 != 0 { return (0x88...0x8E).contains(first) ? known[Int(first) - 0x88] : nil }
            guard first == 0x08, block.count >= 5, block[1] == 3 else { return nil }
            return Int(String(decoding: block[2..<5], as: UTF8.self))
        }

        /// The error code of RST_STREAM or GOAWAY.
        var errorCode: HTTP2ErrorCode? {
            let code: ArraySlice<UInt8>
            switch self.type {
            case .reset where self.payload.count == 4: code = self.payload[0..<4]
            case .goAway where self.payload.count >= 8: code = self.payload[4..<8]
            case _: return nil
            }
            return HTTP2ErrorCode(rawValue: UInt32(ScriptedPeer.number(code)))
        }
    }

    /// The error for a Unix socket without a listening server.
    struct Refused: Error {
        let path: String
    }

    static let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private let descriptor: Int32
    private var received: [UInt8] = []
    private var isEndSeen = false
    private let tls: TLSClient?
    private let goesOn: (() -> Bool)?

    /// Connects to `address`, which is `HOST:PORT` or `unix:/path`.
    ///
    /// - Parameters:
    ///   - host: another host to use than that of the address.
    ///   - source: the address of this machine to connect from.
    ///   - tls: the TLS client; nil for cleartext.
    ///   - goesOn: called each time that nothing has arrived for a while; returns true to wait on. Nil for a minute.
    init(
        _ address: String,
        host: String = "127.0.0.1",
        from source: String? = nil,
        tls: TLSClient? = nil,
        goesOn: (() -> Bool)? = nil
    ) throws {
        self.tls = tls
        self.goesOn = goesOn
        if address.hasPrefix("unix:") {
            self.descriptor = try Self.connected(unix: String(address.dropFirst(5)))
        } else {
            let port = try String(#require(address.split(separator: ":").last))
            self.descriptor = try Self.connected(host, port: port, from: source)
        }
        // Bytes are sent without delay.
        var on: Int32 = 1
        unsafe setsockopt(self.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, UInt32(MemoryLayout<Int32>.size))
        // The limit of each wait for a byte.
        var limit = goesOn == nil ? timeval(tv_sec: 60, tv_usec: 0) : timeval(tv_sec: 0, tv_usec: 50_000)
        unsafe setsockopt(self.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, UInt32(MemoryLayout<timeval>.size))
    }

    private static func connected(_ host: String, port: String, from source: String?) throws -> Int32 {
        var found: UnsafeMutablePointer<addrinfo>?
        try #require(unsafe getaddrinfo(host, port, nil, &found) == 0)
        let info = try unsafe #require(found)
        defer { unsafe freeaddrinfo(info) }
        let descriptor = Glibc.socket(unsafe info.pointee.ai_family, Int32(SOCK_STREAM.rawValue), 0)
        if let source {
            var from: UnsafeMutablePointer<addrinfo>?
            try #require(unsafe getaddrinfo(source, nil, nil, &from) == 0)
            defer { unsafe freeaddrinfo(from) }
            let name = try unsafe #require(from)
            try #require(unsafe bind(descriptor, name.pointee.ai_addr, name.pointee.ai_addrlen) == 0)
        }
        try #require(unsafe connect(descriptor, info.pointee.ai_addr, info.pointee.ai_addrlen) == 0)
        return descriptor
    }

    private static func connected(unix path: String) throws -> Int32 {
        let (descriptor, result) = unsafe Self.socket(unix: path) { unsafe connect($0, $1, $2) }
        guard result == 0 else {
            _ = Glibc.close(descriptor)
            throw Refused(path: path)
        }
        return descriptor
    }

    /// Creates a Unix socket.
    ///
    /// - `call`: connects or binds the socket to an address of this size.
    static func socket(
        unix path: String,
        _ call: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32
    ) -> (descriptor: Int32, result: Int32) {
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let result = unsafe withUnsafeBytes(of: &name) { bytes in
            unsafe call(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        return (descriptor, result)
    }

    deinit {
        self.close()
        _ = Glibc.close(self.descriptor)
    }

    func close() { _ = shutdown(self.descriptor, Int32(SHUT_RDWR)) }

    /// Ends the sending direction; reading continues.
    func endWriting() { _ = shutdown(self.descriptor, Int32(SHUT_WR)) }

    static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    // MARK: Writing

    func send(_ bytes: [UInt8]) {
        var rest = (self.tls?.send(bytes) ?? bytes)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(self.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The server may have ended the connection. Its last bytes are still to be read.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func send(_ text: String) { self.send([UInt8](text.utf8)) }

    /// Waits until the system has delivered everything to the server, whether or not the server has read it.
    ///
    /// - Returns: false if it has not within a minute.
    func isDelivered() -> Bool {
        let deadline = ContinuousClock.now + .seconds(60)
        var unsent: Int32 = 0
        while unsafe ioctl(self.descriptor, UInt(TIOCOUTQ), &unsent) == 0, unsent > 0 {
            guard ContinuousClock.now < deadline else { return false }
            sched_yield()
        }
        return unsent == 0
    }

    static func frame(
        _ type: FrameType,
        flags: FrameFlags = [],
        stream: Int = 0,
        _ payload: [UInt8] = []
    ) -> [UInt8] {
        let head = Self.bytes(UInt32(payload.count)).dropFirst() + [type.rawValue, flags.rawValue]
        return head + Self.bytes(UInt32(stream)) + payload
    }

    static func bytes(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }

    static func bytes(_ code: HTTP2ErrorCode) -> [UInt8] { Self.bytes(code.rawValue) }

    static func update(stream: Int = 0, _ increment: UInt32) -> [UInt8] {
        Self.frame(.windowUpdate, stream: stream, Self.bytes(increment))
    }

    static func setting(_ identifier: SettingIdentifier, _ value: UInt32) -> [UInt8] {
        [0, identifier.rawValue] + Self.bytes(value)
    }

    /// Returns a header block without compression: method, scheme, path and host.
    static func headers(_ path: String, isPost: Bool = false) -> [UInt8] {
        [isPost ? 0x83 : 0x82, 0x86, 0x04, UInt8(path.utf8.count)] + [UInt8](path.utf8) + Self.field("host", "h")
    }

    static func field(_ name: String, _ value: String) -> [UInt8] {
        precondition(name.utf8.count < 127 && value.utf8.count < 127, "longer ones need a longer integer")
        return [0x00, UInt8(name.utf8.count)] + [UInt8](name.utf8) + [UInt8(value.utf8.count)] + [UInt8](value.utf8)
    }

    /// Returns HEADERS of a request; with `ended` it has no body.
    static func request(_ path: String, stream: Int, ended: Bool = true) -> [UInt8] {
        Self.frame(.headers, flags: ended ? .whole : .endHeaders, stream: stream, Self.headers(path, isPost: !ended))
    }

    /// Sends the preface and settings.
    func beginHTTP2(settings: [UInt8] = []) {
        self.send(Self.preface + Self.frame(.settings, settings))
    }

    // MARK: Reading

    /// - Returns: false at the end of the connection, or if nothing arrived in time.
    private func receive() -> Bool {
        var room = [UInt8](repeating: 0, count: 65_536)
        var count = unsafe recv(self.descriptor, &room, room.count, 0)
        while count < 0, errno == EAGAIN, let goesOn, goesOn() {
            count = unsafe recv(self.descriptor, &room, room.count, 0)
        }
        guard count > 0 else {
            self.isEndSeen = count == 0 || errno == ECONNRESET
            return false
        }
        self.received += self.tls?.receive(Array(room[..<count])) ?? Array(room[..<count])
        // The handshake may have more to send, and then the bytes that waited for it.
        if self.tls != nil { self.send([]) }
        return true
    }

    /// Returns the next frame, or nil at the end of the connection. Acknowledges the server's settings.
    func nextFrame() -> Frame? {
        while true {
            if let frame = Self.takeFrame(from: &self.received) {
                if frame.type == .settings, frame.flags != .ack { self.send(Self.frame(.settings, flags: .ack)) }
                return frame
            }
            if !self.receive() { return nil }
        }
    }

    /// Reads until the first frame that is `wanted`.
    func nextFrame(_ wanted: (Frame) -> Bool) -> Frame? {
        while let frame = self.nextFrame() {
            if wanted(frame) { return frame }
        }
        return nil
    }

    /// Reads until the first frame of a type, and of a stream unless nil.
    func frame(type: FrameType, stream: Int? = nil) -> Frame? {
        self.nextFrame { $0.type == type && (stream == nil || $0.stream == stream) }
    }

    /// Reads until the end of a stream; returns the bytes of its DATA frames, or nil if it was reset or the connection
    /// ended.
    func body(stream: Int) -> [UInt8]? {
        self.bodies(streams: [stream]).map { $0[stream] ?? [] }
    }

    /// Reads until the end of some streams; returns the bytes of each, or nil if one was reset or the connection ended.
    func bodies(streams: Set<Int>) -> [Int: [UInt8]]? {
        var bodies: [Int: [UInt8]] = [:]
        var open = streams
        while !open.isEmpty {
            guard let frame = self.nextFrame() else { return nil }
            guard open.contains(frame.stream) else { continue }
            if frame.type == .reset { return nil }
            if frame.type == .data { bodies[frame.stream, default: []] += frame.payload }
            if frame.flags.contains(.endStream) { open.remove(frame.stream) }
        }
        return bodies
    }

    /// Reads until the connection has ended; returns false if it has not within the time limit for a byte.
    func hasEnded() -> Bool {
        while self.receive() {}
        return self.isEndSeen
    }

    /// Ends the connection like a process that dies with unread bytes.
    func reset() {
        var nobody = sockaddr()
        nobody.sa_family = sa_family_t(AF_UNSPEC)
        unsafe connect(self.descriptor, &nobody, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Takes everything that has arrived, without waiting.
    ///
    /// - Returns: the number of bytes, and whether the end followed them.
    func takeAll() -> (count: Int, hasEnded: Bool) {
        defer { self.received = [] }
        var count = self.received.count
        var room = [UInt8](repeating: 0, count: 65_536)
        while true {
            let more = unsafe recv(self.descriptor, &room, room.count, Int32(MSG_DONTWAIT))
            guard more > 0 else { return (count, more == 0 || errno != EAGAIN) }
            count += more
        }
    }

    /// True if unread bytes, or the end, have arrived.
    var hasNews: Bool {
        var byte: UInt8 = 0
        let count = unsafe recv(self.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return !self.received.isEmpty || count >= 0
    }

    /// Returns the complete frames in `bytes`.
    static func frames(in bytes: [UInt8]) -> [Frame] {
        var rest = bytes
        var frames: [Frame] = []
        while let frame = Self.takeFrame(from: &rest) { frames.append(frame) }
        return frames
    }

    private static func takeFrame(from bytes: inout [UInt8]) -> Frame? {
        guard bytes.count >= 9 else { return nil }
        let end = 9 + Self.number(bytes[0..<3])
        guard bytes.count >= end else { return nil }
        defer { bytes.removeFirst(end) }
        return Frame(
            type: FrameType(rawValue: bytes[3]) ?? .unknown,
            flags: FrameFlags(rawValue: bytes[4]),
            stream: Self.number(bytes[5..<9]),
            payload: Array(bytes[9..<end])
        )
    }

    /// Reads until `text` has arrived; later bytes remain unread.
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

/// The events that handlers report to a test, in order.
final class EventLog: Sendable {
    private let stream: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() {
        (self.stream, self.continuation) = AsyncStream.makeStream()
    }

    func append(_ event: String) { self.continuation.yield(event) }

    /// Waits for the first event that is `wanted`, among those that no test has waited for yet.
    func wait(for wanted: String) async {
        for await event in self.stream where event == wanted { return }
    }
}

/// Answers by path, so that a test controls the server.
final class ScriptedHandler: RequestHandler {
    private unowned let loop: EventLoop
    private let log: EventLog
    private let response = Response()
    private var waiting: [StreamID] = []
    private var certificates: [ConnectionID: ClientCertificate] = [:]

    init(_ loop: EventLoop, _ log: EventLog) {
        self.loop = loop
        self.log = log
    }

    /// A certificate with this name makes the server end its connection before the first request.
    static let unwanted = "CN=unwanted"

    func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID) {
        self.certificates[connection] = certificate
        self.log.append("certificate \(certificate.subject)")
        guard certificate.subject == Self.unwanted else { return }
        self.loop.goAway(connection, debugData: ByteView("{\"reason\":\"BadCertificate\"}"))
    }

    func bodyBytesMax(for request: Request) -> Int { 4096 }

    func requestReceived(_ request: Request) {
        self.response.begin(status: 200)
        if request.path == "/echo" {
            self.loop.respond(request.stream, self.response, body: request.body)
        } else if request.path == "/big" {
            _ = [UInt8](repeating: 0x61, count: 300_000).withByteView {
                self.loop.respond(request.stream, self.response, body: $0)
            }
        } else if request.path == "/wait" {
            self.waiting.append(request.stream)
            self.log.append("waiting \(request.stream.number)")
        } else if request.path == "/release" {
            for stream in self.waiting { self.loop.respond(stream, self.response, body: ByteView("released")) }
            self.waiting = []
            self.loop.respond(request.stream, self.response)
        } else if request.path == "/stream" {
            self.loop.setPing(request.stream.connection, everySeconds: 1)
            #expect(self.loop.beginStreaming(request.stream, self.response))
            #expect(self.loop.write(request.stream, ByteView("first\n")) == 6)
            self.log.append("streaming \(request.stream.number)")
        } else if request.path == "/fill" {
            #expect(self.loop.beginStreaming(request.stream, self.response))
            let waiting = [UInt8](repeating: 0x61, count: 20_000).withByteView {
                self.loop.write(request.stream, $0)
            }
            #expect(waiting == 20_000)
            self.log.append("filled \(request.stream.number)")
        } else if request.path == "/certificate" {
            let subject = self.certificates[request.stream.connection]?.subject ?? "none"
            _ = subject.withByteView { self.loop.respond(request.stream, self.response, body: $0) }
        } else {
            self.response.begin(status: 404)
            self.loop.respond(request.stream, self.response, body: ByteView("no such path"))
        }
    }

    func streamClosed(_ stream: StreamID) { self.log.append("closed \(stream.number)") }
    func connectionClosed(_ connection: ConnectionID) {
        self.certificates[connection] = nil
        self.log.append("connection closed")
    }
}

/// A server with one cleartext listener on a free port, stopped at the end of its test.
final class TestServer {
    let server: HTTPServer
    let log: EventLog

    var address: String { self.server.boundAddresses[0] }

    init(
        _ limits: TransportLimits = TransportLimits(),
        addresses: [String] = ["127.0.0.1:0"],
        tls: TLSContext? = nil,
        reserved: Int = 0,
        loopCount: Int = 1
    ) throws {
        let log = EventLog()
        self.log = log
        self.server = try HTTPServer(
            listeners: try addresses.enumerated().map { index, address in
                // The second listener is that of operators.
                Listener(address: try .parse(address), tls: tls, connectionsReserved: index == 1 ? reserved : 0)
            },
            limits: limits,
            loopCount: loopCount
        ) { ScriptedHandler($0, log) }
        try self.server.start()
    }

    deinit { self.server.stop() }

    /// Returns a peer that has begun HTTP/2.
    func peer(settings: [UInt8] = []) throws -> ScriptedPeer {
        let peer = try ScriptedPeer(self.address)
        peer.beginHTTP2(settings: settings)
        return peer
    }

    /// Returns the number of times that a limit was reached, on all loops.
    func times(_ limit: TransportLimit) -> Int { self.server.tallies.reduce(0) { $0 + $1.times(limit) } }

    /// Serves a peer repeatedly until a limit was reached this often; returns false if that takes more than a minute.
    func isMet(_ limit: TransportLimit, times: Int = 1, while served: ScriptedPeer) -> Bool {
        let deadline = ContinuousClock.now + .seconds(60)
        var stream = 101
        while self.times(limit) < times {
            guard ContinuousClock.now < deadline else { return false }
            served.send(ScriptedPeer.request("/echo", stream: stream))
            guard served.body(stream: stream) == [] else { return false }
            stream += 2
        }
        return true
    }

    /// Checks that another connection is served normally.
    func expectServed(_ location: SourceLocation = #_sourceLocation) throws {
        Self.expectServed(try self.peer(), location)
    }

    /// Checks that a peer that has sent no request is served.
    ///
    /// - `begins`: true if the peer must begin HTTP/2.
    static func expectServed(
        _ peer: ScriptedPeer,
        begins: Bool = false,
        _ location: SourceLocation = #_sourceLocation
    ) {
        if begins { peer.beginHTTP2() }
        peer.send(ScriptedPeer.request("/echo", stream: 1, ended: false))
        peer.send(ScriptedPeer.frame(.data, flags: .endStream, stream: 1, [UInt8]("alive".utf8)))
        #expect(peer.body(stream: 1) == [UInt8]("alive".utf8), sourceLocation: location)
    }
}
