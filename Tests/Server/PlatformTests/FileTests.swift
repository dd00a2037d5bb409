import Glibc
import Platform
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("Files", .timeLimit(.minutes(15)))
struct FileTests {
    private let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private func file(_ name: String) -> String { "\(self.folder.path)/\(name)" }

    private func made(_ name: String, _ text: String) throws -> String {
        let path = self.file(name)
        let file = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o640)
        try file.write(Array(text.utf8))
        try file.sync()
        try file.close()
        return path
    }

    @Test(
        "A written file is read back, up to the given number of bytes, also if it is longer than one read",
        arguments: [(1, 4), (20_000, 100_000)]
    )
    func contents(repetitions: Int, bytesMax: Int) throws {
        let text = String(repeating: "abcdefgh", count: repetitions)
        let path = try self.made("a", text)
        #expect(try OpenFile(path, O_RDONLY).contents(bytesMax: .max) == Array(text.utf8))
        #expect(try OpenFile(path, O_RDONLY).contents(bytesMax: bytesMax) == Array(text.utf8.prefix(bytesMax)))
        #expect(try OrdinaryFile.contents(path, bytesMax: 1_000_000) == Array(text.utf8))
        #expect(MappedFile(path)?.withView { $0.array } == Array(text.utf8))
    }

    @Test("The kind, size and owner of a file are reported, and whether a path is a link")
    func status() throws {
        let path = try self.made("a", "abc")
        let other = self.file("b")
        try FileSystem.link(path, to: other)
        let status = try FileSystem.status(path)
        #expect(status.kind == .file && status.size == 3 && status.permissions & ~0o640 == 0)
        #expect(status.owner == geteuid())
        #expect(try status == OpenFile(other, O_RDONLY).status(), "two names of one file")
        #expect(try FileSystem.status(self.folder.path).kind == .folder)
        #expect(try FileSystem.status("/dev/null").kind == .other)
        #expect(try FileSystem.linkStatus("/proc/self/exe").kind == .link)
        #expect(try FileSystem.target(of: "\(self.folder.path)/./a") == FileSystem.target(of: path))
        #expect(FileSystem.exists(path) && FileSystem.unreadable(path) == nil)
    }

    @Test("A failure has the system's error number and message")
    func errors() throws {
        let path = try self.made("a", "")
        let none = self.file("none")
        #expect(throws: SystemError(ENOENT)) { _ = try OpenFile(none, O_RDONLY) }
        #expect(throws: SystemError(ENOENT)) { try FileSystem.status(none) }
        #expect(throws: SystemError(ENOENT)) { try FileSystem.linkStatus(none) }
        #expect(throws: SystemError(ENOENT)) { try FileSystem.target(of: none) }
        #expect(throws: SystemError(ENOENT)) { try FileSystem.checkAccess(none, R_OK) }
        #expect(throws: SystemError(ENOENT)) { try FileSystem.remove(none) }
        #expect(throws: SystemError(ENOENT)) { try FileSystem.rename(none, to: path) }
        #expect(throws: SystemError(EEXIST)) { try FileSystem.link(path, to: path) }
        #expect(throws: SystemError(EEXIST)) { try FileSystem.makeFolder(path, mode: 0o700) }
        #expect(throws: SystemError(ENOTDIR)) { try FileSystem.removeFolder(path) }
        #expect(throws: SystemError(ENOTDIR)) { try FileSystem.syncFolder(path) }
        #expect(SystemError(ENOENT).message == "No such file or directory")
        #expect(!FileSystem.exists(none) && FileSystem.unreadable(none) != nil)
        #expect(MappedFile(path)?.withView { $0.count } == nil, "there is nothing to map of an empty file")
    }

    @Test("A write to a full disk is an error")
    func fullDisk() throws {
        let file = try OpenFile("/dev/full", O_WRONLY | O_CLOEXEC)
        let text: [UInt8] = [1, 2, 3]
        #expect(throws: SystemError(ENOSPC)) { try file.write(text) }
    }

    @Test("A folder lists the names that do not begin with a dot, up to the given number")
    func names() throws {
        for name in ["a", "b", ".c"] { _ = try self.made(name, "") }
        #expect(FileSystem.names(in: self.folder.path, countMax: 10)?.sorted() == ["a", "b"])
        #expect(FileSystem.names(in: self.folder.path, countMax: 1)?.count == 1)
        #expect(FileSystem.names(in: self.file("none"), countMax: 10) == nil)
        try FileSystem.rename(self.file("a"), to: self.file("b"))
        #expect(FileSystem.names(in: self.folder.path, countMax: 10) == ["b"])
    }

    @Test("A non-regular file is distinguished from one that cannot be opened, and reading never blocks")
    func ordinary() throws {
        let isMade = unsafe mkfifo(self.file("pipe"), 0o600) == 0
        #expect(isMade)
        for path in [self.file("pipe"), self.folder.path, "/dev/null"] {
            #expect(try OrdinaryFile.contents(path, bytesMax: 1) == nil)
            #expect(OrdinaryFile.isOther(path))
        }
        let none = self.file("none")
        #expect(throws: SystemError(ENOENT)) { try OrdinaryFile.contents(none, bytesMax: 1) }
        #expect(!OrdinaryFile.isOther(none))
    }

    /// Returns paths whose existing entries must not be replaced by a file.
    private func obstacles() throws -> [String] {
        let (pipe, device, nowhere) = (self.file("pipe"), self.file("device"), self.file("nowhere"))
        let areMade =
            unsafe mkfifo(pipe, 0o600) == 0 && symlink("/dev/null", device) == 0
            && symlink(self.file("none"), nowhere) == 0
        try #require(areMade)
        return [pipe, device, nowhere]
    }

    @Test("Only an ordinary file is replaced, or a link to one")
    func replacement() throws {
        let other = try self.made("other", "other")
        let link = self.file("link")
        let isLinked = unsafe symlink(other, link) == 0
        #expect(isLinked)
        for path in [self.file("free"), other, link] {
            try FileSystem.replaceFile(path, by: try self.made("draft", "new"))
            #expect(try OrdinaryFile.contents(path, bytesMax: 10) == Array("new".utf8))
            #expect(try FileSystem.linkStatus(path).kind == .file)
        }
        let draft = try self.made("draft", "new")
        for path in try self.obstacles() {
            let before = try FileSystem.linkStatus(path)
            #expect(throws: SystemError.notOrdinaryFile) { try FileSystem.replaceFile(path, by: draft) }
            #expect(throws: SystemError.notOrdinaryFile) {
                try OrdinaryFile.replace(path, with: [1], mode: 0o600)
            }
            #expect(try FileSystem.linkStatus(path) == before)
        }
        #expect(throws: SystemError(EISDIR)) { try FileSystem.replaceFile(self.folder.path, by: draft) }
        #expect(SystemError.notOrdinaryFile.message.contains("not a regular file"))
    }

    @Test("A file is written whole, and no temporary file remains")
    func wholeFile() throws {
        let path = try self.made("a", "before")
        try OrdinaryFile.replace(path, with: Array("after".utf8), mode: 0o600)
        #expect(try OrdinaryFile.contents(path, bytesMax: 10) == Array("after".utf8))
        #expect(try FileSystem.status(path).permissions == 0o600)
        let full: [UInt8] = [1]
        #expect(throws: SystemError(ENOENT)) {
            try OrdinaryFile.replace(self.file("none/b"), with: full, mode: 0o600)
        }
        #expect(FileSystem.names(in: self.folder.path, countMax: 10) == ["a"])
    }

    @Test(
        "A file is never moved to an existing name, with or without hard links",
        arguments: [(0, ENOSYS), (1, EPERM), (1, EMLINK), (2, EOPNOTSUPP), (2, ENOSYS)]
    )
    func unusedNames(calls: Int, error: Int32) throws {
        let faults = SystemFaults()
        faults.join()
        defer { SystemFaults.leave() }
        let other = self.file("b")
        let path = try self.made("a", "new")
        faults.fail(.link, number: 0, error: error, times: calls)
        try FileSystem.link(path, orRenameTo: other)
        #expect(faults.failureCount == calls)
        #expect(try OrdinaryFile.contents(other, bytesMax: 10) == Array("new".utf8))
        #expect(FileSystem.exists(path) == (calls == 0))
        let next = try self.made("c", "next")
        faults.fail(.link, number: 0, error: error, times: calls)
        #expect(throws: SystemError(EEXIST)) { try FileSystem.link(next, orRenameTo: other) }
        #expect(FileSystem.exists(next))
        #expect(try OrdinaryFile.contents(other, bytesMax: 10) == Array("new".utf8))
    }

    @Test("A file is closed with its value, unless its descriptor was released")
    func closing() throws {
        let path = try self.made("a", "x")
        // A lock ends when the file that holds it is closed.
        func isFree() throws -> Bool {
            let file = try OpenFile(path, O_RDONLY | O_CLOEXEC)
            return flock(file.descriptor, LOCK_EX | LOCK_NB) == 0
        }
        #expect(try isFree())
        let kept = try OpenFile(path, O_RDONLY | O_CLOEXEC).release()
        #expect(flock(kept, LOCK_EX | LOCK_NB) == 0)
        #expect(try !isFree())
        #expect(close(kept) == 0)
        #expect(try isFree())
    }
}

@Suite("Descriptors", .timeLimit(.minutes(15)))
struct DescriptorTests {
    @Test("A pipe is readable once it has data, and the written data is read")
    func waiting() throws {
        let pipe = try Descriptor.pipe()
        defer { for end in [pipe.reading, pipe.writing] { Descriptor.close(end) } }
        #expect(!Descriptor.wait(for: pipe.reading, .readable, milliseconds: 0))
        #expect(Descriptor.wait(for: pipe.writing, .writable, milliseconds: -1))
        var waits = [Descriptor.Wait(pipe.reading, .readable), Descriptor.Wait(pipe.writing, .writable)]
        #expect(Descriptor.wait(for: &waits, milliseconds: -1))
        #expect(waits.map(\.isOver) == [false, true])
        #expect(try Descriptor.write(pipe.writing, [1, 2, 3]) == 3)
        try [UInt8]([4, 5]).withByteView { try Descriptor.writeWhole(pipe.writing, $0) }
        #expect(Descriptor.wait(for: &waits, milliseconds: -1))
        #expect(waits.map(\.isOver) == [true, true])
        var room = [UInt8](repeating: 0, count: 8)
        #expect(try Descriptor.read(pipe.reading, into: &room) == 5)
        #expect(room == [1, 2, 3, 4, 5, 0, 0, 0])
    }

    @Test("A write to a closed descriptor fails")
    func nobody() {
        #expect(throws: SystemError(EBADF)) { try [UInt8]([1]).withByteView { try Descriptor.writeWhole(-1, $0) } }
        #expect(throws: SystemError(EBADF)) { try Descriptor.write(-1, [1]) }
    }

    @Test("A value arrives on another thread")
    func handover() throws {
        final class Count { var value = 1 }
        let moved = Handover(Count())
        let arrived = Atomic(0)
        try NamedThread("handover") {
            let count = moved.take()
            count.value += 1
            arrived.store(count.value, ordering: .relaxed)
        }.join()
        #expect(arrived.load(ordering: .relaxed) == 2)
    }
}
