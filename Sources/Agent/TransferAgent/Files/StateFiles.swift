package import Bytes
import Glibc
package import Platform
import Synchronization
package import TransferPolicy

/// The files of a state folder: what has come of downloads, each by a name that an agent made.
package final class StateFiles: Sendable {
    package let folder: String
    /// Bytes of all files together.
    private let usedBytes = Atomic<Int64>(0)
    private let bytesMax: Int64
    private let reserve: Int64
    /// Whether the agent ends: nobody waits for a long look at a file any more.
    private let isEnding = Atomic<Bool>(false)
    /// Copies to other file systems that are under way.
    let copies = Atomic<Int>(0)
    /// The boot of the machine.
    package let boot: String

    /// Makes the folder when it is not there.
    ///
    /// - `boot`: what tells this boot of the machine from others; nil for what the kernel says.
    package init(
        folder: String,
        bytesMax: Int64,
        reserve: Int64,
        boot: String? = nil
    ) throws(SystemError) {
        self.folder = folder
        self.bytesMax = bytesMax
        self.reserve = reserve
        self.boot = boot ?? Self.readBoot()
        try Self.makeFolder(folder)
    }

    private static func makeFolder(_ folder: String) throws(SystemError) {
        do throws(SystemError) {
            try FileSystem.makeFolder(folder, mode: 0o700)
        } catch {
            guard error.number == EEXIST else { throw error }
        }
    }

    private static func readBoot() -> String {
        let file = try? OpenFile("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        let bytes = (try? file?.contents(bytesMax: 64)) ?? []
        return String(decoding: bytes.prefix { $0 > 32 }, as: UTF8.self)
    }

    package func path(_ name: String) -> String { "\(self.folder)/\(name)" }

    /// Has what reads or copies whole files end in the middle; the next start does it again.
    package func end() { self.isEnding.store(true, ordering: .relaxed) }

    func checkEnd() throws(SystemError) {
        if self.isEnding.load(ordering: .relaxed) { throw SystemError(ECANCELED) }
    }

    /// The names of all files.
    var names: [String] { FileSystem.names(in: self.folder, countMax: .max) ?? [] }

    /// The bytes of a file; nil when there is none.
    func size(of name: String) -> Int64? { (try? FileSystem.status(self.path(name))).map { Int64($0.size) } }

    /// Whether there is any file.
    package var isEmpty: Bool { FileSystem.names(in: self.folder, countMax: 1)?.isEmpty ?? true }

    /// Removes the files that nobody knows, and counts the others.
    ///
    /// - Returns: how many were removed.
    package func cleaned(keeping known: Set<String>) -> Int {
        var removed = 0
        for name in self.names {
            if known.contains(name) {
                self.used((try? FileSystem.status(self.path(name)))?.size ?? 0)
            } else {
                try? FileSystem.remove(self.path(name))
                removed += 1
            }
        }
        return removed
    }

    /// Counts bytes that were written, or are there no more.
    package func used(_ bytes: Int) {
        self.usedBytes.add(Int64(bytes), ordering: .relaxed)
    }

    package var used: Int64 { self.usedBytes.load(ordering: .relaxed) }

    /// How many bytes are missing for so many more; 0 when there is room.
    package func missing(for bytes: Int64) -> Int64 {
        let overBound = self.used + bytes - self.bytesMax
        let free = (try? FileSystem.freeBytes(at: self.folder)) ?? .max
        return max(0, overBound, bytes + self.reserve - free)
    }

    /// Removes a file of the folder.
    package func remove(_ name: String) {
        let path = self.path(name)
        guard let size = (try? FileSystem.status(path))?.size, (try? FileSystem.remove(path)) != nil else { return }
        self.used(-size)
    }

    /// Opens a new file to write to it.
    package func create(_ name: String) throws(SystemError) -> Writing {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(self.path(name), flags, mode: 0o600)
        } catch {
            // Somebody may have taken the folder away.
            guard error.number == ENOENT else { throw error }
            try Self.makeFolder(self.folder)
            return Writing(file: try OpenFile(self.path(name), flags, mode: 0o600), name: name, offset: 0)
        }
        return Writing(file: file, name: name, offset: 0)
    }

    /// Opens a file to go on with it.
    ///
    /// - `trusted`: how many of its bytes are as they were written; nil for all.
    package func reopen(_ name: String, trusted: Int64?) throws(SystemError) -> Writing {
        let file = try OpenFile(self.path(name), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        let size = Int64(try file.status().size)
        let offset = min(size, trusted ?? size)
        if offset < size {
            try file.truncate(to: Int(offset))
            self.used(Int(offset - size))
        }
        try file.seek(to: Int(offset))
        return Writing(file: file, name: name, offset: offset)
    }

    /// A file that is written to; it is closed when nobody has it any more.
    package final class Writing: Sendable {
        package let name: String
        package let descriptor: Int32
        /// Where writing begins.
        package let offset: Int64

        fileprivate init(file: consuming OpenFile, name: String, offset: Int64) {
            self.name = name
            self.descriptor = file.release()
            self.offset = offset
        }

        deinit { Descriptor.close(self.descriptor) }

        package func write(_ bytes: ByteView) throws(SystemError) {
            try Descriptor.writeWhole(self.descriptor, bytes)
        }

        package func sync() throws(SystemError) {
            try Descriptor.sync(self.descriptor)
        }
    }

    /// The fault of a transfer whose file cannot be written.
    package static func fault(_ error: SystemError, missing: Int64 = 1) -> TransferFault {
        switch error.number {
        case ENOSPC, EDQUOT, EFBIG: .noSpace(missingBytes: max(1, missing))
        default: .fileUnwritable(error.message)
        }
    }
}
