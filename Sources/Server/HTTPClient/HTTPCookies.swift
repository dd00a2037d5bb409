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
