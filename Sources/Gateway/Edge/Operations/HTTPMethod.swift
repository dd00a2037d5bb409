package import Bytes

/// The methods that operations have, in the order in which answers name those that a path takes.
package enum HTTPMethod: CaseIterable, Hashable, Sendable {
    case get, put, post, patch, delete

    package var name: StaticString {
        switch self {
        case .get: "GET"
        case .put: "PUT"
        case .post: "POST"
        case .patch: "PATCH"
        case .delete: "DELETE"
        }
    }

    package static func == (method: HTTPMethod, name: ByteView) -> Bool { name == method.name }
}
