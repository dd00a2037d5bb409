import Glibc
internal import Wire

/// A request in progress, with the part of its answer that has arrived.
///
/// The type is a class, because libcurl's callbacks get its address.
@safe
final class HTTPTransfer {
    let id: HTTPRequestID
    let isStreaming: Bool
    let bodyBytesMax: Int
    var response = HTTPResponse(status: 0)
    /// The bytes of a streaming answer that have not been delivered.
    var unread: [UInt8] = []
    var isHeadComplete = false
    var isHeadReported = false
    var isTooLarge = false
    var isHeadTooLarge = false
    private var headBytes = 0
    /// The number of bytes of the body that have arrived and were accepted.
    private var bodyBytes: Int64 = 0
    /// True if a connection was ready. The request may have been sent.
    var hasBegun = false
    /// True if the request was cancelled. No more of it is sent.
    var isCancelled = false
    /// The local port of the connection, which identifies the connection; nil before there is one.
    var localPort: Int32?
    /// The address to which a connection was refused because the settings do not allow it.
    var refusedAddress: IPAddress?
    let heedsTLSEnd: Bool
    /// True if the request has a body.
    let sendsBody: Bool
    /// libcurl's handle, for queries about the connection; nil if no queries are needed or the handle was released.
    var handle: UnsafeMutableRawPointer?
    /// The address of the TLS connection, used only for comparisons, because the connection may have been freed.
    var tlsConnection: UnsafeRawPointer?
    let reach: AddressReach
    let peerSilenceMillisecondsMax: UInt32
    /// libcurl's zero-terminated error message.
    let words: UnsafeMutablePointer<CChar>
    private static let wordsBytesMax = 256
    private let unreported: UnreportedTransfers
    fileprivate var isUnreported = false

    /// The maximum number of fields in a head. libcurl limits the length of each field.
    static let headersMax = 256

    private let sink: (any HTTPBodySink)?
    let file: HTTPFileBody?
    /// The offset of the next byte of `file` to send.
    private var fileOffset: Int64 = 0
    /// The bytes of `file` at `fileOffset`; nil if they were not supplied yet.
    private var supplied: ArraySlice<UInt8>?
    /// True if the bytes of `file` at `fileOffset` were requested.
    private var isSupplyRequested = false

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

    /// True if the head of the final answer has arrived and was not refused.
    var hasFinalHead: Bool { self.isHeadComplete && !self.isHeadTooLarge }

    /// True if the complete answer has arrived, according to its head.
    var isWhole: Bool { self.hasFinalHead && self.response.isWhole(self.bodyBytes) }

    /// True if libcurl has refused a head above its limit (128 KiB). libnghttp2 then ends the connection.
    var hasRefusedHead: Bool {
        unsafe String(cString: self.words).contains("mem_recv() returned -902")
    }

    /// Returns true if a connection to this address is allowed. Otherwise records the address.
    func admits(_ address: IPAddress?) -> Bool {
        guard self.reach != .anywhere else { return true }
        guard let address else { return false }
        if self.reach.admits(address.scope) { return true }
        self.refusedAddress = address
        return false
    }

    /// Handles one whole line of the head, including its line ending.
    ///
    /// - Returns: false if the head exceeds its limit. The transfer then ends.
    func headerReceived(_ bytes: UnsafeRawBufferPointer) -> Bool {
        self.headBytes += bytes.count
        guard self.headBytes <= HTTPResponse.headBytesMax else {
            self.isHeadTooLarge = true
            return false
        }
        self.headerReceived(unsafe String(decoding: bytes, as: UTF8.self))
        // Ignore trailers, which look like another head.
        guard let sink = self.sink, self.isHeadComplete, !self.isHeadReported else { return true }
        self.isHeadReported = true
        return sink.headReceived(self.response)
    }

    private func headerReceived(_ line: String) {
        let line = line.hasSuffix("\r\n") ? line.dropLast() : line.hasSuffix("\n") ? line.dropLast() : Substring(line)
        if line.hasPrefix("HTTP/") {
            // This begins a new head. The previous head was informational (100, 103).
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

    /// Handles bytes of the body.
    ///
    /// - Returns: false if the body exceeds its limit. The transfer then ends.
    func bodyReceived(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let sink = self.sink {
            guard unsafe sink.bodyReceived(ByteView(bytes)) else { return false }
        } else if self.isStreaming {
            unsafe self.unread.append(contentsOf: bytes)
            self.unreported.insert(self)
        } else {
            guard bytes.count <= self.bodyBytesMax - self.response.body.count else {
                self.isTooLarge = true
                return false
            }
            unsafe self.response.body.append(contentsOf: bytes)
        }
        self.bodyBytes += Int64(bytes.count)
        return true
    }

    /// Fills `room` with the next bytes of the file.
    ///
    /// - Returns: the number of bytes; 0 at the end; `readPause` if the bytes were not supplied yet; `readAbort` if
    ///   there are none.
    func fileRead(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let file = self.file, !self.isCancelled else { return readAbort }
        let wanted = min(room.count, Int(clamping: file.byteCount - self.fileOffset))
        guard wanted > 0 else { return 0 }
        guard let supplied = self.supplied else {
            if !self.isSupplyRequested { file.onNeed(self.fileOffset) }
            self.isSupplyRequested = true
            return readPause
        }
        let bytes = supplied.prefix(wanted)
        guard !bytes.isEmpty else { return readAbort }
        unsafe room.copyBytes(from: bytes)
        self.seek(to: self.fileOffset + Int64(bytes.count))
        if bytes.count < supplied.count { self.supplied = supplied.dropFirst(bytes.count) }
        file.onProgress(self.fileOffset)
        return bytes.count
    }

    /// Continues to send the file at an offset.
    func seek(to offset: Int64) {
        self.fileOffset = offset
        self.supplied = nil
        self.isSupplyRequested = false
    }

    /// Stores bytes of the file; none if the file ends at `offset` or cannot be read.
    ///
    /// - Returns: false if other bytes are sent next, as after a call of `seek`.
    func supply(_ bytes: [UInt8], at offset: Int64) -> Bool {
        guard offset == self.fileOffset else { return false }
        self.supplied = bytes[...]
        return true
    }

    /// Removes and returns the pending events of a streaming request.
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

/// The transfers with pending events. Because of this list, a turn need not examine thousands of silent transfers.
final class UnreportedTransfers {
    private var transfers: [HTTPTransfer] = []

    func insert(_ transfer: HTTPTransfer) {
        guard !transfer.isUnreported else { return }
        transfer.isUnreported = true
        self.transfers.append(transfer)
    }

    /// Removes and returns all transfers, in order.
    func take() -> [HTTPTransfer] {
        defer { self.transfers.removeAll(keepingCapacity: true) }
        for transfer in self.transfers { transfer.isUnreported = false }
        return self.transfers
    }
}

/// CURL_READFUNC_ABORT and CURL_READFUNC_PAUSE
private let (readAbort, readPause) = (0x1000_0000, 0x1000_0001)

/// Passes received bytes to the transfer in `context`, which `HTTPClient.start` registered.
///
/// - Returns: the number of accepted bytes. If it is less than `count`, libcurl ends the transfer.
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

/// Fills libcurl's buffer with the next bytes of the transfer in `context`, which `HTTPClient.start` registered.
func sendBody(
    _ room: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let room = unsafe room, let context = unsafe context else { return readAbort }
    let transfer = unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    let buffer = unsafe UnsafeMutableRawBufferPointer(start: room, count: size * count)
    return unsafe transfer.fileRead(into: buffer)
}

func seekBody(_ context: UnsafeMutableRawPointer?, _ offset: Int, _ origin: Int32) -> Int32 {
    guard let context = unsafe context, origin == SEEK_SET else {
        // CURL_SEEKFUNC_CANTSEEK
        return 2
    }
    unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue().seek(to: Int64(offset))
    return 0
}

/// Cookies in memory, shared by several requests (RFC 6265).
///
/// `@unchecked Sendable`: all requests that share the cookies belong to one client, and therefore to one thread.
@safe
package final class HTTPCookies: @unchecked Sendable {
    /// libcurl's handle. It must outlive the requests that use it.
    let share: UnsafeMutableRawPointer

    /// - Returns: nil if memory is exhausted.
    package init?() {
        guard let share = unsafe Self.makeShare() else { return nil }
        unsafe self.share = share
    }

    deinit { unsafe Self.end(self.share) }

    /// Returns true if the field `name` contains the cookies of a request.
    static func isField(_ name: String) -> Bool { name.lowercased() == "cookie" }

    /// Returns the cookies in a request's own headers, as the value of one field; empty if there are none.
    static func own(in headers: [(name: String, value: String)]) -> String {
        headers.filter { self.isField($0.name) }.map(\.value).joined(separator: "; ")
    }
}
