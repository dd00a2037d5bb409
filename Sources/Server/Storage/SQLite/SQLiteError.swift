/// Why SQLite refused or failed.
package struct SQLiteError: Error, Hashable, Sendable {
    /// The kinds of failure that callers tell apart.
    package enum Kind: Hashable, Sendable {
        /// The disk, or what the process may use of it, is full.
        case full
        /// The file may not become larger: the process's own limit of file sizes.
        case tooLarge
        /// The file or its folder may not be written.
        case readOnly
        /// The file cannot be opened.
        case cannotOpen
        /// The file is no SQLite database.
        case notDatabase
        /// The file is damaged.
        case corrupt
        /// Another connection holds a lock.
        case busy
        /// Reading, writing or syncing failed.
        case io
        case other
    }

    package let kind: Kind
    /// SQLite's extended result code.
    package let code: Int32
    /// What SQLite and the operating system say, as one clause without a full stop.
    package let message: String

    package init(kind: Kind, code: Int32, message: String) {
        self.kind = kind
        self.code = code
        self.message = message
    }
}
