package import DeviceEngine
package import History

/// Where what happened goes, and who asks what happened.
package protocol HistoryOutlet: AnyObject, Sendable {
    /// Has the file opened, which is neither looked at nor made before.
    ///
    /// - Throws: when it could not be used after a restart.
    func open() throws(StoreError)

    /// What the file held when it was opened, waited for; nil when it could not be opened.
    func waitUntilOpened() -> HistoryFound?

    /// Takes over everything of `batch`, which is empty afterwards.
    func submit(_ batch: inout HistoryBatch)
}
