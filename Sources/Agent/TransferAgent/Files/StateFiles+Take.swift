import Glibc
import Platform

/// Moving a finished file to its place.
extension StateFiles {
    /// Why a file was not moved.
    package enum TakeFault: Error, Hashable, Sendable {
        case exists
        case badPath(String)
        case noSpace(String)
    }

    /// Moves a file of the folder to `path`: whole, or not at all.
    ///
    /// - Parameters:
    ///   - name: the file's name in the folder.
    ///   - path: where it goes, absolute.
    ///   - replaces: whether a file that is there may be replaced.
    package func take(_ name: String, to path: String, replaces: Bool) throws(TakeFault) {
        let source = self.path(name)
        let size = (try? FileSystem.status(source))?.size ?? 0
        guard let parent = Self.parent(of: path) else { throw .badPath("it is no absolute path of a file") }
        do throws(SystemError) {
            if (try? FileSystem.status(path))?.kind == .folder { throw SystemError(EISDIR) }
            do throws(SystemError) {
                try Self.move(source, to: path, replaces: replaces)
            } catch {
                guard error.number == EXDEV || error.number == EPERM || error.number == EMLINK else { throw error }
                try Self.copy(source, to: path, in: parent, replaces: replaces)
            }
            try FileSystem.syncFolder(parent)
        } catch {
            throw Self.fault(error, path)
        }
        try? FileSystem.remove(source)
        self.used(-size)
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

    private static func copy(
        _ source: String,
        to path: String,
        in parent: String,
        replaces: Bool
    ) throws(SystemError) {
        if !replaces, (try? FileSystem.linkStatus(path)) != nil { throw SystemError(EEXIST) }
        let name = source.split(separator: "/").last ?? ""
        let other = "\(parent)/.\(name).wakegate"
        try? FileSystem.remove(other)
        do throws(SystemError) {
            try self.copy(source, to: other)
            try self.move(other, to: path, replaces: replaces)
        } catch {
            try? FileSystem.remove(other)
            throw error
        }
        try? FileSystem.remove(other)
    }

    private static func copy(_ source: String, to path: String) throws(SystemError) {
        let from = try OpenFile(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        let to = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o600)
        var room = [UInt8](repeating: 0, count: self.chunkBytes)
        while true {
            let count = try Descriptor.read(from.descriptor, into: &room)
            guard count > 0 else { return try to.sync() }
            var written = 0
            while written < count { written += try Descriptor.write(to.descriptor, Array(room[written..<count])) }
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
