import Dispatch
package import Engine
import FoundationEssentials
import Glibc
import Platform
import Storage
package import Wire

/// Copies the state, while the gateway goes on, into folders that a gateway can be started on: the journal, and the
/// keys and revocations without which one would let in whom this gateway refuses.
///
/// A copy appears under its name when it is whole and on the disk; a crash before that leaves nothing of that name.
package final class BackupService: Sendable {
    private let store: GatewayStore
    private let mailboxes: PerOutlet<LoopMailbox>
    /// One copy at a time.
    private let queue = DispatchQueue(label: "backup")

    package init(store: GatewayStore, mailboxes: PerOutlet<LoopMailbox>) {
        self.store = store
        self.mailboxes = mailboxes
    }

    /// Removes what copies left behind during which the process was killed; nobody waits for that.
    ///
    /// The state folder has one gateway at a time, and that makes one copy at a time.
    package func removeLeftovers() {
        guard self.store.kind == .sqlite else { return }
        self.queue.async { Self.removeLeftovers(in: self.backups) }
    }

    private var backups: String { "\(self.store.folder)/backups" }

    /// Makes a copy and answers `reply` when it is done.
    ///
    /// - Throws: `APIError` when `name` is no name for a folder.
    package func start(_ name: String, reply: StreamAddress) throws(APIError) {
        switch self.store.kind {
        case .sqlite: break
        case .memory: throw .nothingStored
        case .postgresql: throw .storedInDatabase
        }
        guard Self.isName(name) else { throw .badName }
        self.queue.async {
            let outcome: Outcome
            do throws(APIError) {
                outcome = .backedUp(name: name, path: try self.make(name))
            } catch {
                outcome = .refused(error)
            }
            var effects = EffectBatch()
            effects.append(outcome, to: reply)
            self.mailboxes[reply].deliver(&effects)
        }
    }

    /// - Returns: the folder's path.
    private func make(_ name: String) throws(APIError) -> String {
        let backups = self.backups
        let folder = "\(backups)/\(name)"
        let partial = "\(backups)/.\(name)\(Self.partialEnd)"
        guard !FileSystem.exists(folder) else { throw .backupExists(name) }
        Self.removeLeftovers(in: backups)
        do throws(StoreError) {
            try Self.makeFolder(backups)
            try Self.makeFolder(partial)
            try JournalBackup.make(of: self.store.journalPath, to: "\(partial)/\(GatewayStore.journalName)")
            // Behind the journal: a token that was revoked before it was copied is revoked in the copy.
            do throws(CredentialError) { try SecretFiles.copy(from: self.store.folder, to: partial) } catch {
                throw StoreError(message: error.message)
            }
            try Self.sync(partial)
            try Self.attempt(folder) { () throws(SystemError) in try FileSystem.rename(partial, to: folder) }
            try Self.sync(backups)
        } catch {
            Self.remove(partial)
            throw .backupFailed(error)
        }
        return folder
    }

    /// What the name of a folder ends with that is not whole; it begins with a dot.
    private static let partialEnd = ".partial"

    /// Removes every folder that is not whole.
    private static func removeLeftovers(in backups: String) {
        for name in self.names(in: backups) where name.hasPrefix(".") && name.hasSuffix(self.partialEnd) {
            guard self.isName(String(name.dropFirst().dropLast(self.partialEnd.count))) else { continue }
            self.remove("\(backups)/\(name)")
        }
    }

    /// Removes a folder that is not whole, but for what no copy puts there: then the folder stays too.
    private static func remove(_ partial: String) {
        // A link is somebody else's.
        guard (try? FileSystem.linkStatus(partial))?.kind == .folder else { return }
        for name in self.names(in: partial)
        where name.hasPrefix(GatewayStore.journalName) || SecretFiles.names.contains(name) {
            try? FileSystem.remove("\(partial)/\(name)")
        }
        try? FileSystem.removeFolder(partial)
    }

    private static func names(in folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    private static func makeFolder(_ path: String) throws(StoreError) {
        try self.attempt(path) { () throws(SystemError) in
            do throws(SystemError) { try FileSystem.makeFolder(path, mode: 0o700) } catch {
                guard error.number == EEXIST else { throw error }
            }
        }
    }

    private static func sync(_ folder: String) throws(StoreError) {
        try self.attempt(folder) { () throws(SystemError) in try FileSystem.syncFolder(folder) }
    }

    private static func attempt(_ path: String, _ body: () throws(SystemError) -> Void) throws(StoreError) {
        do throws(SystemError) { try body() } catch {
            let message = "\(path) cannot be written (\(error.message)); see to its permissions, and to free space."
            throw StoreError(message: message)
        }
    }

    private static func isName(_ name: String) -> Bool {
        guard (1...64).contains(name.utf8.count), name.utf8.first != UInt8(ascii: ".") else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }
}
