import Access

/// How long a token is good, as `--expires` says it: a whole number and one of d, h, m and s.
package enum TokenLifetime {
    package static let standard = "90d"

    /// In seconds.
    ///
    /// - Throws: `badUsage` when `text` is none, and past ten years.
    package static func seconds(_ text: String) throws(CommandFailure) -> Int64 {
        let units: [Character: Int64] = ["d": 86_400, "h": 3600, "m": 60, "s": 1]
        if let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), count > 0 {
            let (seconds, overflow) = count.multipliedReportingOverflow(by: unit)
            if !overflow, seconds <= BearerToken.lifetimeMax { return seconds }
        }
        throw .usage(
            "--expires is \"\(text)\"; write a whole number and d, h, m or s, such as 90d; at most "
                + "\(BearerToken.lifetimeMax / 86_400)d"
        )
    }
}
