import HTTPTransport
import Testing

/// One rule of RFC 9113 or RFC 7541: what a client sends, and what must come of it.
struct ConformanceCase: CustomTestStringConvertible, Sendable {
    enum Outcome: Sendable {
        /// GOAWAY with one of these codes, then the end of the connection. RFC 9113 §5.4.1 lets an endpoint treat any
        /// error of a stream as one of the connection.
        case connectionError([HTTP2ErrorCode])
        /// RST_STREAM with this code on `stream`, and the connection goes on.
        case streamError(HTTP2ErrorCode)
        /// A response with this status on `stream`, and the connection goes on.
        case answered(Int)
        /// Nothing is said of it, and the connection goes on.
        case ignored
        /// The connection ends, and not for an error.
        case ended
    }

    /// The section, such as `6.5.2`; those of RFC 7541 begin with `HPACK`.
    let section: String
    /// What is sent.
    let name: String
    /// What opens the connection.
    let opening: [UInt8]
    /// What is sent, and answered, before.
    let first: [UInt8]
    let sent: [UInt8]
    /// The stream that the outcome is about.
    let stream: Int
    let outcome: Outcome

    var testDescription: String { "\(self.section) \(self.name)" }

    init(
        _ section: String,
        _ name: String,
        opening: [UInt8] = ScriptedPeer.preface + ScriptedPeer.frame(.settings),
        after first: [UInt8] = [],
        _ sent: [UInt8],
        stream: Int = 1,
        _ outcome: Outcome
    ) {
        self.section = section
        self.name = name
        self.opening = opening
        self.first = first
        self.sent = sent
        self.stream = stream
        self.outcome = outcome
    }

    static let all =
        Self.frames + Self.states + Self.definitions + Self.windows + Self.requests + Self.fields + Self.hpack

    /// Whether the connection ends for an error by what is sent at once.
    var isImmediateConnectionError: Bool {
        guard case .connectionError = self.outcome else { return false }
        return self.first.isEmpty
    }
}

extension ConformanceCase.Outcome {
    static func connectionError(_ code: HTTP2ErrorCode) -> Self { .connectionError([code]) }
}

/// Types of frames (RFC 9113 §6).
enum FrameType: UInt8 {
    case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
    /// A type that no document defines.
    case unknown = 0x42
}

/// Flags of frames (RFC 9113 §6).
enum FrameFlags {
    static let none: UInt8 = 0
    static let ack: UInt8 = 0x1
    static let endStream: UInt8 = 0x1
    static let endHeaders: UInt8 = 0x4
    static let padded: UInt8 = 0x8
    static let priority: UInt8 = 0x20
    static let whole = Self.endStream | Self.endHeaders
}

extension ScriptedPeer {
    static func frame(_ type: FrameType, _ flags: UInt8, stream: Int = 0, _ payload: [UInt8] = []) -> [UInt8] {
        Self.frame(type.rawValue, flags: flags, stream: stream, payload)
    }

    /// A frame without flags.
    static func frame(_ type: FrameType, stream: Int = 0, _ payload: [UInt8] = []) -> [UInt8] {
        Self.frame(type.rawValue, stream: stream, payload)
    }

    static func bytes(_ code: HTTP2ErrorCode) -> [UInt8] { Self.bytes(code.number) }

    /// PING whose bytes are all `mark`.
    static func ping(_ mark: UInt8) -> [UInt8] { Self.frame(.ping, [UInt8](repeating: mark, count: 8)) }

    /// A request on stream 1 that is its field block.
    static func request(block: [UInt8]) -> [UInt8] { Self.frame(.headers, FrameFlags.whole, stream: 1, block) }
}
