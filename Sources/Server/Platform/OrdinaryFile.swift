internal import Glibc
package import Wire

/// Files that can be read to their end: a pipe in the place of one would keep whoever opens it waiting.
package enum OrdinaryFile {
    /// Opens a file to be read; waits for nobody.
    ///
    /// - Returns: nil when there is something else: a pipe, a folder, a device.
    package static func open(_ path: String) throws(SystemError) -> OpenFile? {
        do throws(SystemError) {
            let file = try OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            guard (try? file.status())?.kind == .file else { return nil }
            return file
        } catch {
            // A socket cannot be opened at all.
            if self.isOther(path) { return nil }
            throw error
        }
    }

    /// The bytes of a file; waits for nobody.
    ///
    /// - `bytesMax`: the most that are read.
    /// - Returns: nil when there is something else: a pipe, a folder, a device.
    package static func contents(_ path: String, bytesMax: Int) throws(SystemError) -> [UInt8]? {
        guard let file = try self.open(path) else { return nil }
        return try file.contents(bytesMax: bytesMax)
    }

    /// Writes a file whole: readers see its former content or `bytes`, and never a part.
    ///
    /// Writes a temporary file in the same folder first, which then replaces the file at `path`.
    ///
    /// - `mode`: the permissions, less those that the process takes from all that it makes.
    /// - `isSynced`: false if a power loss may leave an empty file.
    /// - Throws: `SystemError.notOrdinaryFile` if something else is at `path`, which stays.
    package static func replace(
        _ path: String,
        with bytes: [UInt8],
        mode: UInt32,
        isSynced: Bool = true
    ) throws(SystemError) {
        try FileSystem.checkReplaceable(path)
        let draft = "\(path).\(getpid()).new"
        try? FileSystem.remove(draft)
        do throws(SystemError) {
            let file = try OpenFile(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode: mode)
            try file.write(bytes)
            if isSynced { try file.sync() }
            try file.close()
            try FileSystem.replaceFile(path, by: draft)
        } catch {
            try? FileSystem.remove(draft)
            throw error
        }
    }

    /// Whether there is something at `path`, and no ordinary file.
    package static func isOther(_ path: String) -> Bool {
        guard let status = try? FileSystem.status(path) else { return false }
        return status.kind != .file
    }
}

/// The content of a file, which is read as it is looked at.
///
/// Whoever cuts the file meanwhile ends this process.
@safe
package struct MappedFile: ~Copyable {
    private let base: UnsafeMutableRawPointer
    private let count: Int

    /// - Returns: nil when there is no such file, when it may not be read, and when it is empty.
    package init?(_ path: String) {
        guard let file = try? OpenFile(path, O_RDONLY | O_CLOEXEC), let status = try? file.status(),
            let base = unsafe mmap(nil, status.size, PROT_READ, MAP_SHARED, file.descriptor, 0),
            unsafe base != MAP_FAILED
        else { return nil }
        unsafe self.base = base
        self.count = status.size
    }

    deinit { unsafe munmap(self.base, self.count) }

    /// Calls `body` with the bytes.
    package borrowing func withView<Result>(_ body: (ByteView) -> Result) -> Result {
        body(unsafe ByteView(UnsafeRawBufferPointer(start: self.base, count: self.count)))
    }
}
