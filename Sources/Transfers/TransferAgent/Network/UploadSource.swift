import Platform

/// The open file of an upload, and its state when the upload began.
final class UploadSource: Sendable {
    private let file: OpenFile
    private let before: FileStatus

    /// - Returns: nil if `path` names something else than an ordinary file.
    init?(_ path: String) throws(SystemError) {
        guard let file = try OrdinaryFile.open(path) else { return nil }
        self.before = try file.status()
        self.file = file
    }

    var descriptor: Int32 { self.file.descriptor }
    var size: Int64 { Int64(self.before.size) }

    /// True if the file still has the same size and time of its last change. A new file at the same path does not
    /// matter, as the upload reads this one.
    var isUnchanged: Bool {
        guard let now = try? self.file.status() else { return false }
        return now.size == self.before.size && now.modified == self.before.modified
    }
}
