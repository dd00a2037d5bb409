package import Engine
import Platform
package import ServiceManager
package import Storage
package import Wire

/// The files a gateway keeps in its state folder: beside a database the credentials alone.
package struct GatewayStore: Sendable {
    let folder: String
    let kind: GatewayConfiguration.Store
    private let acceptsLoss: Bool
    /// The limits of the history: those of memory when nothing is kept, whatever is configured for the file.
    package let historyLimits: HistoryLimits

    package init(_ configuration: GatewayConfiguration) {
        self.folder = configuration.stateFolder
        self.kind = configuration.store
        self.acceptsLoss = configuration.acceptsLoss
        self.historyLimits =
            switch configuration.store {
            case .memory: .inMemory
            case .sqlite, .postgresql:
                HistoryLimits(
                    bytesMax: configuration.limits.historyBytesMax,
                    ageMillisecondsMax: Int64(configuration.limits.historySeconds) * 1000
                )
            }
    }

    static let journalName = "journal.sqlite"

    var journalPath: String { "\(self.folder)/\(Self.journalName)" }

    private var historyPath: String { "\(self.folder)/history.sqlite" }

    /// Opens the journal, with a thread beside it that makes its checkpoints and lives as long as the process; nil
    /// when nothing is kept in a file.
    ///
    /// - Parameters:
    ///   - retention: what the history has made durable, and the journal need not keep any more.
    ///   - log: hears why a checkpoint failed, or which file is gone.
    package func openJournal(_ retention: EventRetention, _ log: GatewayLog) throws(StoreError) -> (any RecordStore)? {
        guard self.kind == .sqlite else { return nil }
        let journal = try Journal(
            path: self.journalPath,
            follower: self.historyPath,
            acceptsLoss: self.acceptsLoss
        )
        journal.retention = retention
        _ = try CheckpointThread(journal) { log.write(.checkpointFailed, ["cause": $0.message]) }
        return journal
    }

    /// The journal, for somebody who reads it and writes nothing.
    func journalToRead() throws(StoreError) -> Journal {
        try Journal(path: self.journalPath, follower: self.historyPath, acceptsLoss: self.acceptsLoss)
    }

    /// Reads from the journal what the history was without; nil when nothing is kept in a file.
    package var journalEvents: JournalEvents? { self.kind == .sqlite ? JournalEvents(path: self.journalPath) : nil }

    /// What a start would refuse of the journal, found without reading all of it; nil when there is nothing.
    package var journalFault: String? {
        self.kind == .sqlite ? Journal.fault(path: self.journalPath, follower: self.historyPath)?.message : nil
    }

    /// What the history numbers devices and pushes with; `save` makes the file that keeps it, where there is none. On
    /// a shared database the engine has the key of all gateways, and this one is for nothing.
    ///
    /// - Throws: when the file cannot be used.
    package func historyKey() throws(CredentialError) -> (key: HashKey, save: @Sendable () throws(StoreError) -> Void) {
        guard self.kind == .sqlite else { return (HistoryKey.passing(), {}) }
        let (key, save) = try HistoryKey.prepare(in: self.folder)
        return (
            key,
            { () throws(StoreError) in
                do throws(CredentialError) { try save() } catch { throw StoreError(message: error.message) }
            }
        )
    }

    /// Why a start would not get that key; nil when it would. Nothing is made.
    package var historyKeyFault: String? {
        do throws(CredentialError) {
            _ = try self.historyKey()
            return nil
        } catch { return error.message }
    }

    /// Whether there is a file of the history.
    var hasHistory: Bool { self.kind == .sqlite && FileSystem.exists(self.historyPath) }

    /// Opens the history, in memory when nothing is kept in a file.
    package func openHistory(key: HashKey, onTrouble: @escaping @Sendable (HistoryTrouble) -> Void) -> HistoryFile {
        let path: String? =
            switch self.kind {
            case .memory, .postgresql: nil
            case .sqlite: self.historyPath
            }
        return HistoryFile(path: path, key: key, limits: self.historyLimits, onTrouble: onTrouble)
    }
}
