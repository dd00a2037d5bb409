package import Engine
import Platform
import Wire

/// Devices that wait for the locks of one other session of the database.
package struct DeviceLocks: Hashable, Sendable {
    /// The minimum time that a device waits before its lock is reported, in milliseconds.
    static let delay: Int64 = 1000
    /// The time after which the commands about a device are refused, in milliseconds.
    static let timeout: Int64 = 5000
    /// The time for which the lock of an unused device is remembered, in milliseconds.
    static let memory: Int64 = 10_000

    /// The session, if it is known.
    package let holder: LockHolder?
    package let deviceCount: Int

    /// The session in a few words: its process, its application, and the start of its last query.
    package var session: String { self.holder?.text ?? "unknown" }
}

extension LockHolder {
    fileprivate var text: String {
        let start = self.queryStart.map { ", last query began \(WallTime.text($0))" } ?? ""
        return "pid \(self.pid), application \(self.application.isEmpty ? "unnamed" : self.application)\(start)"
    }
}

extension StoreError {
    /// A device's commands have waited too long.
    ///
    /// - Parameter holder: the session with the lock, if it is known.
    init(lockedBy holder: LockHolder?) {
        let problem = "Another session of PostgreSQL has locked this device's row for \(DeviceLocks.timeout / 1000) s"
        guard let holder else {
            self.init(message: "\(problem). Find it in pg_locks and pg_stat_activity, and end its transaction.")
            return
        }
        self.init(
            message: "\(problem): \(holder.text). End its transaction, for example with "
                + "SELECT pg_terminate_backend(\(holder.pid))."
        )
    }
}
