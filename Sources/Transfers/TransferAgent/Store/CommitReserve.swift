import Glibc
import Platform

/// Space that is kept for the agent's own commits: a preallocated file, which is emptied when the disk is full.
///
/// Without it a full disk would be final: a commit would be needed to give up the downloads that fill it.
package final class CommitReserve {
    private let path: String
    private let freeBytes: () -> Int64
    private var isHeld = false

    /// The size of the file: the commits by which 64 running transfers fail take a fifth of it.
    package static let bytes = 4 << 20

    /// - Parameters:
    ///   - path: the file.
    ///   - freeBytes: the free space of its file system; nil for the system's answer.
    package init(path: String, freeBytes: (() -> Int64)? = nil) {
        self.path = path
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        self.freeBytes = freeBytes ?? { (try? FileSystem.freeBytes(at: folder)) ?? 0 }
        self.isHeld = (try? FileSystem.linkStatus(path)).map { $0.kind == .file && $0.size >= Self.bytes } ?? false
    }

    /// Takes the space again if the disk has twice as much.
    func hold() {
        guard !self.isHeld, self.freeBytes() >= 2 * Int64(Self.bytes), let file = self.open() else { return }
        do throws(SystemError) {
            try file.allocate(Self.bytes)
            self.isHeld = true
        } catch {
            try? file.truncate(to: 0)
        }
    }

    /// Gives the space back.
    ///
    /// - Returns: false if there was none.
    func release() -> Bool {
        guard self.isHeld, let file = self.open(), (try? file.truncate(to: 0)) != nil else { return false }
        self.isHeld = false
        return true
    }

    /// Gives the space back to a start that may need it.
    func releaseIfDiskIsFull() {
        if self.freeBytes() < Int64(Self.bytes) { _ = self.release() }
    }

    private func open() -> OpenFile? {
        try? OpenFile(self.path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode: 0o600)
    }
}
