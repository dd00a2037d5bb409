import DeviceEngine
import Glibc

/// What a journal has lost of what was committed to it.
package struct JournalLoss: Hashable, Sendable {
    /// What is wrong, as a clause.
    package let fault: String
    /// How many rows and commits are missing; nil when nothing tells.
    package private(set) var rows: Int64?
    package private(set) var commits: Int64?
    /// When the newest commit that is there was made, and the newest that is missing, in milliseconds since 1970; nil
    /// when nothing tells.
    package private(set) var since: Int64?
    package private(set) var until: Int64?

    init(_ fault: String) {
        self.fault = fault
    }

    /// - Parameter newest: what is there; nil for nothing.
    init(_ fault: String, mark: JournalMark, newest: JournalPosition?) {
        self.fault = fault
        self.rows = mark.row - (newest?.row ?? 0)
        self.commits = max(0, mark.commits - (newest?.stamp.commits ?? 0))
        self.since = newest?.stamp.time
        self.until = mark.time > 0 ? mark.time : nil
    }

    /// What is wrong and how much is missing, as a clause.
    package var summary: String {
        guard let rows, let commits else { return self.fault }
        var text = "\(self.fault): \(rows) rows of \(commits) commits are missing"
        if let since { text += ", all since \(Self.date(since))" }
        if let until { text += "\(self.since == nil ? ", the newest" : " until") of \(Self.date(until))" }
        return text
    }

    func refusal(_ path: String) -> StoreError {
        StoreError(
            message: "\(path) is damaged: \(self.summary). Nothing was changed. Start from a backup (`wakegate backup` "
                + "makes them), put back what is missing, or start once with `wakegate serve --accept-loss` to go on "
                + "with what is there."
        )
    }

    /// A moment in UTC, as RFC 3339 writes it.
    private static func date(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1000)
        var parts = unsafe tm()
        guard unsafe gmtime_r(&seconds, &parts) != nil else { return "\(milliseconds)" }
        func digits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = unsafe [digits(parts.tm_year + 1900), digits(parts.tm_mon + 1), digits(parts.tm_mday)]
        let time = unsafe [digits(parts.tm_hour), digits(parts.tm_min), digits(parts.tm_sec)]
        return day.joined(separator: "-") + "T" + time.joined(separator: ":") + "Z"
    }
}
