package import Engine
import Platform

extension StoreError {
    /// Describes an SQLite error of the journal at `path`, with a remedy.
    init(journal path: String, _ error: SQLiteError) {
        let cause = error.message
        switch error.kind {
        case .full:
            self.init(
                message: "The disk is full: \(path) cannot grow (\(cause)). Free space there and start WakeGate again."
            )
        case .io where Self.isAtLimit(path), .tooLarge:
            self.init(
                message:
                    "\(path) cannot grow: the process may write files of \(ProcessFigures.fileBytesMax) bytes at most "
                    + "(\(cause)). Raise that limit (`ulimit -f` in a shell, LimitFSIZE= in a unit of systemd) and "
                    + "start WakeGate again."
            )
        case .readOnly:
            self.init(
                message: "\(path) cannot be written (\(cause)). Make the file and its folder writable for the user "
                    + "that runs WakeGate, or name another state folder."
            )
        case .cannotOpen:
            self.init(
                message: "\(path) cannot be opened (\(cause)). Check that its folder exists, and that the user that "
                    + "runs WakeGate may read and write there."
            )
        case .notDatabase:
            self.init(foreign: path)
        case .corrupt, .content:
            self.init(damaged: path, cause)
        case .busy:
            self.init(
                message: "\(path) is locked by another program (\(cause)). End that program and start WakeGate again."
            )
        case .io, .other:
            self.init(
                message: "Reading or writing \(path) failed (\(cause)). Check the disk and the system's log, "
                    + "then start WakeGate again."
            )
        }
    }

    /// Returns true if one more page in the journal's file or its log would exceed the process's file size limit.
    /// SQLite does not report this cause if a commit's write fails.
    private static func isAtLimit(_ path: String) -> Bool {
        let limit = ProcessFigures.fileBytesMax
        return ["", "-wal"].contains { name in
            guard let status = try? FileSystem.status(path + name) else { return false }
            // A page of a journal of an older build and the header of its frame are shorter than three new pages.
            return UInt64(status.size) + 3 * UInt64(JournalFile.pageBytes) > limit
        }
    }

    /// Reports a file of another program.
    init(foreign path: String) {
        self.init(
            message: "\(path) is not a journal of WakeGate. Name another state folder, or move the file away."
        )
    }

    /// - Parameter rollback: the rollback journal of another program, which SQLite would apply to the journal.
    init(stray rollback: String) {
        self.init(
            message: "\(rollback) is not of WakeGate: a program that changed the journal was cut off, or the file "
                + "belongs to another one. Have that program end its work, or move the file away; what is then wrong "
                + "with the journal is found."
        )
    }

    /// Reports a log from another journal than the file and the mark.
    init(foreignLog location: JournalLocation) {
        self.init(
            message:
                "\(location.path) is damaged: its log, \(location.logPath), is of another journal. Put back the one "
                + "that belongs to it, or move that one away and start once with --accept-loss to continue with "
                + "what is in the file."
        )
    }

    /// Reports a backup next to a log or a mark from another journal.
    init(mixed location: JournalLocation) {
        self.init(
            message: "\(location.path) is a backup, and the files next to it are of another journal. Move "
                + "\(location.logPath) and \(location.markPath) away; the backup is whole without them."
        )
    }

    /// - `fault`: the fault as a clause.
    init(damaged path: String, _ fault: String) {
        self.init(
            message: "\(path) is damaged: \(fault). Start from a backup (`wakegate backup` makes them), or move the "
                + "file and the files next to it that begin with its name away, and start once with --accept-loss to "
                + "begin with no state."
        )
    }
}

extension StoreLoss {
    /// Creates a loss of unknown extent.
    init(_ location: JournalLocation, _ fault: String) {
        self.init(file: location.path, fault: fault)
    }

    /// Creates the loss of the commits after the newest existing row, up to the mark.
    ///
    /// - `newest`: the position of the newest existing row; nil if there is none.
    init(_ location: JournalLocation, _ fault: String, mark: JournalMark, newest: JournalPosition?) {
        self.init(
            file: location.path,
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
                + "backup` makes them), put back what is missing, or start once with --accept-loss to continue with "
                + "what is there."
        )
    }

    /// The fault and the extent of the loss, as a clause about the file.
    package var summary: String {
        guard let rows, let commits else { return self.fault }
        var text = "\(self.fault): \(rows) rows of \(commits) commits are missing"
        if let since { text += ", all since \(Self.date(since))" }
        if let until { text += "\(self.since == nil ? ", the newest of" : " until") \(Self.date(until))" }
        return text
    }

    /// Returns a time in UTC in the format of RFC 3339.
    private static func date(_ milliseconds: Int64) -> String {
        // Years outside of this range do not have four digits.
        guard (0..<253_402_300_800_000).contains(milliseconds) else { return "\(milliseconds)" }
        return WallTime.text(milliseconds)
    }
}
