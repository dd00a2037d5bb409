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

    /// Whether it is a folder in which the agent keeps what nobody else may put there.
    func isOwn(_ folder: String) -> Bool {
        guard let identity = (try? FileSystem.status(folder))?.identity else { return false }
        let state = Self.parent(of: self.folder) ?? self.folder
        return [self.folder, state].contains { (try? FileSystem.status($0))?.identity == identity }
    }

    /// Removes what a copy to `path` has left beside it that a crash cut short.
    package func removeLeftover(of name: String, at path: String) {
        guard let parent = Self.parent(of: path) else { return }
        try? FileSystem.remove(Self.leftover(name, in: parent))
    }

    static func leftover(_ name: some StringProtocol, in parent: String) -> String {
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

    static func parent(of path: String) -> String? {
        guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0), let slash = path.lastIndex(of: "/")
        else { return nil }
        let name = path[path.index(after: slash)...]
        guard name != ".", name != ".." else { return nil }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static let chunkBytes = 1 << 20

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

    static func takeFault(_ error: SystemError, _ path: String) -> TakeFault {
        switch error.number {
        case EEXIST: .exists
        case ENOSPC, EDQUOT, EFBIG: .noSpace(error.message)
        default: .badPath("\(path): \(error.reason)")
        }
    }
}
