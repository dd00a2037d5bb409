import APNSProtocol
import Bytes
import Text

/// The small JSON bodies of the worker and admin API.
enum RequestBody {
    /// The most bytes such a body may have.
    static let bytesMax = 4096

    /// A body that must be a JSON object.
    ///
    /// - Parameter reason: the code to answer with when it is none.
    /// - Throws: `APIError` with that reason.
    static func object(_ body: ByteView, reason: String) throws(APIError) -> JSONValue {
        switch JSONGate.judge(body) {
        case .notJSON, .notAnObject:
            throw APIError(400, reason, "The body is not a JSON object (RFC 8259); send one, as {\"key\": \"value\"}.")
        case .wakes, .doesNotWake: break
        }
        guard let value = try? JSONReader.read(body.string), case .object = value else {
            throw APIError(400, reason, "The body is a JSON object that cannot be read; send simpler values.")
        }
        return value
    }
}
