/// The error codes of HTTP/2 (RFC 9113 §7), in the order of their numbers.
package enum HTTP2ErrorCode: String, CaseIterable, Sendable {
    case noError = "NO_ERROR"
    case protocolError = "PROTOCOL_ERROR"
    case internalError = "INTERNAL_ERROR"
    case flowControlError = "FLOW_CONTROL_ERROR"
    case settingsTimeout = "SETTINGS_TIMEOUT"
    case streamClosed = "STREAM_CLOSED"
    case frameSizeError = "FRAME_SIZE_ERROR"
    case refusedStream = "REFUSED_STREAM"
    case cancel = "CANCEL"
    case compressionError = "COMPRESSION_ERROR"
    case connectError = "CONNECT_ERROR"
    case enhanceYourCalm = "ENHANCE_YOUR_CALM"
    case inadequateSecurity = "INADEQUATE_SECURITY"
    case http11Required = "HTTP_1_1_REQUIRED"

    /// The code on the wire.
    package var number: UInt32 {
        switch self {
        case .noError: 0
        case .protocolError: 1
        case .internalError: 2
        case .flowControlError: 3
        case .settingsTimeout: 4
        case .streamClosed: 5
        case .frameSizeError: 6
        case .refusedStream: 7
        case .cancel: 8
        case .compressionError: 9
        case .connectError: 10
        case .enhanceYourCalm: 11
        case .inadequateSecurity: 12
        case .http11Required: 13
        }
    }
}
