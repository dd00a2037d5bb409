import Glibc
import HTTPTransport
package import Platform
import Synchronization

/// A batch of elements for a thread, in order.
final class ListBatch<Element>: MailboxBatch {
    var elements: [Element] = []
    var isEmpty: Bool { self.elements.isEmpty }

    func append(_ other: ListBatch<Element>) { self.elements += other.elements }
    func removeAll() { self.elements.removeAll() }
}

/// A thread for blocking disk operations.
///
/// Long jobs run in parts and alternate with other jobs. No job waits until a whole file of another job is processed.
package final class FileWorker: Sendable {
    /// Performs the next part of a job. Returns true if parts remain.
    private typealias Job = @Sendable () -> Bool

    private final class Ending: Sendable {
        let isSet = Atomic<Bool>(false)
    }

    private let mailbox = Mailbox<ListBatch<Job>>()
    private let isEnding: Ending
    private let thread: NamedThread

    /// The longest wait for a job, in milliseconds. Correctness does not depend on it.
    private static let waitMax: Int64 = 3_600_000

    package init(_ name: String) throws(ThreadFailure) {
        let mailbox = self.mailbox
        let ending = Ending()
        self.isEnding = ending
        self.thread = try NamedThread(name, signals: .blocked) {
            var batch = ListBatch<Job>()
            var begun: [Job] = []
            while mailbox.take(into: &batch, waitingAtMost: begun.isEmpty ? Self.waitMax : 0) {
                // New jobs run first. A new job therefore waits for at most one part of each started job.
                let round = batch.elements + begun
                batch.removeAll()
                begun = round.filter { !ending.isSet.load(ordering: .relaxed) && $0() }
            }
        }
    }

    /// Calls `step` until it returns false, alternating with other jobs. No call begins after `stop`.
    package func submit(_ step: @escaping @Sendable () -> Bool) {
        var batch = ListBatch<Job>()
        batch.elements = [step]
        self.mailbox.submit(&batch)
    }

    /// Ends the thread after the submitted jobs, without waiting for them.
    package func close() { self.mailbox.close() }

    /// Stops the thread after the current part. Unfinished jobs are abandoned.
    package func stop() {
        self.isEnding.isSet.store(true, ordering: .relaxed)
        self.mailbox.close()
        self.thread.join()
    }
}

/// Verifies a downloaded file. Syncs the file and its folder, and checks the length and the content.
///
/// `@unchecked Sendable`: a `FileWorker` calls the steps one after another.
package final class FileVerification: @unchecked Sendable {
    /// The result of the verification.
    package enum Finish: Hashable, Sendable {
        case whole(sha256: String?)
        case fault(TransferFault)
    }

    private let file: StateFiles.Writing
    private let bytes: Int64
    private let sha256: String?
    private let files: StateFiles
    private var reading: FileReading?
    private let digest = ContentDigest()

    /// - Parameters:
    ///   - file: the downloaded file.
    ///   - bytes: the number of received bytes.
    ///   - sha256: the expected SHA-256; nil if any content is accepted.
    ///   - files: the state folder that contains the file.
    package init(_ file: StateFiles.Writing, bytes: Int64, sha256: String?, in files: StateFiles) {
        self.file = file
        self.bytes = bytes
        self.sha256 = sha256
        self.files = files
    }

    /// Performs the next part of the verification.
    ///
    /// - Returns: the result; nil if parts remain.
    package func step() -> Finish? {
        do throws(SystemError) {
            try self.files.checkEnd()
            guard let reading = self.reading else { return try self.begin() }
            guard let digest = self.digest else { throw SystemError(ENOMEM) }
            for _ in 0..<FileReading.chunksOfPart {
                let chunk = try reading.chunk()
                guard chunk.isEmpty else {
                    digest.update(chunk)
                    continue
                }
                let (found, expected) = (digest.hex(), self.sha256 ?? "")
                return found == expected
                    ? .whole(sha256: found) : .fault(.badChecksum(expected: expected, found: found))
            }
            return nil
        } catch {
            return .fault(StateFiles.fault(error))
        }
    }

    private func begin() throws(SystemError) -> Finish? {
        try self.file.sync()
        try FileSystem.syncFolderIfPossible(self.files.folder)
        let path = self.files.path(self.file.name)
        let size = Int64(try FileSystem.status(path).size)
        guard size == self.bytes else {
            return .fault(.connectionFailed("the file has \(size) bytes where \(self.bytes) came"))
        }
        guard self.sha256 != nil else { return .whole(sha256: nil) }
        self.reading = try FileReading(path)
        return nil
    }
}

/// A file that is read in chunks.
final class FileReading {
    private let file: OpenFile
    private var room = [UInt8](repeating: 0, count: FileReading.chunkBytes)

    /// The size of a chunk, in bytes.
    private static let chunkBytes = 1 << 20
    /// The number of chunks in a part of a job: 16 MiB in total. Other jobs may have to wait for one part.
    static let chunksOfPart = 16

    init(_ path: String) throws(SystemError) {
        self.file = try OpenFile(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    }

    /// Returns the next bytes, which are valid until the next call; empty at the end.
    func chunk() throws(SystemError) -> ArraySlice<UInt8> {
        let count = try Descriptor.read(self.file.descriptor, into: &self.room)
        return self.room[..<count]
    }
}

/// The file of an upload. It has a thread of its own, because the file system may not respond.
///
/// `@unchecked Sendable`: only the functions that `perform` calls use the file.
package final class UploadSource: @unchecked Sendable {
    private let path: String
    private let files: StateFiles
    private let worker: FileWorker
    private var file: OpenFile?
    private var before: FileStatus?

    /// The maximum number of bytes to read at once.
    private static let partBytes = 262_144
    /// The maximum number of threads of ended attempts whose files do not respond.
    package static let closingMax = 256

    package init(_ path: String, in files: StateFiles) throws(TransferFault) {
        guard files.closingSources.load(ordering: .relaxed) < Self.closingMax else {
            throw .fileUnresponsive(
                "the files of \(Self.closingMax) ended attempts do not respond; check that their file systems are "
                    + "available"
            )
        }
        self.path = path
        self.files = files
        do throws(ThreadFailure) {
            self.worker = try FileWorker("upload")
        } catch {
            throw .connectionFailed("no thread can be started: \(error.cause)")
        }
    }

    /// Calls `run` on the thread of the file. Calls are run in order.
    package func perform(_ run: @escaping @Sendable (UploadSource) -> Void) {
        self.worker.submit {
            run(self)
            return false
        }
    }

    /// Closes the file and ends the thread after the earlier calls.
    package func close() {
        self.files.closingSources.add(1, ordering: .relaxed)
        self.perform { source in
            source.file = nil
            source.files.closingSources.subtract(1, ordering: .relaxed)
        }
        self.worker.close()
    }

    /// Returns the size of the file.
    func open() -> Result<Int64, TransferFault> {
        do throws(SystemError) {
            guard let file = try OrdinaryFile.open(self.path) else {
                return .failure(.fileUnreadable("\(self.path) is not an ordinary file"))
            }
            let status = try file.status()
            self.before = status
            self.file = consume file
            return .success(Int64(status.size))
        } catch {
            return .failure(.fileUnreadable("\(self.path) (\(error.reason))"))
        }
    }

    /// Returns the next bytes at an offset, of which there must be some.
    func bytes(at offset: Int64) -> Result<[UInt8], TransferFault> {
        do throws(SystemError) {
            try self.file?.seek(to: Int(offset))
            let bytes = try self.file?.contents(bytesMax: Self.partBytes) ?? []
            return bytes.isEmpty ? .failure(.fileUnreadable("\(self.path) has become shorter")) : .success(bytes)
        } catch {
            return .failure(.fileUnreadable("\(self.path) (\(error.reason))"))
        }
    }

    /// The fault if the file's size or modification time has changed since it was opened. If the path now names a new
    /// file, the upload still reads the old one.
    var change: TransferFault? {
        guard let now = try? self.file?.status(), now.size == self.before?.size, now.modified == self.before?.modified
        else { return .fileChanged(self.path) }
        return nil
    }
}
