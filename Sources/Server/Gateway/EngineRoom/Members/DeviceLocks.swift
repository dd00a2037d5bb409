package import Engine
import Platform
import Wire

/// The number of devices that wait for locks of one other database session.
package struct DeviceLocks: Hashable, Sendable {
    /// The time that a device must wait for a lock before the lock is reported, in milliseconds.
    static let delay: Int64 = 1000
    /// The time after which the waiting commands of a device are refused, in milliseconds.
    static let timeout: Int64 = 5000
    /// The time for which a device's lock is remembered after its last use, in milliseconds.
    static let memory: Int64 = 10_000
    /// The maximum number of sessions reported at a time. If there are more, the sessions for which the most devices
    /// wait are reported, and the other devices are counted under an unknown session.
    static let sessionsMax = 10

    /// The session; nil if it is unknown.
    package let holder: LockHolder?
    package let deviceCount: Int

    /// Returns the locks to report, the sessions with the most waiting devices first.
    ///
    /// - Parameter holders: the number of devices that wait for each session; nil is the unknown session.
    package static func report(_ holders: [LockHolder?: Int]) -> [DeviceLocks] {
        let known = holders.filter { $0.key != nil }.sorted {
            ($1.value, $0.key?.pid ?? 0) < ($0.value, $1.key?.pid ?? 0)
        }
        let rest = known.dropFirst(self.sessionsMax).reduce(holders[nil] ?? 0) { $0 + $1.value }
        let locks = known.prefix(self.sessionsMax).map { DeviceLocks(holder: $0.key, deviceCount: $0.value) }
        return rest == 0 ? locks : locks + [DeviceLocks(holder: nil, deviceCount: rest)]
    }

    /// The session's process and application as text. The text stays the same while the session exists.
    package var session: String {
        guard let holder = self.holder else { return "unknown" }
        return "pid \(holder.pid), application \(holder.application.isEmpty ? "unnamed" : holder.application)"
    }

    /// The session as text, with the start of its last query if it is known.
    package var sessionAndQuery: String {
        self.session + (self.holder?.queryStart.map { ", last query began \(WallTime.text($0))" } ?? "")
    }
}

/// The rule for logging sessions that block devices. They are logged when they differ from those last logged, at most
/// once a minute. The end of all locks is logged immediately.
struct LockLog {
    /// The minimum time between two log entries about sessions, in milliseconds.
    private static let pause: Int64 = 60_000

    private var logged: Set<LockHolder?> = []
    private var nextAt: Int64 = .min

    /// True if the last log entry named sessions.
    var hasLogged: Bool { !self.logged.isEmpty }

    /// Returns true if these sessions must be logged now, and remembers them as logged.
    ///
    /// - `now`: milliseconds since the start of the machine.
    mutating func isDue(_ sessions: Set<LockHolder?>, at now: Int64) -> Bool {
        guard sessions != self.logged, sessions.isEmpty || now >= self.nextAt else { return false }
        if !sessions.isEmpty { self.nextAt = now + Self.pause }
        self.logged = sessions
        return true
    }
}

extension StoreError {
    /// The error for commands that have waited too long for a device's lock. It does not name the session, because any
    /// caller may see it; the log and the metrics name the session.
    static let lockedDevice = StoreError(
        message: "Another session of PostgreSQL has locked this device's row. The gateway's log (devicesLocked) and "
            + "its metric wakegate_cluster_locked_devices name the session. End its transaction."
    )

    /// The error for commands of a device whose row cannot be read.
    static let unreadableDevice = StoreError(
        message: "The row of this device in the database is damaged. The gateway's log (deviceUnreadable) has the "
            + "beginning of its token and the damage. Restore the row from a backup."
    )

    /// Returns the same error with the name of the session, for operators.
    static func lockedDevice(by holder: LockHolder?) -> StoreError {
        guard let holder else { return .lockedDevice }
        let session = DeviceLocks(holder: holder, deviceCount: 1).sessionAndQuery
        return StoreError(
            message: "Another session of PostgreSQL (\(session)) has locked this device's row. End its transaction."
        )
    }
}
