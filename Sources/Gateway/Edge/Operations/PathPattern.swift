package import Bytes

/// The path of an operation, as the document of the interface spells it: `/v1/devices/{token}/pushes`.
///
/// At most two segments are parameters, which take any bytes but a slash, or none.
package struct PathPattern: Hashable, Sendable, ExpressibleByStringLiteral {
    package let text: String
    /// What stands between the slashes; nil for a parameter.
    private let segments: [[UInt8]?]

    package init(stringLiteral text: String) {
        precondition(text.hasPrefix("/"), "a path begins with a slash")
        self.text = text
        self.segments = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { segment in
            segment.hasPrefix("{") ? nil : Array(segment.utf8)
        }
        precondition(self.segments.count { $0 == nil } <= 2, "a path has at most two parameters")
    }

    /// How many slashes a path has that it matches.
    package var depth: Int { self.segments.count }

    package var hasParameter: Bool { self.segments.contains(nil) }

    /// Where the parameters stand in a path; nil when the path is another.
    package func match(_ path: ByteView) -> PathParameters? {
        var parameters = PathParameters()
        var count = 0
        var start = 0
        for segment in self.segments {
            guard start < path.count, path[start] == UInt8(ascii: "/") else { return nil }
            let rest = path.dropFirst(start + 1)
            let found = rest[0..<(rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.count)]
            let place = start + 1..<start + 1 + found.count
            if let segment {
                guard segment.withByteView({ $0 == found }) else { return nil }
            } else {
                if count == 0 { parameters.first = place } else { parameters.second = place }
                count += 1
            }
            start = place.upperBound
        }
        return start == path.count ? parameters : nil
    }
}

/// Where in a path its parameters stand: nowhere for those that its pattern does not have.
package struct PathParameters: Hashable, Sendable {
    package var first = 0..<0
    package var second = 0..<0

    package init() {}
}
