import Glibc
import Synchronization
internal import Wire

/// One request under way: what has come of its answer so far.
///
/// A class, because libcurl's callbacks find it by its address.
@safe
final class HTTPTransfer {
    let id: HTTPRequestID
    let isStreaming: Bool
    let bodyBytesMax: Int
    var response = HTTPResponse(status: 0)
    /// Bytes of a streaming answer that were not handed over yet.
    var unread: [UInt8] = []
    var isHeadComplete = false
    var isHeadReported = false
    var isTooLarge = false
    var isHeadTooLarge = false
    private var headBytes = 0
    /// Bytes of the answer's body that were received and taken.
    private var bodyBytes: Int64 = 0
    /// Whether a connection was ready, so that the request may have left.
    var hasBegun = false
    /// Nobody waits for it any more: a request that has not left does not leave.
    var isCancelled = false
    /// The port of this end of its connection, which tells connections apart; nil before it has one.
    var localPort: Int32?
    /// An address that was not connected to, because the settings do not reach it.
    var refusedAddress: IPAddress?
    let heedsTLSEnd: Bool
    /// True if the request has a body.
    let sendsBody: Bool
    /// libcurl's handle, where its connection is asked for, for as long as there is one.
    var handle: UnsafeMutableRawPointer?
    /// The connection over TLS that the transfer uses, which may be no more; told apart by its address alone.
    var tlsConnection: UnsafeRawPointer?
    let reach: AddressReach
    let peerSilenceMillisecondsMax: UInt32
    /// What libcurl says of a failure, ended by a zero.
    let words: UnsafeMutablePointer<CChar>
    private static let wordsBytesMax = 256
    private let unreported: UnreportedTransfers
    fileprivate var isUnreported = false

    /// A head holds at most this many fields; libcurl bounds the length of each.
    static let headersMax = 256

    private let sink: (any HTTPBodySink)?
    let file: HTTPFileBody?
    /// The byte of `file` that is sent next.
    var fileOffset: Int64 = 0

    init(id: HTTPRequestID, request: HTTPRequest, settings: HTTPClientSettings, unreported: UnreportedTransfers) {
        self.id = id
        self.isStreaming = request.isStreaming
        self.sink = request.sink
        self.file = request.file
        self.bodyBytesMax = settings.bodyBytesMax
        self.heedsTLSEnd = settings.heedsTLSEnd && request.url.hasPrefix("https:")
        self.sendsBody = request.body != nil || request.file != nil
        self.reach = settings.reach
        self.peerSilenceMillisecondsMax = UInt32(clamping: settings.peerSilenceMillisecondsMax ?? 0)
        self.unreported = unreported
        unsafe self.words = .allocate(capacity: Self.wordsBytesMax)
        unsafe self.words.initialize(repeating: 0, count: Self.wordsBytesMax)
    }

    deinit {
        unsafe self.words.deallocate()
    }

    /// True if the head of the final answer has come, and was not refused.
    var hasFinalHead: Bool { self.isHeadComplete && !self.isHeadTooLarge }

    /// True if the whole answer has come, by the word of its head.
    var isWhole: Bool { self.hasFinalHead && self.response.isWhole(self.bodyBytes) }

    /// Whether libcurl has refused to libnghttp2 a head that is longer than it takes (128 KiB), which ends the
    /// connection.
    var hasRefusedHead: Bool {
        unsafe String(cString: self.words).contains("mem_recv() returned -902")
    }

    /// Whether a connection to this address may be made; of one that may not the address is kept.
    func admits(_ address: IPAddress?) -> Bool {
        guard self.reach != .anywhere else { return true }
        guard let address else { return false }
        if self.reach.admits(address.scope) { return true }
        self.refusedAddress = address
        return false
    }

    /// A whole line of the head has come, its line ending included.
    ///
    /// - Returns: false when the head is longer than it may be, to end the transfer.
    func headerReceived(_ bytes: UnsafeRawBufferPointer) -> Bool {
        self.headBytes += bytes.count
        guard self.headBytes <= HTTPResponse.headBytesMax else {
            self.isHeadTooLarge = true
            return false
        }
        self.headerReceived(unsafe String(decoding: bytes, as: UTF8.self))
        // What a body ends with looks like another head.
        guard let sink = self.sink, self.isHeadComplete, !self.isHeadReported else { return true }
        self.isHeadReported = true
        return sink.headReceived(self.response)
    }

    private func headerReceived(_ line: String) {
        let line = line.hasSuffix("\r\n") ? line.dropLast() : line.hasSuffix("\n") ? line.dropLast() : Substring(line)
        if line.hasPrefix("HTTP/") {
            // A new head: the one before was informational (100, 103).
            let status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) }
            self.response = HTTPResponse(status: status ?? 0)
            self.isHeadComplete = false
        } else if line.isEmpty {
            self.isHeadComplete = self.response.status >= 200
            if self.isStreaming, self.sink == nil { self.unreported.insert(self) }
        } else if let colon = line.dropFirst().firstIndex(of: ":"), self.response.headers.count < Self.headersMax {
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            self.response.headers.append((line[..<colon].lowercased(), String(value)))
        }
    }

    /// Bytes of the body have come.
    ///
    /// - Returns: false when the body is longer than it may be, to end the transfer.
    func bodyReceived(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let sink = self.sink {
            guard unsafe sink.bodyReceived(ByteView(bytes)) else { return false }
            self.bodyBytes += Int64(bytes.count)
            return true
        }
        if self.isStreaming {
            self.bodyBytes += Int64(bytes.count)
            unsafe self.unread.append(contentsOf: bytes)
            self.unreported.insert(self)
            return true
        }
        guard bytes.count <= self.bodyBytesMax - self.response.body.count else {
            self.isTooLarge = true
            return false
        }
        unsafe self.response.body.append(contentsOf: bytes)
        self.bodyBytes += Int64(bytes.count)
        return true
    }

    /// Fills `room` with the next bytes of the file.
    ///
    /// - Returns: how many; 0 at the end, and nil when the file is shorter than was announced, or cannot be read.
    func fileRead(into room: UnsafeMutableRawBufferPointer) -> Int? {
        guard let file = self.file, !self.isCancelled else { return nil }
        let wanted = min(room.count, Int(clamping: file.byteCount - self.fileOffset))
        guard wanted > 0 else { return 0 }
        var count = 0
        repeat {
            count = unsafe pread(file.descriptor, room.baseAddress, wanted, off_t(self.fileOffset))
        } while count < 0 && errno == EINTR
        guard count > 0 else {
            file.isCut.store(true, ordering: .relaxed)
            return nil
        }
        self.fileOffset += Int64(count)
        file.onProgress(self.fileOffset)
        return count
    }

    /// What came since the last call, for whoever streams it.
    func takeEvents() -> [HTTPEvent] {
        var events: [HTTPEvent] = []
        if self.isStreaming, self.isHeadComplete, !self.isHeadReported {
            self.isHeadReported = true
            events.append(.head(self.id, self.response))
        }
        if !self.unread.isEmpty {
            events.append(.body(self.id, self.unread))
            self.unread.removeAll()
        }
        return events
    }
}

/// The transfers that have something to report, so that a turn looks at none of the thousands that are silent.
final class UnreportedTransfers {
    private var transfers: [HTTPTransfer] = []

    func insert(_ transfer: HTTPTransfer) {
        guard !transfer.isUnreported else { return }
        transfer.isUnreported = true
        self.transfers.append(transfer)
    }

    /// The transfers that came in since the last call, in their order.
    func take() -> [HTTPTransfer] {
        defer { self.transfers.removeAll(keepingCapacity: true) }
        for transfer in self.transfers { transfer.isUnreported = false }
        return self.transfers
    }
}

/// CURL_READFUNC_ABORT
private let readAbort = 0x1000_0000

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

func receiveHeader(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    unsafe receive(bytes, size * count, context) { transfer, line in
        if let handle = unsafe transfer.handle { unsafe look(at: handle, of: transfer, line) }
        return unsafe transfer.headerReceived(line)
    }
}

func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    unsafe receive(bytes, size * count, context) { transfer, chunk in unsafe transfer.bodyReceived(chunk) }
}

/// Has the transfer that `HTTPClient.start` registered as `context` fill libcurl's room with the next bytes.
func sendBody(
    _ room: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let room = unsafe room, let context = unsafe context else { return readAbort }
    let transfer = unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    let buffer = unsafe UnsafeMutableRawBufferPointer(start: room, count: size * count)
    return unsafe transfer.fileRead(into: buffer) ?? readAbort
}

func seekBody(_ context: UnsafeMutableRawPointer?, _ offset: Int, _ origin: Int32) -> Int32 {
    guard let context = unsafe context, origin == SEEK_SET else {
        // CURL_SEEKFUNC_CANTSEEK
        return 2
    }
    unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue().fileOffset = Int64(offset)
    return 0
}

/// Cookies in memory that several requests share (RFC 6265): the cookies that an answer sets go with later requests to
/// the same domain and path.
///
/// `@unchecked Sendable`: the requests that share the cookies belong to one client, and so to one thread.
@safe
package final class HTTPCookies: @unchecked Sendable {
    /// libcurl's handle, which its requests must not outlive.
    let share: UnsafeMutableRawPointer

    /// - Returns: nil if libcurl has no memory for it.
    package init?() {
        guard let share = unsafe Self.makeShare() else { return nil }
        unsafe self.share = share
    }

    deinit { unsafe Self.end(self.share) }

    /// True if the field `name` carries a request's cookies.
    static func isField(_ name: String) -> Bool { name.lowercased() == "cookie" }

    /// The cookies that a request names itself, as the value of one field; empty if there are none.
    static func own(in headers: [(name: String, value: String)]) -> String {
        headers.filter { self.isField($0.name) }.map(\.value).joined(separator: "; ")
    }
}
