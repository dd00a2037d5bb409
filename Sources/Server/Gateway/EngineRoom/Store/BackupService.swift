import Dispatch
package import Engine
import FoundationEssentials
import Glibc
import Platform
import Storage
package import Wire

/// A service that copies the state of a running gateway into folders from which a gateway can start.
///
/// A copy contains the journal, and the keys and revocations: without them, a gateway started from the copy would admit
/// callers that this gateway refuses. A copy gets its name only when it is complete and synced, so a crash never leaves
/// an incomplete copy under that name.
package final class BackupService: Sendable {
    private let store: GatewayStore
    private let mailboxes: PerOutput<LoopMailbox>
    /// The serial queue on which copies are made and removed.
    private let queue = DispatchQueue(label: "backup")

    package init(store: GatewayStore, mailboxes: PerOutput<LoopMailbox>) {
        self.store = store
        self.mailboxes = mailboxes
    }

    /// Removes the incomplete copies of a killed process, in the background.
    ///
    /// This is safe because only one gateway uses the state folder, and it makes one copy at a time.
    package func removeLeftovers() {
        guard self.store.kind == .sqlite else { return }
        self.queue.async { Self.removeLeftovers(in: self.backups) }
    }

    private var backups: String { "\(self.store.folder)/backups" }

    /// Makes a copy in the background, and answers `reply` when the copy is complete or has failed.
    ///
    /// - Throws: `APIError` if `name` is not a valid name, or the gateway has no journal to copy.
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
                let path = try self.make(name)
                outcome = .object(status: 201) { writer in
                    writer.member("name", name)
                    writer.member("path", path)
                }
            } catch {
                outcome = .refused(error)
            }
            var effects = EffectBatch()
            effects.append(outcome, to: reply)
            self.mailboxes[reply].deliver(&effects)
        }
    }

    /// - Returns: the path of the copy's folder.
    private func make(_ name: String) throws(APIError) -> String {
        let backups = self.backups
        let folder = "\(backups)/\(name)"
        let partial = "\(backups)/.\(name)\(Self.partialEnd)"
        guard !FileSystem.exists(folder) else { throw .backupExists(name) }
        Self.removeLeftovers(in: backups)
        do throws(StoreError) {
            try Self.makeFolder(backups)
            try Self.sync(self.store.folder)
            try self.checkSpace(in: backups)
            try Self.makeFolder(partial)
            try JournalBackup.make(of: self.store.journalPath, to: "\(partial)/\(GatewayStore.journalName)")
            // Copied after the journal, so that the copy contains every revocation made before the journal was copied.
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

    /// The space in bytes that a backup leaves for the journal and the delivery log, which grow during the copy.
    private static let reserveBytes: Int64 = 512 << 20

    /// Checks that a copy of the journal fits, because a full disk would also stop the gateway's own commits.
    private func checkSpace(in folder: String) throws(StoreError) {
        let path = self.store.journalPath
        func device(_ path: String) -> UInt64? { (try? FileSystem.status(path))?.identity.device }
        guard device(folder) == device(self.store.folder) else { return }
        let size = [path, path + "-wal"].reduce(0) { $0 + Int64((try? FileSystem.status($1))?.size ?? 0) }
        guard let free = try? FileSystem.freeBytes(at: folder), free < size + Self.reserveBytes else { return }
        throw StoreError(
            message: "The copy has up to \(size) bytes and leaves \(Self.reserveBytes) for the gateway, but \(folder) "
                + "has only \(free). Free some space there."
        )
    }

    /// The suffix of an incomplete copy's folder name. The name also begins with a dot.
    private static let partialEnd = ".partial"

    /// Removes all incomplete copies.
    private static func removeLeftovers(in backups: String) {
        for name in self.names(in: backups) where name.hasPrefix(".") && name.hasSuffix(self.partialEnd) {
            guard self.isName(String(name.dropFirst().dropLast(self.partialEnd.count))) else { continue }
            self.remove("\(backups)/\(name)")
        }
    }

    /// Removes an incomplete copy. Files that this service does not create stay, and so does their folder.
    private static func remove(_ partial: String) {
        // A symbolic link was not created by this service.
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
        return name.utf8.allSatisfy { $0.isLetterOrDigit(or: "._-") }
    }
}
