import Dispatch
import Foundation
import Glibc
import Platform
import Synchronization
import Testing
import TransferAgent
import WakeGateTestKit
import Wire

@Suite("Files of a state folder")
final class StateFilesTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    private let files: StateFiles

    /// A destination for a file.
    private var place: String { self.folder + "/place/file" }

    init() throws {
        try FileManager.default.createDirectory(atPath: self.folder + "/place", withIntermediateDirectories: true)
        self.files = try StateFiles(folder: self.folder + "/files", bytesMax: 1 << 30, reserve: 0)
    }

    deinit { try? FileManager.default.removeItem(atPath: self.folder) }

    private func write(_ text: String, _ name: String) throws -> StateFiles.Writing {
        let writing = try self.files.create(name)
        // A closure that throws `SystemError` crashes the compiler here (Swift 6.3.1).
        let isWritten = text.withByteView { (try? writing.write($0)) != nil }
        try #require(isWritten)
        self.files.used(text.utf8.count)
        return writing
    }

    @Test("A file is whole when its length and its checksum are right")
    func finish() throws {
        let writing = try self.write("abc", "f")
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        #expect(self.files.finish(writing, bytes: 3, sha256: sum) == .whole(sha256: sum))
        #expect(self.files.finish(writing, bytes: 3, sha256: nil) == .whole(sha256: nil))
        let other = String(repeating: "0", count: 64)
        #expect(
            self.files.finish(writing, bytes: 3, sha256: other) == .fault(.badChecksum(expected: other, found: sum))
        )
        #expect(self.files.finish(writing, bytes: 4, sha256: nil).reason == "ConnectionFailed", "it is too short")
        let status = try FileSystem.status(self.files.path("f"))
        #expect(status.permissions == 0o600)
    }

    @Test("A file is whole on a file system that cannot sync folders")
    func folderWithoutSync() throws {
        // The kernel's folder of descriptors cannot be synced. Each file has the number of a descriptor as its name.
        // The folder of the process is empty, because its first thread has ended.
        let kept = try self.write("abc", "f")
        let writing = try self.write("abc", "\(kept.descriptor)")
        let descriptors = try StateFiles(folder: "/proc/thread-self/fd", bytesMax: 1 << 30, reserve: 0)
        #expect(throws: SystemError(EINVAL)) { try FileSystem.syncFolder(descriptors.folder) }
        withExtendedLifetime(kept) {
            #expect(descriptors.finish(writing, bytes: 3, sha256: nil) == .whole(sha256: nil))
        }
    }

    @Test("Only synced bytes are trusted after another boot")
    func reopen() throws {
        _ = try self.write("abcdef", "f")
        var part = PartFile(file: "f", validator: nil, total: -1, synced: 4, boot: self.files.boot)
        #expect(try self.files.reopen(part).offset == 6)
        part.boot = "another"
        #expect(try self.files.reopen(part).offset == 4)
        #expect(try FileSystem.status(self.files.path("f")).size == 4 && self.files.used == 4)
        part.file = "g"
        #expect(throws: SystemError.self) { try self.files.reopen(part) }
    }

    @Test("After a failed sync, a file never counts as synced, because the system reports lost bytes only once")
    func failedSync() throws {
        let writing = try self.write("abc", "f")
        let file = dup(writing.descriptor)
        var pipe: [Int32] = [0, 0]
        #expect(unsafe Glibc.pipe(&pipe) == 0)
        defer { for descriptor in [file] + pipe { close(descriptor) } }
        // A pipe cannot be synced.
        dup2(pipe[1], writing.descriptor)
        #expect(throws: SystemError(EINVAL)) { try writing.sync() }
        dup2(file, writing.descriptor)
        #expect(throws: SystemError(EINVAL)) { try writing.sync() }
        #expect("d".withByteView { (try? writing.write($0)) == nil })
        #expect(self.files.finish(writing, bytes: 3, sha256: nil).reason == "FileUnwritable", "bytes are lost")
    }

    @Test("A file is moved once, with and without hard links, and replaces only a file, on request", arguments: [0, 2])
    func take(linkFaults: Int) throws {
        let faults = SystemFaults()
        faults.join()
        defer { SystemFaults.leave() }
        _ = try self.write("abc", "f")
        let place = self.place
        faults.fail(.link, number: 0, error: EOPNOTSUPP, times: linkFaults)
        try self.files.take("f", to: place, replaces: false)
        #expect(try String(contentsOfFile: place, encoding: .utf8) == "abc" && self.files.used == 0)
        _ = try self.write("def", "g")
        #expect(throws: StateFiles.TakeFault.exists) { try self.files.take("g", to: place, replaces: false) }
        #expect(!self.files.finishMove("g", to: place))
        try self.files.take("g", to: place, replaces: true)
        #expect(try String(contentsOfFile: place, encoding: .utf8) == "def")
        #expect(self.files.finishMove("g", to: place))
        _ = try self.write("x", "h")
        let pipe = self.folder + "/place/pipe"
        let isMade = unsafe mkfifo(pipe, 0o600) == 0
        try #require(isMade)
        let before = try FileSystem.linkStatus(pipe)
        for path in ["relative", self.folder + "/", self.folder, "/nowhere/at/all", self.folder + "/..", pipe] {
            let fault = #expect(throws: StateFiles.TakeFault.self, "\(path)") {
                try self.files.take("h", to: path, replaces: true)
            }
            guard case .badPath(let words)? = fault, path != pipe || words.contains("not a regular file") else {
                Issue.record("\(path): \(String(describing: fault))")
                continue
            }
        }
        #expect(try FileSystem.linkStatus(pipe) == before && FileSystem.exists(self.files.path("h")))
    }

    @Test("Concurrent downloads never reserve the same space")
    func claims() throws {
        let free = Atomic<Int64>(60_000_000)
        let files = try StateFiles(folder: self.folder, bytesMax: 1 << 40, reserve: 16_000_000) { _ in
            free.load(ordering: .relaxed)
        }
        let claims = (0..<4).map { _ in StateFiles.Claim(in: files) }
        #expect(claims[0].claim(25_000_000) == 0)
        #expect(claims[1].claim(25_000_000) == 6_000_000)
        #expect(claims[1].fault(missing: 1, of: 44_000_000) == .spaceClaimed(missingBytes: 1))
        #expect(claims[1].fault(missing: 1, of: 44_000_001) == .noSpace(missingBytes: 1))
        #expect(claims[1].claim(19_000_000) == 0)
        #expect(claims[2].claim(1) == 1 && files.missing(for: 1) == 1)
        claims[0].used(5_000_000)
        free.subtract(5_000_000, ordering: .relaxed)
        #expect(files.used == 5_000_000 && files.missing(for: 1) == 1)
        claims[1].release()
        #expect(claims[2].claim(19_000_000) == 0)
        // A changed entity gets a new claim, which replaces the previous one.
        #expect(claims[0].claim(20_000_001) == 1 && claims[0].claim(20_000_000) == 0)
        withExtendedLifetime(claims) {}
    }

    @Test(
        "Downloads of unknown length leave the reserve of the disk, and keep to limits.stateBytes",
        arguments: [(60_000_000, 1 << 40), (1 << 40, 44_000_000)] as [(Int64, Int64)]
    )
    func chunkedClaims(bytes: Int64, bytesMax: Int64) throws {
        let free = Atomic<Int64>(bytes)
        let files = try StateFiles(folder: self.folder, bytesMax: bytesMax, reserve: 16_000_000) { _ in
            free.load(ordering: .relaxed)
        }
        let claims = (0..<4).map { _ in StateFiles.Claim(in: files) }
        var running = claims[...]
        for claim in claims { #expect(claim.claim(0) == 0) }
        while !running.isEmpty {
            running = running.filter { claim in
                guard claim.missing(for: 16_384) == 0 else { return false }
                claim.used(16_384)
                free.subtract(16_384, ordering: .relaxed)
                return true
            }
        }
        // The unused space is smaller than five pieces: one for each of the four downloads, and one more.
        #expect(files.used <= 44_000_000 && files.used > 44_000_000 - 5 * 16_384)
    }

    @Test("A download of known length fails before its end when the disk fills up")
    func filledByOthers() throws {
        let free = Atomic<Int64>(30_000_000)
        let files = try StateFiles(folder: self.folder, bytesMax: 1 << 40, reserve: 16_000_000) { _ in
            free.load(ordering: .relaxed)
        }
        let claim = StateFiles.Claim(in: files)
        #expect(claim.claim(10_000_000) == 0 && claim.missing(for: 16_384) == 0)
        free.store(20_000_000, ordering: .relaxed)
        claim.used(2_000_000)
        #expect(claim.missing(for: 16_384) == 4_000_000)
    }

    @Test("No file is taken into the agent's own folders, and a missing file is distinguished from a bad path")
    func ownFolders() throws {
        _ = try self.write("abc", "f")
        for path in [self.folder + "/transfers.sqlite", self.files.path("g"), self.folder + "/files/../lock"] {
            let fault = #expect(throws: StateFiles.TakeFault.self) {
                try self.files.take("f", to: path, replaces: true)
            }
            guard case .badPath(let words)? = fault, words.contains("own folder") else {
                Issue.record("\(path): \(String(describing: fault))")
                continue
            }
        }
        #expect(throws: StateFiles.TakeFault.gone) { try self.files.take("g", to: self.place, replaces: false) }
        #expect(FileSystem.exists(self.files.path("f")))
    }

    @Test("The leftover of an interrupted copy is removed, and no other file")
    func leftover() throws {
        for name in [".f.wakegate", ".g.wakegate", "file"] {
            #expect(FileManager.default.createFile(atPath: self.folder + "/place/" + name, contents: nil))
        }
        _ = self.files.finishMove("f", to: self.place)
        let left = try FileManager.default.contentsOfDirectory(atPath: self.folder + "/place")
        #expect(Set(left) == [".g.wakegate", "file"])
    }

    @Test("The end of the agent interrupts the check of a whole file")
    func end() throws {
        let writing = try self.write("abc", "f")
        self.files.end()
        let found = self.files.finish(writing, bytes: 3, sha256: String(repeating: "0", count: 64))
        #expect(found.reason == "FileUnwritable")
        #expect(FileSystem.exists(self.files.path("f")))
    }

    @Test("A file is moved to another file system completely, and replaces another file only on request")
    func acrossFileSystems() throws {
        let other = "/dev/shm/wg-\(UUID().uuidString)"
        guard (try? FileSystem.makeFolder(other, mode: 0o700)) != nil else { return }
        defer { try? FileManager.default.removeItem(atPath: other) }
        let content = String(repeating: "0123456789", count: 300_000)
        _ = try self.write(content, "f")
        // If both are on one file system, this test proves less, but it stays correct.
        let isOther = (try? FileSystem.link(self.files.path("f"), to: "\(other)/link")) == nil
        try self.files.take("f", to: "\(other)/place", replaces: false)
        #expect(try String(contentsOfFile: "\(other)/place", encoding: .utf8) == content && self.files.used == 0)
        #expect(
            try FileSystem.status("\(other)/place").permissions == 0o600 && !FileSystem.exists(self.files.path("f"))
        )
        _ = try self.write("second", "g")
        #expect(throws: StateFiles.TakeFault.exists) { try self.files.take("g", to: "\(other)/place", replaces: false) }
        #expect(FileSystem.exists(self.files.path("g")) && self.files.used == 6)
        // The rest of a copy that a crash interrupted does not prevent the move.
        try "half".write(toFile: "\(other)/.g.wakegate", atomically: false, encoding: .utf8)
        try self.files.take("g", to: "\(other)/place", replaces: true)
        #expect(try String(contentsOfFile: "\(other)/place", encoding: .utf8) == "second" && self.files.used == 0)
        let names = Set(FileSystem.names(in: other, countMax: 10) ?? [])
        #expect(names == (isOther ? ["place"] : ["place", "link", ".g.wakegate"]))
    }

    @Test("A move that a crash interrupted is distinguished from one that was not made")
    func cutShort() throws {
        _ = try self.write("abc", "f")
        let place = self.place
        #expect(!self.files.finishMove("f", to: place) && FileSystem.exists(self.files.path("f")))
        try FileSystem.link(self.files.path("f"), to: place)
        #expect(
            self.files.finishMove("f", to: place) && !FileSystem.exists(self.files.path("f")) && self.files.used == 0
        )
        _ = try self.write("abc", "g")
        try "abd".write(toFile: place, atomically: false, encoding: .utf8)
        #expect(!self.files.finishMove("g", to: place))
        try "abc".write(toFile: place, atomically: false, encoding: .utf8)
        // The comparison ends with the agent, whose next start repeats it.
        self.files.end()
        #expect(!self.files.finishMove("g", to: place))
        #expect(
            try StateFiles(folder: self.files.folder, bytesMax: 1 << 30, reserve: 0).finishMove("g", to: place)
                && !FileSystem.exists(self.files.path("g"))
        )
    }

    @Test("An interrupted move of a large file is completed in parts")
    func cutShortInParts() throws {
        let content = String(repeating: "x", count: 34 << 20)
        _ = try self.write(content, "f")
        try content.write(toFile: self.place, atomically: false, encoding: .utf8)
        let move = InterruptedMove("f", to: self.place, in: self.files)
        #expect(move.step() == nil && move.step() == nil)
        #expect(move.step() == true && !FileSystem.exists(self.files.path("f")))
    }

    @Test("If the folder cannot be synced, an interrupted move is complete only if it cannot be repeated")
    func cutShortWithoutSync() throws {
        let faults = SystemFaults()
        faults.join()
        defer { SystemFaults.leave() }
        _ = try self.write("abc", "f")
        try FileSystem.link(self.files.path("f"), to: self.place)
        faults.fail(.sync, number: 0, error: EIO, times: 2)
        #expect(!self.files.finishMove("f", to: self.place) && FileSystem.exists(self.files.path("f")))
        self.files.remove("f")
        #expect(self.files.finishMove("f", to: self.place) && faults.failureCount == 2)
    }

    @Test("Unknown files are removed, and the rest counts against stateBytesMax")
    func cleaned() throws {
        _ = try self.write("abc", "f")
        _ = try self.write("abc", "g")
        let files = try StateFiles(folder: self.files.folder, bytesMax: 10, reserve: 0)
        #expect(files.removeFiles(except: ["f"]) == 1 && files.used == 3)
        #expect(!FileSystem.exists(files.path("g")))
        #expect(files.missing(for: 7) == 0 && files.missing(for: 9) == 2)
        files.remove("f")
        #expect(files.used == 0)
    }

    @Test("A removed folder is created again")
    func vanished() throws {
        try FileManager.default.removeItem(atPath: self.files.folder)
        _ = try self.write("abc", "f")
        #expect(FileSystem.exists(self.files.path("f")))
    }

    @Test("A large file does not block others: later work is done between its parts")
    func turns() throws {
        // Three parts, of which only the first one syncs.
        let content = String(repeating: "x", count: 34 << 20)
        let look = FileVerification(
            try self.write(content, "f"),
            bytes: Int64(content.utf8.count),
            sha256: String(repeating: "0", count: 64),
            in: self.files
        )
        let worker = try FileWorker("turns")
        let done = Mutex<[String]>([])
        let end = DispatchSemaphore(value: 0)
        worker.submit {
            if done.withLock({ $0.isEmpty }) {
                worker.submit {
                    done.withLock { $0.append("small") }
                    return false
                }
            }
            done.withLock { $0.append("part") }
            guard look.step() == nil else {
                done.withLock { $0.append("whole") }
                end.signal()
                return false
            }
            return true
        }
        #expect(end.wait(timeout: .now() + 60) == .success)
        worker.stop()
        #expect(done.withLock { $0 } == ["part", "small", "part", "part", "part", "whole"])
    }
}

extension FileVerification.Finish {
    /// The reason why a file is not whole; nil if it is.
    fileprivate var reason: String? { if case .fault(let fault) = self { fault.reason } else { nil } }
}

extension StateFiles {
    /// Checks a written file to the end.
    func finish(_ writing: Writing, bytes: Int64, sha256: String?) -> FileVerification.Finish {
        let look = FileVerification(writing, bytes: bytes, sha256: sha256, in: self)
        while true {
            if let finish = look.step() { return finish }
        }
    }

    /// Completes an interrupted move, to the end.
    func finishMove(_ name: String, to path: String) -> Bool {
        let move = InterruptedMove(name, to: path, in: self)
        while true {
            if let isTaken = move.step() { return isTaken }
        }
    }

    /// Moves a file to its destination, to the end.
    func take(_ name: String, to path: String, replaces: Bool) throws(TakeFault) {
        let move = FileMove(name, to: path, replaces: replaces, in: self)
        while try !move.step() {}
    }
}
