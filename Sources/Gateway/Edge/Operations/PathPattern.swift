package import Bytes

/// The path of an operation, as the document of the interface spells it: `/v1/devices/{token}/pushes`.
///
/// At most one segment is a parameter, which takes any bytes but a slash, or none.
package struct PathPattern: Hashable, Sendable, ExpressibleByStringLiteral {
    package let text: String
    /// What stands between the slashes; nil for the parameter.
    private let segments: [[UInt8]?]

    package init(stringLiteral text: String) {
        precondition(text.hasPrefix("/"), "a path begins with a slash")
        self.text = text
        self.segments = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { segment in
            segment.hasPrefix("{") ? nil : Array(segment.utf8)
        }
        precondition(self.segments.count { $0 == nil } <= 1, "a path has at most one parameter")
    }

    /// How many slashes a path has that it matches.
    package var depth: Int { self.segments.count }

    package var hasParameter: Bool { self.segments.contains(nil) }

    /// The bytes at the parameter's place, none for a pattern without a parameter; nil when the path is another.
    package func match(_ path: ByteView) -> ByteView? {
        var parameter = ByteView()
        var rest = path
        for segment in self.segments {
            guard !rest.isEmpty, rest[0] == UInt8(ascii: "/") else { return nil }
            rest = rest.dropFirst(1)
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.count
            let found = rest[0..<end]
            rest = rest.dropFirst(end)
            if let segment {
                guard segment.withByteView({ $0 == found }) else { return nil }
            } else {
                parameter = found
            }
        }
        return rest.isEmpty ? parameter : nil
    }
}
