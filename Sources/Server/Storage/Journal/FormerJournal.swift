import Engine
import Platform

/// The copy of a journal as an older version of WakeGate left it, from the start that takes the journal over to the
/// next one that begins.
///
/// It is one file beside the journal, whole without a log, and the version that wrote the journal starts on it.
package enum FormerJournal {
    /// The path of the copy of the journal at `path`, which was of `format`.
    package static func path(of path: String, format: Int64) -> String { "\(path).format-\(format)" }

    /// Makes the copy durable, of what `reader` sees; one that a start left unfinished that was cut off is made anew.
    ///
    /// - Returns: its path.
    static func keep(_ reader: SQLiteDatabase, _ place: JournalPlace, format: Int64) throws(StoreError) -> String {
        let copy = self.path(of: place.path, format: format)
        if place.vfs == nil { self.remove(copy) }
        do throws(SQLiteError) {
            try reader.backUp(to: copy, vfs: place.vfs)
            // Whether the end of a backup is synced depends on how SQLite was built.
            try SQLiteFile(path: copy, mode: .readWrite, vfs: place.vfs).sync()
        } catch { throw StoreError(former: place, copy, format: format, error) }
        try place.syncFolder()
        return copy
    }

    /// Removes the copies beside a journal that began well in the format of this build.
    static func removeAll(_ place: JournalPlace) {
        guard place.vfs == nil else { return }
        for format in 1..<JournalFile.format { self.remove(self.path(of: place.path, format: format)) }
    }

    private static func remove(_ copy: String) {
        for end in ["", "-journal", "-wal", "-shm"] { try? FileSystem.remove(copy + end) }
    }
}

extension StoreError {
    fileprivate init(former place: JournalPlace, _ copy: String, format: Int64, _ error: SQLiteError) {
        self.init(
            message: "\(place.path) has format \(format), and cannot be copied to \(copy) before it is taken over "
                + "(\(error.message)). Free as much space beside it as it takes, and see to it that the user that runs "
                + "WakeGate may write there. It is as it was."
        )
    }
}
