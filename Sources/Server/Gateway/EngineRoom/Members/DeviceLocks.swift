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
    /// The most sessions that are reported at a time: those for which the most devices wait. Devices that wait for
    /// others are reported as waiting for an unknown session.
    static let sessionsMax = 10

    /// The session, if it is known.
    package let holder: LockHolder?
    package let deviceCount: Int

    /// Returns the locks to report.
    ///
    /// - Parameter holders: the number of devices that wait for each session.
    package static func report(_ holders: [LockHolder?: Int]) -> [DeviceLocks] {
        let known = holders.filter { $0.key != nil }.sorted {
            ($1.value, $0.key?.pid ?? 0) < ($0.value, $1.key?.pid ?? 0)
        }
        let rest = known.dropFirst(self.sessionsMax).reduce(holders[nil] ?? 0) { $0 + $1.value }
        let locks = known.prefix(self.sessionsMax).map { DeviceLocks(holder: $0.key, deviceCount: $0.value) }
        return rest == 0 ? locks : locks + [DeviceLocks(holder: nil, deviceCount: rest)]
    }

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
    /// A device's commands have waited too long. Anybody may read the answer, so it names no session of the database:
    /// the log and the metrics do.
    static let lockedDevice = StoreError(
        message: "Another session of PostgreSQL has locked this device's row. The gateway's log (devicesLocked) and "
            + "its metric wakegate_cluster_locked_devices name the session. End its transaction."
    )
}
