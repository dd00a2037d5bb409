package import Bytes
package import DeviceEngine
import SQLite

/// Reads what a journal's file holds, on a connection of its own, and changes nothing.
package enum JournalReader {
    /// Hands over the newest record of every key, as of the last commit that returned; a view is valid during the call.
    ///
    /// While a journal that has failed still exists, nothing of the commit that failed is seen.
    ///
    /// - Throws: `StoreError` when the file cannot be read whole; then nothing that was handed over may be used.
    package static func load(
        path: String,
        vfs: String? = nil,
        _ take: (RecordKey, ByteView) throws(StoreError) -> Void
    ) throws(StoreError) {
        let database = try JournalFile.open(path, mode: .readOnly, vfs: vfs)
        _ = try JournalLoader.load(database, take)
    }
}
