package import Engine
import Platform
package import ServiceManager
package import Storage
package import Wire

/// The files of a gateway in its state folder. A gateway with a database keeps only its credentials there.
package struct GatewayStore: Sendable {
    let folder: String
    let kind: GatewayConfiguration.Store
    private let acceptsJournalLoss: Bool
    /// The limits of the history: the configured ones, or fixed ones if the gateway stores nothing.
    package let historyLimits: HistoryLimits

    package init(_ configuration: GatewayConfiguration) {
        self.folder = configuration.stateFolder
        self.kind = configuration.store
        self.acceptsJournalLoss = configuration.acceptsJournalLoss
        self.historyLimits =
            configuration.store == .memory
            ? .inMemory
            : HistoryLimits(
                bytesMax: configuration.limits.historyBytesMax,
                ageMillisecondsMax: Int64(configuration.limits.historySeconds) * 1000
            )
    }

    static let journalName = "journal.sqlite"

    var journalPath: String { "\(self.folder)/\(Self.journalName)" }

    private var historyPath: String { "\(self.folder)/history.sqlite" }

    /// Opens the journal; returns nil if the gateway has no journal file. A separate thread makes the checkpoints until
    /// the process ends.
    ///
    /// - Parameters:
    ///   - retention: the events that the history has made durable, which the journal need not keep.
    ///   - log: receives the reason if a checkpoint fails or one of the journal's files is missing.
    package func openJournal(_ retention: EventRetention, _ log: GatewayLog) throws(StoreError) -> (any RecordStore)? {
        guard self.kind == .sqlite else { return nil }
        let journal = try Journal(
            path: self.journalPath,
            dependentFile: self.historyPath,
            acceptsLoss: self.acceptsJournalLoss
        )
        journal.retention = retention
        _ = try CheckpointThread(journal) { log.write(.checkpointFailed, ["cause": $0.message]) }
        return journal
    }

    /// Opens the journal for a caller that only reads it.
    func journalToRead() throws(StoreError) -> Journal {
        try Journal(path: self.journalPath, dependentFile: self.historyPath, acceptsLoss: self.acceptsJournalLoss)
    }

    /// A reader for the journal's events that the history lacks; nil if the gateway has no journal file.
    package var journalEvents: JournalEvents? { self.kind == .sqlite ? JournalEvents(path: self.journalPath) : nil }

    /// The journal's fault that would prevent a start; nil if none is found. Only a part of the journal is read.
    package var journalFault: String? {
        self.kind == .sqlite ? Journal.fault(path: self.journalPath, dependentFile: self.historyPath)?.message : nil
    }

    /// Returns the key with which the history numbers devices and pushes. If the key is new, `save` creates its file.
    ///
    /// With a shared database, the engine uses the key that all gateways share instead.
    ///
    /// - Throws: `CredentialError` if the key's file cannot be used.
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

    /// The reason why a start could not use the history's key; nil if it could. Reading this creates no file.
    package var historyKeyFault: String? {
        do throws(CredentialError) {
            _ = try self.historyKey()
            return nil
        } catch { return error.message }
    }

    /// True if the history's file exists.
    var hasHistory: Bool { self.kind == .sqlite && FileSystem.exists(self.historyPath) }

    /// Opens the history. Without a journal file, the history is in memory.
    package func openHistory(key: HashKey, onFailure: @escaping @Sendable (HistoryFailure) -> Void) -> HistoryFile {
        let path = self.kind == .sqlite ? self.historyPath : nil
        return HistoryFile(path: path, key: key, limits: self.historyLimits, onFailure: onFailure)
    }
}
