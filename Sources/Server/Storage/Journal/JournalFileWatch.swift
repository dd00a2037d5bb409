import Engine
import Platform

/// Sees whether the files of a journal that is open still have their names, and what was written to them.
///
/// A file that was removed or replaced takes everything that is written to it, and a start finds nothing of that.
struct JournalFileWatch {
    private let paths: [String]
    private var known: [String: FileStatus.Identity] = [:]
    /// The most bytes each file was seen to have.
    private var bytes: [String: Int] = [:]

    /// - Parameter place: of a journal whose files have all been made.
    init(_ place: JournalPlace) {
        self.paths = place.vfs == nil ? [place.path, place.logPath, place.markPath] : []
        for path in self.paths {
            guard let (identity, size) = Self.look(path) else { continue }
            self.known[path] = identity
            self.bytes[path] = size
        }
    }

    /// What became of a file; nil when all are as they were. None of them ever becomes shorter by itself.
    mutating func fault() -> StoreError? {
        for path in self.paths {
            guard let (identity, size) = Self.look(path) else { return Self.error(path, "is gone") }
            guard self.known[path, default: identity] == identity else { return Self.error(path, "was replaced") }
            let before = self.bytes[path, default: 0]
            guard size >= before else { return Self.error(path, "was cut off from \(before) to \(size) bytes") }
            self.known[path] = identity
            self.bytes[path] = size
        }
        return nil
    }

    private static func look(_ path: String) -> (FileStatus.Identity, Int)? {
        (try? FileSystem.status(path)).map { ($0.identity, $0.size) }
    }

    private static func error(_ path: String, _ fault: String) -> StoreError {
        StoreError(
            message:
                "\(path) \(fault) while WakeGate runs, and what is written now would be lost. Put it back, or start "
                + "from a backup (`wakegate backup` makes them), then start WakeGate again."
        )
    }
}
