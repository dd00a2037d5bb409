package import Engine
package import Policy
package import Wire

/// What a simulated database has seen, in its order, for checkers that trust no gateway.
package struct DatabaseLog {
    /// One commit that is durable.
    package struct Commit {
        /// In virtual time.
        package let at: Int64
        /// Of the step, in policy time.
        package let moment: Instant
        package let gateway: GatewayNumber
        package let devices: [DeviceToken]
        package let launched: [(wake: WakeID, device: DeviceToken)]
        package let ended: [WakeID]
        package let events: [HistoryEvent]
    }

    package internal(set) var commits: [Commit] = []
    /// The commit that launched each wake, and the one that ended it, by their places in `commits`.
    package private(set) var launches: [WakeID: Int] = [:]
    package private(set) var ends: [WakeID: Int] = [:]
    /// When each gateway was found dead, in virtual time.
    package internal(set) var deaths: [GatewayNumber: Int64] = [:]
    /// How often each thing has happened.
    package private(set) var counts: [Event: Int] = [:]
    /// The rules that a gateway broke.
    package internal(set) var misuses: [String] = []

    package enum Event: String, CaseIterable, Sendable {
        case load, read, commit, wait, lockTimeout, passedOver, insertConflict, deadlock, refusal, full, fenced
        case lostReply, lostCommit, lostLoad, doubtCommitted, doubtRolledBack
        case attached, controlCut, timeout, death, burial, idleRollback
        case failover, survivor, castaway, clockBack, clockForth
        case lostNotice, doubledNotice, notice
    }

    init() {}

    mutating func note(_ event: Event, _ count: Int = 1) { self.counts[event, default: 0] += count }

    mutating func note(_ commit: DatabaseCommit, at now: Int64) {
        let launched = commit.writes.devices.flatMap { change in
            change.launched.map { (wake: $0.wake, device: change.device.token) }
        }
        let ended = commit.writes.devices.flatMap(\.ended)
        for wake in launched where self.launches.updateValue(self.commits.count, forKey: wake.wake) != nil {
            self.misuses.append("wake \(wake.wake) is launched twice")
        }
        for wake in ended where self.ends.updateValue(self.commits.count, forKey: wake) != nil {
            self.misuses.append("wake \(wake) is ended twice")
        }
        self.commits.append(
            Commit(
                at: now,
                moment: commit.moment,
                gateway: commit.gateway,
                devices: commit.writes.devices.map(\.device.token),
                launched: launched,
                ended: ended,
                events: commit.writes.events
            )
        )
        self.note(.commit)
    }
}
