internal import Glibc
package import Wire

/// Functions that read and write only ordinary files. They never block at a FIFO that has no writer.
package enum OrdinaryFile {
    /// Opens a file for reading, without blocking.
    ///
    /// - Returns: nil if `path` is not an ordinary file, such as a pipe, a folder or a device.
    package static func open(_ path: String) throws(SystemError) -> OpenFile? {
        do throws(SystemError) {
            let file = try OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            guard (try? file.status())?.kind == .file else { return nil }
            return file
        } catch {
            // A socket cannot be opened, and is not an ordinary file either.
            if self.isOther(path) { return nil }
            throw error
        }
    }

    /// Returns the bytes of a file, without blocking.
    ///
    /// - `bytesMax`: the maximum number of bytes to read.
    /// - Returns: nil if `path` is not an ordinary file, such as a pipe, a folder or a device.
    package static func contents(_ path: String, bytesMax: Int) throws(SystemError) -> [UInt8]? {
        guard let file = try self.open(path) else { return nil }
        return try file.contents(bytesMax: bytesMax)
    }

    /// Replaces a file atomically: readers see either the former content or all of `bytes`.
    ///
    /// The bytes are written to a temporary file in the same folder, which then replaces the file at `path`.
    ///
    /// - `mode`: the permissions, reduced by the process's umask.
    /// - `isSynced`: false if an empty file after a power loss is acceptable.
    /// - Throws: `SystemError.notOrdinaryFile` if `path` exists and is not an ordinary file. It is then kept.
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

    /// Returns true if `path` exists and is not an ordinary file.
    package static func isOther(_ path: String) -> Bool {
        guard let status = try? FileSystem.status(path) else { return false }
        return status.kind != .file
    }
}

/// The memory-mapped content of a file.
///
/// If the file is truncated while it is mapped, reading the lost part kills this process (SIGBUS).
@safe
package struct MappedFile: ~Copyable {
    private let base: UnsafeMutableRawPointer
    private let count: Int

    /// Maps a file; returns nil if the file does not exist, cannot be read, or is empty.
    package init?(_ path: String) {
        // Opening a FIFO would block without O_NONBLOCK.
        guard let file = try? OpenFile(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), let status = try? file.status(),
            let base = unsafe mmap(nil, status.size, PROT_READ, MAP_SHARED, file.descriptor, 0),
            unsafe base != MAP_FAILED
        else { return nil }
        unsafe self.base = base
        self.count = status.size
    }

    deinit { unsafe munmap(self.base, self.count) }

    /// Calls `body` with the file's bytes, which are valid only during the call.
    package borrowing func withView<Result>(_ body: (ByteView) -> Result) -> Result {
        body(unsafe ByteView(UnsafeRawBufferPointer(start: self.base, count: self.count)))
    }
}
