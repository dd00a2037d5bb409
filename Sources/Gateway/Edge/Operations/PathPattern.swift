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

    /// Where the parameter stands in a path, nowhere for a pattern without one; nil when the path is another.
    package func match(_ path: ByteView) -> Range<Int>? {
        var parameter = 0..<0
        var start = 0
        for segment in self.segments {
            guard start < path.count, path[start] == UInt8(ascii: "/") else { return nil }
            let rest = path.dropFirst(start + 1)
            let found = rest[0..<(rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.count)]
            let place = start + 1..<start + 1 + found.count
            if let segment {
                guard segment.withByteView({ $0 == found }) else { return nil }
            } else {
                parameter = place
            }
            start = place.upperBound
        }
        return start == path.count ? parameter : nil
    }
}
