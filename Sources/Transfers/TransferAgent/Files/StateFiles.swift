import Glibc
package import Platform
package import Synchronization
package import Wire

/// The files in a state folder: downloaded data, under names that an agent generated.
package final class StateFiles: Sendable {
    package let folder: String
    /// The total size of all files, in bytes.
    private let usedBytes = Atomic<Int64>(0)
    /// The bytes that running downloads have claimed but not yet written.
    private let claimedBytes = Atomic<Int64>(0)
    private let bytesMax: Int64
    private let reserve: Int64
    private let freeBytes: @Sendable (String) -> Int64?
    /// True if the agent is stopping, which aborts long file operations.
    private let isEnding = Atomic<Bool>(false)
    /// The number of running copies to other file systems.
    let copies = Atomic<Int>(0)
    /// The number of upload files that are still open after their attempts ended.
    package let closingSources = Atomic<Int>(0)
    /// The identifier of the machine's current boot.
    package let boot: String

    /// Creates the folder if it does not exist.
    ///
    /// - `boot`: the identifier of the machine's current boot; nil to read it from the kernel.
    /// - `freeBytes`: returns the number of free bytes in the file system of a folder; nil if unknown.
    package init(
        folder: String,
        bytesMax: Int64,
        reserve: Int64,
        boot: String? = nil,
        freeBytes: @escaping @Sendable (String) -> Int64? = { try? FileSystem.freeBytes(at: $0) }
    ) throws(SystemError) {
        self.folder = folder
        self.bytesMax = bytesMax
        self.reserve = reserve
        self.freeBytes = freeBytes
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

    /// Aborts operations that read or copy whole files. The next start of the agent repeats them.
    package func end() { self.isEnding.store(true, ordering: .relaxed) }

    func checkEnd() throws(SystemError) {
        if self.isEnding.load(ordering: .relaxed) { throw SystemError(ECANCELED) }
    }

    /// The names of all files.
    var names: [String] { FileSystem.names(in: self.folder, countMax: .max) ?? [] }

    /// Returns the size of a file, in bytes; nil if it does not exist.
    func size(of name: String) -> Int64? { (try? FileSystem.status(self.path(name))).map { Int64($0.size) } }

    /// True if no file exists.
    package var isEmpty: Bool { FileSystem.names(in: self.folder, countMax: 1)?.isEmpty ?? true }

    /// Removes all files except the `known` ones, and recounts the sizes of the remaining files.
    ///
    /// - Returns: the number of removed files.
    package func removeFiles(except known: Set<String>) -> Int {
        var removed = 0
        var bytes = 0
        for name in self.names {
            if known.contains(name) {
                bytes += (try? FileSystem.status(self.path(name)))?.size ?? 0
            } else {
                try? FileSystem.remove(self.path(name))
                removed += 1
            }
        }
        self.usedBytes.store(Int64(bytes), ordering: .relaxed)
        return removed
    }

    /// Adds to the number of used bytes. A negative number subtracts.
    package func used(_ bytes: Int) {
        self.usedBytes.add(Int64(bytes), ordering: .relaxed)
    }

    package var used: Int64 { self.usedBytes.load(ordering: .relaxed) }

    /// Returns the number of bytes that are lacking to store `bytes` in addition to all claims; 0 if there is enough
    /// space.
    package func missing(for bytes: Int64) -> Int64 { max(0, bytes - self.unclaimed) }

    /// The number of bytes that may still be written, including claimed ones. Negative if the disk has less free space
    /// than its reserve.
    private var unused: Int64 {
        min(self.bytesMax - self.used, (self.freeBytes(self.folder) ?? .max) - self.reserve)
    }

    private var unclaimed: Int64 { self.unused - self.claimedBytes.load(ordering: .relaxed) }

    /// The space that one running download may still use. Without claims, concurrent downloads would rely on the same
    /// free space.
    ///
    /// Only one thread uses the claims of a folder.
    package final class Claim {
        private let files: StateFiles
        /// The number of bytes that are claimed and not yet written.
        private var bytes: Int64 = 0
        /// The number of bytes written since the last check of the free space.
        private var uncheckedBytes: Int64 = 0

        /// The block size in bytes. A download of unknown length claims one block at a time. A download of known length
        /// checks the free space once per block.
        private static let blockBytes: Int64 = 1 << 20

        package init(in files: StateFiles) { self.files = files }

        deinit { self.release() }

        /// Claims space for the remaining bytes of a download. Replaces its previous claim.
        ///
        /// - Returns: the number of lacking bytes; 0 if the space is now claimed.
        package func claim(_ bytes: Int64) -> Int64 {
            self.release()
            let missing = self.files.missing(for: bytes)
            if missing == 0 { self.add(bytes) }
            return missing
        }

        /// Checks that the next `count` bytes may be written. Extends the claim if necessary.
        ///
        /// - Returns: the number of lacking bytes; 0 if the bytes may be written.
        package func missing(for count: Int) -> Int64 {
            let more = max(0, Int64(count) - self.bytes)
            guard more > 0 || self.uncheckedBytes >= Self.blockBytes else { return 0 }
            self.uncheckedBytes = 0
            // Other programs may have used the disk's free space since the claim.
            guard more > 0 else { return max(0, self.bytes - self.files.unused) }
            let unclaimed = self.files.unclaimed
            guard more <= unclaimed else { return more - unclaimed }
            self.add(min(max(more, Self.blockBytes), unclaimed))
            return 0
        }

        /// Returns the fault of a download that needs `bytes` more bytes and lacks `missing` of them. The fault is
        /// final if the space would not be enough even without the other downloads' claims.
        package func fault(missing: Int64, of bytes: Int64) -> TransferFault {
            bytes <= self.files.unused ? .spaceClaimed(missingBytes: missing) : .noSpace(missingBytes: missing)
        }

        /// Records that bytes were written.
        package func used(_ count: Int) {
            self.add(-Int64(count))
            self.uncheckedBytes += Int64(count)
            self.files.used(count)
        }

        /// Releases the unused space.
        package func release() { self.add(-self.bytes) }

        private func add(_ count: Int64) {
            self.bytes += count
            self.files.claimedBytes.add(count, ordering: .relaxed)
        }
    }

    /// Removes a file from the folder.
    package func remove(_ name: String) {
        let path = self.path(name)
        guard let size = (try? FileSystem.status(path))?.size, (try? FileSystem.remove(path)) != nil else { return }
        self.used(-size)
    }

    /// Creates a file and opens it for writing.
    package func create(_ name: String) throws(SystemError) -> Writing {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(self.path(name), flags, mode: 0o600)
        } catch {
            // The folder may have been removed.
            guard error.number == ENOENT else { throw error }
            try Self.makeFolder(self.folder)
            return Writing(file: try OpenFile(self.path(name), flags, mode: 0o600), name: name, offset: 0)
        }
        return Writing(file: file, name: name, offset: 0)
    }

    /// Opens the file of a part to continue writing. After another boot, keeps only the bytes that are certainly
    /// durable.
    package func reopen(_ part: PartFile) throws(SystemError) -> Writing {
        let file = try OpenFile(self.path(part.file), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        let size = Int64(try file.status().size)
        let offset = part.boot == self.boot ? size : min(size, part.synced)
        if offset < size {
            try file.truncate(to: Int(offset))
            self.used(Int(offset - size))
        }
        try file.seek(to: Int(offset))
        return Writing(file: file, name: part.file, offset: offset)
    }

    /// A file that is open for writing. It is closed when the object is released.
    package final class Writing: Sendable {
        package let name: String
        package let descriptor: Int32
        /// The offset at which writing starts.
        package let offset: Int64
        /// The offset of the next write.
        private let end: Atomic<Int64>
        /// The error number of the first failed sync; 0 if none has failed.
        private let syncFault = Atomic<Int32>(0)

        fileprivate init(file: consuming OpenFile, name: String, offset: Int64) {
            self.name = name
            self.descriptor = file.release()
            self.offset = offset
            self.end = Atomic(offset)
        }

        deinit { Descriptor.close(self.descriptor) }

        /// Writes all of `bytes`. If that fails, leaves the file unchanged. Always fails after a failed sync.
        package func write(_ bytes: ByteView) throws(SystemError) {
            try self.checkSync()
            let end = self.end.load(ordering: .relaxed)
            do throws(SystemError) {
                try Descriptor.writeWhole(self.descriptor, bytes)
            } catch {
                // A full disk may have accepted some of the bytes. They are removed, because they do not count as used.
                try? Descriptor.truncate(self.descriptor, to: Int(end))
                throw error
            }
            self.end.store(end + Int64(bytes.count), ordering: .relaxed)
        }

        /// Makes the written bytes durable. Once this has failed, it always fails, because the system reports lost
        /// bytes only once.
        package func sync() throws(SystemError) {
            try self.checkSync()
            do throws(SystemError) { try Descriptor.sync(self.descriptor) } catch {
                self.syncFault.store(error.number, ordering: .relaxed)
                throw error
            }
        }

        private func checkSync() throws(SystemError) {
            let fault = self.syncFault.load(ordering: .relaxed)
            if fault != 0 { throw SystemError(fault) }
        }
    }

    /// Converts an error of a write to the fault of its transfer.
    package static func fault(_ error: SystemError, missing: Int64 = 1) -> TransferFault {
        switch error.number {
        case ENOSPC, EDQUOT, EFBIG: .noSpace(missingBytes: max(1, missing))
        default: .fileUnwritable(error.message)
        }
    }
}

/// Moving finished files to their destinations.
extension StateFiles {
    /// The reason why a file was not moved.
    package enum TakeFault: Error, Hashable, Sendable {
        case exists
        case badPath(String)
        case noSpace(String)
        /// The file no longer exists in the state folder.
        case gone
    }

    /// Returns true for a folder of the agent. Callers must not place files there.
    func isOwn(_ folder: String) -> Bool {
        guard let identity = (try? FileSystem.status(folder))?.identity else { return false }
        let state = Self.parent(of: self.folder) ?? self.folder
        return [self.folder, state].contains { (try? FileSystem.status($0))?.identity == identity }
    }

    static func leftover(_ name: some StringProtocol, in parent: String) -> String {
        "\(parent)/.\(name).wakegate"
    }

    static func parent(of path: String) -> String? {
        guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0), let slash = path.lastIndex(of: "/")
        else { return nil }
        let name = path[path.index(after: slash)...]
        guard name != ".", name != ".." else { return nil }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func takeFault(_ error: SystemError, _ path: String) -> TakeFault {
        switch error.number {
        case EEXIST: .exists
        case ENOSPC, EDQUOT, EFBIG: .noSpace(error.message)
        default: .badPath("\(path): \(error.reason)")
        }
    }
}

/// Completes a move that was interrupted when an earlier process ended, or removes its incomplete copy.
///
/// `@unchecked Sendable`: a `FileWorker` calls the steps one after another.
package final class InterruptedMove: @unchecked Sendable {
    private let name: String
    private let path: String
    private let files: StateFiles
    /// The files in the state folder and at the destination, which are being compared.
    private var readings: (FileReading, FileReading)?

    /// - Parameters:
    ///   - name: the name of the file in the state folder.
    ///   - path: the absolute path of the destination.
    ///   - files: the state folder that contains the file.
    package init(_ name: String, to path: String, in files: StateFiles) {
        self.name = name
        self.path = path
        self.files = files
    }

    /// Performs the next part.
    ///
    /// - Returns: true if the file is at its destination; false if the file can be moved again, because it is not
    ///   there, or because a power failure could undo the move; nil if parts remain.
    package func step() -> Bool? {
        guard let parent = StateFiles.parent(of: self.path) else { return false }
        if self.readings == nil { try? FileSystem.remove(StateFiles.leftover(self.name, in: parent)) }
        guard let isTaken = self.compare() else { return nil }
        guard isTaken else { return false }
        // The earlier process may have ended just before it synced the folder.
        let isSynced = (try? FileSystem.syncFolderIfPossible(parent)) != nil
        guard isSynced || !FileSystem.exists(self.files.path(self.name)) else { return false }
        self.files.remove(self.name)
        return true
    }

    /// Returns true if the move is complete. Either the file no longer exists in the state folder, or the file at the
    /// destination is the same file or has the same content. Returns false also if the agent ends. Its next start then
    /// compares the files again.
    private func compare() -> Bool? {
        let source = self.files.path(self.name)
        if self.readings == nil {
            guard let here = try? FileSystem.status(source) else { return FileSystem.exists(self.path) }
            guard let there = try? FileSystem.linkStatus(self.path), there.kind == .file, there.size == here.size else {
                return false
            }
            if there.identity == here.identity { return true }
            guard let one = try? FileReading(source), let other = try? FileReading(self.path) else { return false }
            self.readings = (one, other)
        }
        guard let (one, other) = self.readings, (try? self.files.checkEnd()) != nil else { return false }
        for _ in 0..<FileReading.chunksOfPart {
            guard let chunk = try? one.chunk(), let same = try? other.chunk(), chunk == same else { return false }
            if chunk.isEmpty { return true }
        }
        return nil
    }
}

/// Moves a file of the state folder to its destination, completely or not at all. If the destination is on another file
/// system, copies the file.
///
/// `@unchecked Sendable`: a `FileWorker` calls the steps one after another.
package final class FileMove: @unchecked Sendable {
    /// A copy that is in progress.
    private final class Copy {
        /// The maximum number of concurrent copies. Each copy uses two descriptors and 1 MiB. Too many copies would
        /// slow each other down, and all would finish late.
        static let countMax = 8

        let reading: FileReading
        let target: OpenFile
        let path: String
        private let files: StateFiles

        init(_ source: String, to path: String, of files: StateFiles) throws(SystemError) {
            self.reading = try FileReading(source)
            self.target = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o600)
            self.path = path
            self.files = files
            files.copies.add(1, ordering: .relaxed)
        }

        deinit { self.files.copies.subtract(1, ordering: .relaxed) }

        /// Copies the next part and syncs it. Stopping the agent therefore waits for at most one part.
        ///
        /// - Returns: true if this was the last part.
        func part() throws(SystemError) -> Bool {
            var isLast = false
            for _ in 0..<FileReading.chunksOfPart where !isLast {
                var left = try self.reading.chunk()
                isLast = left.isEmpty
                while !left.isEmpty {
                    left = left.dropFirst(try Descriptor.write(self.target.descriptor, Array(left)))
                }
            }
            try self.target.sync()
            return isLast
        }
    }

    private let source: String
    private let path: String
    private let replaces: Bool
    private let files: StateFiles
    private var copy: Copy?

    /// - Parameters:
    ///   - name: the name of the file in the state folder.
    ///   - path: the absolute path of the destination.
    ///   - replaces: true if an existing file may be replaced.
    ///   - files: the state folder that contains the file.
    package init(_ name: String, to path: String, replaces: Bool, in files: StateFiles) {
        self.source = files.path(name)
        self.path = path
        self.replaces = replaces
        self.files = files
    }

    /// Performs the next part of the move.
    ///
    /// - Returns: true if the file is at its destination.
    package func step() throws(StateFiles.TakeFault) -> Bool {
        guard let size = (try? FileSystem.status(self.source))?.size else { throw self.failed(.gone) }
        guard let parent = StateFiles.parent(of: self.path) else {
            throw self.failed(.badPath("it is not an absolute path of a file"))
        }
        guard !self.files.isOwn(parent) else { throw self.failed(.badPath("\(parent) is the agent's own folder")) }
        do throws(SystemError) {
            guard try self.step(in: parent) else { return false }
        } catch {
            throw self.failed(StateFiles.takeFault(error, self.path))
        }
        try? FileSystem.remove(self.source)
        self.files.used(-size)
        return true
    }

    /// Removes an incomplete copy. Returns the fault unchanged.
    private func failed(_ fault: StateFiles.TakeFault) -> StateFiles.TakeFault {
        if let copy = self.copy { try? FileSystem.remove(copy.path) }
        self.copy = nil
        return fault
    }

    private func step(in parent: String) throws(SystemError) -> Bool {
        if (try? FileSystem.status(self.path))?.kind == .folder { throw SystemError(EISDIR) }
        // The folder is opened before the move, because the file must not move to a folder that cannot be synced.
        let folder = try OpenFile(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if let copy = self.copy {
            try self.files.checkEnd()
            guard try copy.part() else { return false }
            try self.move(copy.path)
            try? FileSystem.remove(copy.path)
            self.copy = nil
        } else {
            do throws(SystemError) {
                try self.move(self.source)
            } catch {
                guard error.number == EXDEV else { throw error }
                try self.beginCopy(in: parent)
                return false
            }
        }
        try self.sync(folder)
        return true
    }

    private func beginCopy(in parent: String) throws(SystemError) {
        // This check avoids a long copy that could not get its name.
        if self.replaces {
            try FileSystem.checkReplaceable(self.path)
        } else if (try? FileSystem.linkStatus(self.path)) != nil {
            throw SystemError(EEXIST)
        }
        // If too many copies are running, a later step tries again.
        guard self.files.copies.load(ordering: .relaxed) < Copy.countMax else { return }
        let other = StateFiles.leftover(self.source.split(separator: "/").last ?? "", in: parent)
        try? FileSystem.remove(other)
        self.copy = try Copy(self.source, to: other, of: self.files)
    }

    private func move(_ file: String) throws(SystemError) {
        if self.replaces { return try FileSystem.replaceFile(self.path, by: file) }
        try FileSystem.link(file, orRenameTo: self.path)
    }

    /// Syncs the destination folder. If this fails, undoes the move, unless a file was replaced.
    private func sync(_ folder: borrowing OpenFile) throws(SystemError) {
        do throws(SystemError) {
            try folder.sync()
        } catch {
            // Some file systems cannot sync a folder.
            guard error.number != EINVAL, !self.replaces else { return }
            if FileSystem.exists(self.source) {
                try? FileSystem.remove(self.path)
            } else {
                // The file was renamed, because the file system does not have hard links.
                try? FileSystem.rename(self.path, to: self.source)
            }
            throw error
        }
    }
}
