import Glibc
import Platform

/// Moving a finished file to its place.
extension StateFiles {
    /// Why a file was not moved.
    package enum TakeFault: Error, Hashable, Sendable {
        case exists
        case badPath(String)
        case noSpace(String)
        /// The file is not in the folder any more.
        case gone
    }

    /// Moves a file of the folder to `path`: whole, or not at all.
    ///
    /// - Parameters:
    ///   - name: the file's name in the folder.
    ///   - path: where it goes, absolute.
    ///   - replaces: whether a file that is there may be replaced.
    package func take(_ name: String, to path: String, replaces: Bool) throws(TakeFault) {
        let source = self.path(name)
        guard let size = (try? FileSystem.status(source))?.size else { throw .gone }
        guard let parent = Self.parent(of: path) else { throw .badPath("it is no absolute path of a file") }
        guard !self.isOwn(parent) else { throw .badPath("\(parent) is the agent's own folder") }
        do throws(SystemError) {
            if (try? FileSystem.status(path))?.kind == .folder { throw SystemError(EISDIR) }
            // Opened first: a folder whose names cannot be had on the disk takes no file.
            let folder = try OpenFile(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            do throws(SystemError) {
                try Self.move(source, to: path, replaces: replaces)
            } catch {
                guard error.number == EXDEV || error.number == EPERM || error.number == EMLINK else { throw error }
                try self.copy(source, to: path, in: parent, replaces: replaces)
            }
            try Self.sync(folder, with: path, replaces: replaces)
        } catch {
            throw Self.fault(error, path)
        }
        try? FileSystem.remove(source)
        self.used(-size)
    }

    /// Has the file's new name on the disk. When that fails and nothing was replaced, it is as if nothing had been
    /// moved.
    private static func sync(_ folder: borrowing OpenFile, with path: String, replaces: Bool) throws(SystemError) {
        do throws(SystemError) {
            try folder.sync()
        } catch {
            // Some file systems know no sync of a folder.
            guard error.number != EINVAL, !replaces else { return }
            try? FileSystem.remove(path)
            throw error
        }
    }

    /// Whether it is a folder in which the agent keeps what nobody else may put there.
    private func isOwn(_ folder: String) -> Bool {
        guard let identity = (try? FileSystem.status(folder))?.identity else { return false }
        let state = Self.parent(of: self.folder) ?? self.folder
        return [self.folder, state].contains { (try? FileSystem.status($0))?.identity == identity }
    }

    /// Removes what a copy to `path` has left beside it that a crash cut short.
    package func removeLeftover(of name: String, at path: String) {
        guard let parent = Self.parent(of: path) else { return }
        try? FileSystem.remove(Self.leftover(name, in: parent))
    }

    private static func leftover(_ name: some StringProtocol, in parent: String) -> String {
        "\(parent)/.\(name).wakegate"
    }

    /// Whether a move that was begun before a crash came to its end: the file is gone from the folder, or the one at
    /// its place is the same, or has the same content.
    package func wasTaken(_ name: String, to path: String) -> Bool {
        let source = self.path(name)
        guard let here = try? FileSystem.status(source) else { return FileSystem.exists(path) }
        guard let there = try? FileSystem.linkStatus(path), there.kind == .file, there.size == here.size else {
            return false
        }
        return there.identity == here.identity || Self.isEqual(source, path)
    }

    private static func parent(of path: String) -> String? {
        guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0), let slash = path.lastIndex(of: "/")
        else { return nil }
        let name = path[path.index(after: slash)...]
        guard name != ".", name != ".." else { return nil }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func move(_ source: String, to path: String, replaces: Bool) throws(SystemError) {
        if replaces { return try FileSystem.rename(source, to: path) }
        // A link fails where something is, and a rename would take its place.
        try FileSystem.link(source, to: path)
    }

    private static let chunkBytes = 1 << 20
    /// Bytes after which a copy is synced, so that no end of the agent waits for more.
    private static let copiedBytesMax = 64 << 20

    private func copy(
        _ source: String,
        to path: String,
        in parent: String,
        replaces: Bool
    ) throws(SystemError) {
        if !replaces, (try? FileSystem.linkStatus(path)) != nil { throw SystemError(EEXIST) }
        let other = Self.leftover(source.split(separator: "/").last ?? "", in: parent)
        try? FileSystem.remove(other)
        do throws(SystemError) {
            try self.copy(source, to: other)
            try Self.move(other, to: path, replaces: replaces)
        } catch {
            try? FileSystem.remove(other)
            throw error
        }
        try? FileSystem.remove(other)
    }

    private func copy(_ source: String, to path: String) throws(SystemError) {
        let from = try OpenFile(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        let to = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o600)
        var room = [UInt8](repeating: 0, count: Self.chunkBytes)
        var unsynced = 0
        while true {
            try self.checkEnd()
            let count = try Descriptor.read(from.descriptor, into: &room)
            guard count > 0 else { return try to.sync() }
            var written = 0
            while written < count { written += try Descriptor.write(to.descriptor, Array(room[written..<count])) }
            unsynced += count
            guard unsynced >= Self.copiedBytesMax else { continue }
            try to.sync()
            unsynced = 0
        }
    }

    private static func isEqual(_ left: String, _ right: String) -> Bool {
        guard let one = try? OpenFile(left, O_RDONLY | O_CLOEXEC),
            let other = try? OpenFile(right, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        else { return false }
        var rooms = (
            [UInt8](repeating: 0, count: self.chunkBytes), [UInt8](repeating: 0, count: self.chunkBytes)
        )
        while true {
            guard let count = try? Descriptor.read(one.descriptor, into: &rooms.0),
                let same = try? Descriptor.read(other.descriptor, into: &rooms.1), count == same
            else { return false }
            guard count > 0 else { return true }
            guard rooms.0[..<count] == rooms.1[..<count] else { return false }
        }
    }

    private static func fault(_ error: SystemError, _ path: String) -> TakeFault {
        switch error.number {
        case EEXIST: .exists
        case ENOSPC, EDQUOT, EFBIG: .noSpace(error.message)
        default: .badPath("\(path): \(error.reason)")
        }
    }
}
