import Glibc
import HTTPTransport
package import Platform
import Synchronization

/// A thread that waits for the disk, so that nobody else has to.
///
/// What is long is done in parts, in turns with the rest: nobody waits for all of another's file.
package final class FileWorker: Sendable {
    private struct Job: Sendable {
        /// Does a part; says whether more is left.
        let step: @Sendable () -> Bool
    }

    private final class Ending: Sendable {
        let isSet = Atomic<Bool>(false)
    }

    private final class Jobs: MailboxBatch {
        var jobs: [Job] = []
        var isEmpty: Bool { self.jobs.isEmpty }

        init() {}

        func append(_ other: Jobs) { self.jobs += other.jobs }
        func removeAll() { self.jobs.removeAll() }
    }

    private let mailbox = Mailbox<Jobs>()
    private let isEnding: Ending
    private let thread: NamedThread

    /// The longest wait, in milliseconds: nothing depends on it.
    private static let waitMax: Int64 = 3_600_000

    package init(_ name: String) throws(ThreadFailure) {
        let mailbox = self.mailbox
        let ending = Ending()
        self.isEnding = ending
        self.thread = try NamedThread(name, signals: .blocked) {
            var batch = Jobs()
            var begun: [Job] = []
            while mailbox.take(into: &batch, waitingAtMost: begun.isEmpty ? Self.waitMax : 0) {
                // What has just come is done first: it waits for one part, whatever was begun.
                let round = batch.jobs + begun
                batch.removeAll()
                begun = round.filter { !ending.isSet.load(ordering: .relaxed) && $0.step() }
            }
        }
    }

    /// Calls `step` until it says that nothing is left, in turns with others'; once it is stopped, not any more.
    package func submit(_ step: @escaping @Sendable () -> Bool) {
        var batch = Jobs()
        batch.jobs = [Job(step: step)]
        self.mailbox.submit(&batch)
    }

    /// Ends after what it does now; the rest is not done.
    package func stop() {
        self.isEnding.isSet.store(true, ordering: .relaxed)
        self.mailbox.close()
        self.thread.join()
    }
}

/// A look at a downloaded file that is to be whole: it and its name are had on the disk, and its length and its content
/// are compared.
///
/// `@unchecked Sendable`: a `FileWorker` takes its steps, one after the other.
package final class FileLook: @unchecked Sendable {
    /// What a downloaded file is worth.
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
    ///   - file: what was written.
    ///   - bytes: how many bytes came.
    ///   - sha256: what they are to come to; nil for whatever.
    ///   - files: where the file lies.
    package init(_ file: StateFiles.Writing, bytes: Int64, sha256: String?, in files: StateFiles) {
        self.file = file
        self.bytes = bytes
        self.sha256 = sha256
        self.files = files
    }

    /// Does a part of it.
    ///
    /// - Returns: what was found; nil when more is to be done.
    package func step() -> Finish? {
        do throws(SystemError) {
            try self.files.checkEnd()
            guard let reading = self.reading else { return try self.begin() }
            guard let digest = self.digest else { throw SystemError(ENOMEM) }
            for _ in 0..<FileReading.chunksOfPart {
                let chunk = try reading.chunk()
                guard !chunk.isEmpty else { return Self.compared(digest.hex(), with: self.sha256 ?? "") }
                digest.update(chunk)
            }
            return nil
        } catch {
            return .fault(StateFiles.fault(error))
        }
    }

    private static func compared(_ found: String, with expected: String) -> Finish {
        found == expected ? .whole(sha256: found) : .fault(.badChecksum(expected: expected, found: found))
    }

    private func begin() throws(SystemError) -> Finish? {
        try self.file.sync()
        try FileSystem.syncFolder(self.files.folder)
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

/// A file that is read chunk by chunk.
final class FileReading {
    private let file: OpenFile
    private var room = [UInt8](repeating: 0, count: FileReading.chunkBytes)

    /// Bytes that are read at once.
    private static let chunkBytes = 1 << 20
    /// Chunks that are read before others have their turn: 16 MiB are what one caller's file makes another's wait for,
    /// as often as parts of that are done.
    static let chunksOfPart = 16

    init(_ path: String) throws(SystemError) {
        self.file = try OpenFile(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    }

    /// The next bytes, which are there until the next call; none at the end.
    func chunk() throws(SystemError) -> ArraySlice<UInt8> {
        let count = try Descriptor.read(self.file.descriptor, into: &self.room)
        return self.room[..<count]
    }
}
