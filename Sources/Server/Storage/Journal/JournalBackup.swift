package import Engine
import Glibc
import Platform

/// Copies a journal while other connections commit to it.
package enum JournalBackup {
    /// Creates `copy`, a separate journal in one file. It has the state that the original had at one instant during the
    /// call.
    ///
    /// The file is named `copy` only when it is complete, verified and durable.
    ///
    /// - Throws: `StoreError` if the backup fails, or if `copy` exists.
    package static func make(of path: String, to copy: String) throws(StoreError) {
        let partial = copy + ".partial"
        guard !FileSystem.exists(copy) else {
            throw StoreError(backupExists: copy)
        }
        let location = try JournalLocation(partial)
        self.remove(location)
        do throws(StoreError) {
            let database = try JournalFile.open(path)
            do throws(SQLiteError) { try database.backUp(to: partial) } catch { throw StoreError(backup: copy, error) }
            // The copy gets a new random journal number, so that a start notices if it is used with the original's log
            // or mark.
            try JournalNote.write(.first(number: 1, try JournalFile.verify(location)), in: location)
            try self.sync(partial, copy)
        } catch {
            self.remove(location)
            throw error
        }
        try JournalFile.syncFolder(of: copy)
    }

    /// Returns the paths of the files of the journal at `path`, except the shared memory of open connections.
    package static func paths(of path: String) -> [String] {
        [path, path + "-wal", JournalMarkFile.path(of: path)]
    }

    private static func remove(_ location: JournalLocation) {
        for path in self.paths(of: location.path) + [location.path + "-shm", location.rollbackPath] {
            try? FileSystem.remove(path)
        }
    }

    private static func sync(_ partial: String, _ copy: String) throws(StoreError) {
        do throws(SystemError) {
            let file = try OpenFile(partial, O_RDWR | O_CLOEXEC)
            try file.sync()
            // Fails if another file was given this name since the check.
            try FileSystem.link(partial, orRenameTo: copy)
            try? FileSystem.remove(partial)
        } catch {
            guard error.number != EEXIST else { throw StoreError(backupExists: copy) }
            throw StoreError(
                message: "The backup \(copy) cannot be written (\(error.message)). Check the disk it lies on."
            )
        }
    }
}

extension StoreError {
    fileprivate init(backupExists copy: String) {
        self.init(message: "\(copy) is there already. Name another file for the backup.")
    }

    fileprivate init(backup copy: String, _ error: SQLiteError) {
        self.init(
            message: "The backup \(copy) cannot be made (\(error.message)). Check that its folder exists, that the "
                + "user that runs WakeGate may write there, and that there is space."
        )
    }
}
