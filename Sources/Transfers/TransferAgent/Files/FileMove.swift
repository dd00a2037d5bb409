import Glibc
import Platform
import Synchronization

/// The move of a file of the state folder to its place: whole, or not at all; to another file system by a copy.
///
/// `@unchecked Sendable`: a `FileWorker` takes its steps, one after the other.
package final class FileMove: @unchecked Sendable {
    /// A copy that is under way.
    private final class Copy {
        /// The most at a time: each has two descriptors and a MiB, and with too many none is done until all nearly are.
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

        /// Copies a part, and has it on the disk, so that no end of the agent waits for more.
        ///
        /// - Returns: whether that was the last one.
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
    ///   - name: the file's name in the folder.
    ///   - path: where it goes, absolute.
    ///   - replaces: whether a file that is there may be replaced.
    ///   - files: where the file lies.
    package init(_ name: String, to path: String, replaces: Bool, in files: StateFiles) {
        self.source = files.path(name)
        self.path = path
        self.replaces = replaces
        self.files = files
    }

    /// Does a part of it.
    ///
    /// - Returns: whether the file is at its place.
    package func step() throws(StateFiles.TakeFault) -> Bool {
        guard let size = (try? FileSystem.status(self.source))?.size else { throw self.failed(.gone) }
        guard let parent = StateFiles.parent(of: self.path) else {
            throw self.failed(.badPath("it is no absolute path of a file"))
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

    /// What was copied in part goes.
    private func failed(_ fault: StateFiles.TakeFault) -> StateFiles.TakeFault {
        if let copy = self.copy { try? FileSystem.remove(copy.path) }
        self.copy = nil
        return fault
    }

    private func step(in parent: String) throws(SystemError) -> Bool {
        if (try? FileSystem.status(self.path))?.kind == .folder { throw SystemError(EISDIR) }
        // Opened first: a folder whose names cannot be had on the disk takes no file.
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
        // Looked at before as well, so that no long copy is made for nothing.
        if self.replaces {
            try FileSystem.checkReplaceable(self.path)
        } else if (try? FileSystem.linkStatus(self.path)) != nil {
            throw SystemError(EEXIST)
        }
        // It has its turn when another is done.
        guard self.files.copies.load(ordering: .relaxed) < Copy.countMax else { return }
        let other = StateFiles.leftover(self.source.split(separator: "/").last ?? "", in: parent)
        try? FileSystem.remove(other)
        self.copy = try Copy(self.source, to: other, of: self.files)
    }

    private func move(_ file: String) throws(SystemError) {
        if self.replaces { return try FileSystem.replaceFile(self.path, by: file) }
        try FileSystem.link(file, orRenameTo: self.path)
    }

    /// Has the file's new name on the disk. When that fails and nothing was replaced, it is as if nothing had been
    /// moved.
    private func sync(_ folder: borrowing OpenFile) throws(SystemError) {
        do throws(SystemError) {
            try folder.sync()
        } catch {
            // Some file systems know no sync of a folder.
            guard error.number != EINVAL, !self.replaces else { return }
            if FileSystem.exists(self.source) {
                try? FileSystem.remove(self.path)
            } else {
                // The file system has no hard links: the file was renamed.
                try? FileSystem.rename(self.path, to: self.source)
            }
            throw error
        }
    }
}
