import Platform
import Storage
import Synchronization
import Testing
import TransferAgent
import WakeGateTestKit

@Suite("An agent's stored data is restored unchanged")
struct StoreTests {
    private let folder: TemporaryFolder

    private var path: String { "\(self.folder.path)/t.sqlite" }

    init() throws { self.folder = try TemporaryFolder() }

    private static func transfer(_ sequence: Int64) -> Transfer {
        Transfer(
            id: TransferID((UInt64.max - 1, UInt64(sequence))),
            sequence: sequence,
            session: 3,
            host: "https://h:443",
            kind: .download,
            createdAt: 5,
            deadline: 1000,
            notBefore: 7
        )
    }

    @Test("A transfer is restored with all its data")
    func transfers() throws {
        var spec = TransferSpec(url: "https://u:p@h/ä?\"q\"")
        spec.method = "POST"
        spec.headers = [.init("authorization", "Bearer \\x"), .init("x", "")]
        spec.sha256 = String(repeating: "ab", count: 32)
        spec.bytesMax = Int64.max
        spec.requestTimeout = 1500
        spec.note = "line\nbreak"
        var details = TransferDetails()
        details.failure = .init(reason: "HTTPStatus", message: "503")
        details.part = PartFile(file: "f", validator: "\"e\"", total: 9, synced: 4, boot: "b")
        details.destination = "/to"
        let first = try TransferStore(path: self.path)
        let transfer = Self.transfer(1)
        try first.commit([
            .putSession(3, Array("{}".utf8)), .insertTransfer(transfer, spec, TransferDetails()),
            .insertTransfer(Self.transfer(2), spec, TransferDetails()),
            .updateTransfer(transfer, details), .deleteTransfer(sequence: 2),
        ])
        let second = try TransferStore(path: self.path)
        let found = try #require(try second.record(1))
        #expect(found.spec == spec && found.details == details)
        #expect(try second.record(2) == nil)
        var all: [TransferStore.Stored] = []
        try second.transfers { all.append($0) }
        #expect(all.map(\.transfer) == [transfer] && all.first?.details == details)
    }

    @Test("An event for the gateway, and a part that is kept")
    func others() throws {
        let store = try TransferStore(path: self.path)
        var entry = OutboxEntry(sequence: 4, device: "0b", session: "s", finished: 2, event: "e")
        entry.wasTried = true
        let part = PartFile(file: "f", validator: nil, total: -1, synced: 0, boot: "")
        let resumable = ResumablePart(session: 3, url: "u", part: part, keptAt: 8)
        try store.commit([.putOutbox(entry), .putResumablePart(resumable)])
        #expect(try store.outbox() == [entry] && store.resumableParts() == [resumable])
        try store.commit([.deleteOutbox(sequence: 4), .deleteResumablePart(file: "f")])
        #expect(try store.outbox().isEmpty && store.resumableParts().isEmpty)
    }

    @Test("A new store next to files of transfers is refused, however often it is tried")
    func leftBehind() throws {
        for _ in 0..<2 {
            #expect(throws: SQLiteError.self) { try TransferStore(path: self.path, hasTransferFiles: true) }
        }
        _ = try TransferStore(path: self.path)
        _ = try TransferStore(path: self.path, hasTransferFiles: true)
    }

    @Test("On a full disk the reserve gives space to a commit, and is reserved again when there is space")
    func reserve() throws {
        let path = "\(self.folder.path)/reserve"
        func size() throws -> Int { try FileSystem.status(path).size }
        let free = Mutex<Int64>(1 << 30)
        let disk = SimulatedDisk()
        let store = try TransferStore(
            path: "/transfers.sqlite",
            reserve: CommitReserve(path: path) { free.withLock { $0 } },
            vfs: disk.vfsName
        ) { _ throws(SQLiteError) in }
        #expect(try size() == CommitReserve.bytes)
        free.withLock { $0 = 0 }
        for number in 1...2 {
            let entry = OutboxEntry(sequence: Int64(number), device: "0b", session: "s", finished: 1, event: "e")
            disk.failOperation(0, .noSpace)
            let stored = Result { try store.commit([.putOutbox(entry)]) }
            #expect(disk.metFault)
            // There is one reserve.
            #expect(((try? stored.get()) != nil) == (number == 1))
            #expect(try size() == 0 && store.outbox().count == 1)
        }
        free.withLock { $0 = 1 << 30 }
        disk.count(.changes)
        try store.commit([.deleteOutbox(sequence: 1)])
        #expect(try size() == CommitReserve.bytes)
        // A start finds the file, and frees it before it needs space itself.
        free.withLock { $0 = 1 << 20 }
        let next = CommitReserve(path: path) { free.withLock { $0 } }
        _ = try TransferStore(path: self.path, reserve: next)
        #expect(try size() == 0)
    }

    @Test("A commit with a failing part stores nothing")
    func atomic() throws {
        let store = try TransferStore(path: self.path)
        let transfer = Self.transfer(1)
        let spec = TransferSpec(url: "http://h/")
        let insert = StoreWrite.insertTransfer(transfer, spec, TransferDetails())
        #expect(throws: SQLiteError.self) { try store.commit([insert, insert]) }
        #expect(try store.record(1) == nil)
        try store.commit([insert])
        #expect(try store.record(1)?.spec == spec)
    }

    @Test("Commits survive a power loss, wherever an earlier process died")
    func powerLoss() throws {
        func open(_ disk: SimulatedDisk) throws -> TransferStore {
            try TransferStore(path: "/transfers.sqlite", vfs: disk.vfsName) { _ throws(SQLiteError) in
                guard disk.syncFolder() else { throw SQLiteError(kind: .io, message: "no sync") }
            }
        }
        let early = OutboxEntry(sequence: 1, device: "0b", session: "s", finished: 1, event: "e")
        let late = OutboxEntry(sequence: 2, device: "0b", session: "s", finished: 2, event: "f")
        var operation = 0
        var hasMetFault = true
        while hasMetFault {
            let disk = SimulatedDisk()
            disk.failOperation(operation, .kill)
            try? open(disk).commit([.putOutbox(early)])
            hasMetFault = disk.metFault
            disk.killProcess()
            disk.count(.changes)
            let store = try open(disk)
            // The entries that the first process has left are shown to callers. From then on, they are a promise.
            let found = try store.outbox()
            try store.commit([.putOutbox(late)])
            // The store is not closed before, because that would move everything into the database file.
            withExtendedLifetime(store) { disk.losePower() }
            let left = try open(disk).outbox()
            #expect(left == found + [late], "the first process died at operation \(operation)")
            operation += 1
        }
        #expect(operation > 10)
    }
}
