import FoundationEssentials

/// Wall-clock moments for people.
package enum WallTime {
    /// RFC 3339 in UTC, whole seconds: `2026-11-21T07:30:00Z`.
    ///
    /// - Parameter milliseconds: since 1970.
    package static func text(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
    }
}
