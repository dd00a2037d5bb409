import Engine
import Glibc
import Platform

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

    /// - Throws: `StoreError` that names the file that is no ordinary one: a pipe would keep whoever opens it waiting;
    ///   or the one that lies where no start looks for it.
    static func checkKinds(_ place: JournalPlace) throws(StoreError) {
        for path in self.paths(place) + [place.rollbackPath] {
            guard let status = try? FileSystem.linkStatus(path), status.kind != .file else { continue }
            if status.kind == .link {
                throw StoreError(
                    message: "\(path) is a symbolic link, which only \(place.name) itself may be. Put back the file "
                        + "in its place."
                )
            }
            throw StoreError(message: "\(path) is no ordinary file. Move it away, or name another state folder.")
        }
        guard place.name != place.path else { return }
        for end in ["-wal", "-mark"] { try self.checkStray(place.name + end, place.path + end, place) }
    }

    /// - Throws: when the log or the mark lies beside a link, and not beside the file that it leads to.
    private static func checkStray(_ path: String, _ target: String, _ place: JournalPlace) throws(StoreError) {
        guard (try? FileSystem.linkStatus(path)) != nil else { return }
        let (status, other) = (try? FileSystem.status(path), try? FileSystem.status(target))
        guard status == nil || status?.identity != other?.identity else { return }
        throw StoreError(
            message: "\(path) lies beside a symbolic link, and is looked for beside the file it leads to, as "
                + "\(target). Put it back there if it belongs to that file, or move it away."
        )
    }

    private static func paths(_ place: JournalPlace) -> [String] {
        [place.path, place.logPath, place.path + "-shm", place.markPath]
    }

    private static func checkFile(_ path: String) throws(StoreError) {
        guard FileSystem.exists(path) else { return }
        do throws(SystemError) {
            _ = try OpenFile(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        } catch {
            let remedy =
                switch error.number {
                case EROFS: "Mount the file system it lies on for writing"
                case EPERM: "Take away its attribute (`lsattr` shows it; `chattr -i` or `chattr -a` removes it)"
                case EMFILE, ENFILE: "Raise the limit of open files (`ulimit -n`, LimitNOFILE=)"
                default: "Make the file writable for the user that runs WakeGate"
                }
            throw StoreError(
                message: "\(path) cannot be written (\(error.message)). \(remedy), or name another state folder."
            )
        }
    }
}
