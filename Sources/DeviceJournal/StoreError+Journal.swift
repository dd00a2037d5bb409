import DeviceEngine
import SQLite

extension StoreError {
    /// What SQLite says of the journal at `path`, and what to do about it.
    init(journal path: String, _ error: SQLiteError) {
        let cause = error.message
        switch error.kind {
        case .full:
            self.init(
                message: "The disk is full: \(path) cannot grow (\(cause)). Free space there and start WakeGate again."
            )
        case .readOnly:
            self.init(
                message: "\(path) cannot be written (\(cause)). Make the file and its folder writable for the user "
                    + "that runs WakeGate, or name another state folder."
            )
        case .cannotOpen:
            self.init(
                message: "\(path) cannot be opened (\(cause)). Check that its folder exists, and that the user that "
                    + "runs WakeGate may read and write there."
            )
        case .notDatabase:
            self.init(foreign: path)
        case .corrupt:
            self.init(damaged: path, cause)
        case .busy:
            self.init(
                message: "\(path) is locked by another program (\(cause)). End that program and start WakeGate again."
            )
        case .io, .other:
            self.init(
                message: "Reading or writing \(path) failed (\(cause)). Check the disk and the system's log, "
                    + "then start WakeGate again."
            )
        }
    }

    /// The file is another program's.
    init(foreign path: String) {
        self.init(
            message: "\(path) is not a journal of WakeGate. Name another state folder, or move the file away."
        )
    }

    /// - Parameter fault: what is wrong, as a clause.
    init(damaged path: String, _ fault: String) {
        self.init(
            message: "\(path) is damaged: \(fault). Start from a backup (`wakegate backup` makes them), or move the "
                + "file and the ones beside it that begin with its name away to start with no state."
        )
    }
}
