import DeviceEngine
import Glibc

/// Finds out, before SQLite opens the files of a journal, why it could not write them: it opens what it may not write
/// for reading, and the failures that come of it later name no cause.
///
/// Nothing may have the files open: closing one lets go of the locks that this process has on it.
enum JournalAccess {
    /// - Throws: `StoreError` that names the file that is no ordinary one, or cannot be written, and why.
    static func check(_ place: JournalPlace) throws(StoreError) {
        try self.checkKinds(place)
        for path in self.paths(place) { try self.checkFile(path) }
    }

    /// - Throws: `StoreError` that names the file that is no ordinary one: a pipe would keep whoever opens it waiting.
    static func checkKinds(_ place: JournalPlace) throws(StoreError) {
        for path in self.paths(place) {
            var status = stat()
            guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG else { continue }
            throw StoreError(message: "\(path) is no ordinary file. Move it away, or name another state folder.")
        }
    }

    private static func paths(_ place: JournalPlace) -> [String] {
        [place.path, place.logPath, place.path + "-shm", place.markPath]
    }

    private static func checkFile(_ path: String) throws(StoreError) {
        guard unsafe access(path, F_OK) == 0 else { return }
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        if descriptor >= 0 {
            close(descriptor)
            return
        }
        let error = errno
        let cause = unsafe String(cString: strerror(error))
        let remedy =
            switch error {
            case EROFS: "Mount the file system it lies on for writing"
            case EPERM: "Take away its attribute (`lsattr` shows it; `chattr -i` or `chattr -a` removes it)"
            case EMFILE, ENFILE: "Raise the limit of open files (`ulimit -n`, LimitNOFILE=)"
            default: "Make the file writable for the user that runs WakeGate"
            }
        throw StoreError(message: "\(path) cannot be written (\(cause)). \(remedy), or name another state folder.")
    }
}
