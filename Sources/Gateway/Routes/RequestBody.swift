import APNSProtocol
import Bytes
import Foundation

/// The small JSON bodies of the worker and admin API.
enum RequestBody {
    /// The most bytes such a body may have.
    static let bytesMax = 4096

    /// The members of a body that must be a JSON object.
    ///
    /// - Parameter reason: the code to answer with when it is none.
    /// - Throws: `APIError` with that reason.
    static func object(_ body: ByteView, reason: String) throws(APIError) -> [String: JSONValue] {
        switch JSONGate.judge(body) {
        case .notJSON, .notAnObject:
            throw APIError(400, reason, "The body is not a JSON object (RFC 8259); send one, as {\"key\": \"value\"}.")
        case .wakes, .doesNotWake: break
        }
        guard case .object(let members)? = try? JSONDecoder().decode(JSONValue.self, from: Data(body.array)) else {
            throw APIError(400, reason, "The body is a JSON object that cannot be read; send simpler values.")
        }
        return members
    }
}
