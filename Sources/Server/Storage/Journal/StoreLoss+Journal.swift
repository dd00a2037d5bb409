package import Engine
import Platform

extension StoreLoss {
    /// What a journal has lost of which nothing tells how much it is.
    init(_ place: JournalPlace, _ fault: String) {
        self.init(file: place.path, fault: fault)
    }

    /// What a journal lacks of what its mark knows.
    ///
    /// - Parameter newest: what is there; nil for nothing.
    init(_ place: JournalPlace, _ fault: String, mark: JournalMark, newest: JournalPosition?) {
        self.init(
            file: place.path,
            fault: fault,
            rows: mark.row - (newest?.row ?? 0),
            commits: max(0, mark.commits - (newest?.stamp.commits ?? 0)),
            since: newest?.stamp.time,
            until: mark.time > 0 ? mark.time : nil
        )
    }

    var refusal: StoreError {
        StoreError(
            message: "\(self.file) is damaged: \(self.summary). Nothing was changed. Start from a backup (`wakegate "
                + "backup` makes them), put back what is missing, or start once with --accept-loss to go on with what "
                + "is there."
        )
    }

    /// What is wrong and how much is missing, as a clause about the file.
    package var summary: String {
        guard let rows, let commits else { return self.fault }
        var text = "\(self.fault): \(rows) rows of \(commits) commits are missing"
        if let since { text += ", all since \(Self.date(since))" }
        if let until { text += "\(self.since == nil ? ", the newest of" : " until") \(Self.date(until))" }
        return text
    }

    /// A moment in UTC, as RFC 3339 writes it.
    private static func date(_ milliseconds: Int64) -> String {
        // Four digits have no other year.
        guard (0..<253_402_300_800_000).contains(milliseconds) else { return "\(milliseconds)" }
        return WallTime.text(milliseconds)
    }
}
