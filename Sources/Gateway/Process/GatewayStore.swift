import DeviceEngine
import DeviceJournal
import History

/// The files a gateway keeps in its state folder.
struct GatewayStore: Sendable {
    let folder: String
    let kind: GatewayConfiguration.Store

    init(_ configuration: GatewayConfiguration) {
        self.folder = configuration.stateFolder
        self.kind = configuration.store
    }

    /// Opens the journal; nil when nothing is kept.
    func openJournal() throws(StoreError) -> (any RecordStore)? {
        switch self.kind {
        case .memory: nil
        case .sqlite: nil
        }
    }

    /// Opens the history, in memory when nothing is kept.
    func openHistory(onTrouble: @escaping @Sendable (String) -> Void) -> HistoryFile {
        let path = self.kind == .memory ? nil : "\(self.folder)/history.sqlite"
        return HistoryFile(path: path, limits: HistoryLimits(), onTrouble: onTrouble)
    }
}
