import Testing
import TransferAgent

@Suite("The transfer book decides which transfers start, wait and wake")
struct TransferSchedulerTests {
    private static let device = String(repeating: "0badcafe", count: 8)

    /// A scheduler with sessions of these names, and its own clock.
    private struct Scene {
        var scheduler: TransferScheduler
        var now: Int64 = 1_000_000
        var count: UInt64 = 0

        init(_ limits: TransferLimits = TransferLimits(), sessions: [String] = ["a"]) {
            self.scheduler = TransferScheduler(limits: limits)
            for name in sessions {
                var session = TransferSession()
                session.device = TransferSchedulerTests.device
                _ = self.scheduler.sessionSet(name, session)
            }
        }

        mutating func submit(_ name: String = "a", host: String = "h", notBefore: Int64 = 0) -> TransferID? {
            self.count += 1
            let transfer = Transfer(
                id: TransferID((7, self.count)),
                sequence: Int64(self.count),
                session: self.scheduler.number(of: name) ?? 0,
                host: host,
                kind: .download,
                createdAt: self.now,
                deadline: self.now + 604_800_000,
                notBefore: notBefore
            )
            return self.scheduler.transferSubmitted(transfer, now: self.now) ? transfer.id : nil
        }

        mutating func submitted(notBefore: Int64 = 0) throws -> TransferID {
            let id = self.submit(notBefore: notBefore)
            return try #require(id)
        }

        mutating func fill() -> [TransferID] { self.scheduler.slotsFilled(now: self.now) }

        mutating func succeed(_ id: TransferID) {
            self.scheduler.attemptSucceeded(id, bytes: 1, status: 200, now: self.now)
        }

        /// Submits a transfer, which starts and succeeds.
        mutating func end() throws {
            let id = try self.submitted()
            _ = self.fill()
            self.succeed(id)
        }
    }

    @Test("Connections to a host are limited by the session, and used in the order of submission")
    func perHost() throws {
        var scene = Scene()
        let ids = (0..<8).compactMap { _ in scene.submit() }
        let first = scene.fill()
        #expect(first == Array(ids[..<6]))
        #expect(scene.fill().isEmpty)
        let waiting = try #require(scene.scheduler.transfer(ids[6]))
        #expect(scene.scheduler.hold(of: waiting, now: scene.now) == .slots)
        scene.succeed(ids[0])
        #expect(scene.fill() == [ids[6]])
    }

    @Test("At most runningMax transfers run, and sessions and hosts take turns")
    func turns() {
        var limits = TransferLimits()
        limits.runningMax = 4
        var scene = Scene(limits, sessions: ["a", "b"])
        let long = (0..<10).compactMap { _ in scene.submit("a") }
        let other = (0..<2).compactMap { scene.submit("b", host: "\($0)") }
        let begun = scene.fill()
        #expect(begun.count == limits.runningMax)
        #expect(Set(other).isSubset(of: begun) && begun.contains(long[0]) && begun.contains(long[1]))
    }

    @Test(
        "The conditions that hold a session's transfers, and not those of a session that accepts all conditions",
        arguments: [
            (true, true, TransferHold.power), (true, false, .lowPower), (true, nil, .thermal), (false, nil, .metered),
            (false, nil, .constrained), (true, nil, .constrained),
        ] as [(Bool, Bool?, TransferHold)]
    )
    func holds(_ isDiscretionary: Bool, _ battery: Bool?, _ hold: TransferHold) throws {
        var scene = Scene(sessions: ["a", "free"])
        var session = TransferSession()
        session.isDiscretionary = isDiscretionary
        session.allowsMetered = isDiscretionary
        session.allowsConstrained = isDiscretionary
        _ = scene.scheduler.sessionSet("a", session)
        let id = try scene.submitted()
        // This one waits for nothing.
        let free = scene.submit("free")
        #expect(Set(scene.fill()) == [id, try #require(free)])
        var conditions = TransferConditions()
        switch hold {
        case .power: conditions.hasExternalPower = false
        case .lowPower: conditions.isLowPower = true
        case .thermal: conditions.isHot = true
        case .constrained: conditions.isConstrained = true
        case .forceQuit, .appState, .metered, .network, .earliestBegin, .backoff, .slots: conditions.isMetered = true
        }
        #expect(scene.scheduler.conditionsChanged(conditions, now: scene.now) == [id])
        scene.scheduler.attemptStopped(id, now: scene.now)
        #expect(scene.fill().isEmpty)
        let transfer = try #require(scene.scheduler.transfer(id))
        #expect(scene.scheduler.hold(of: transfer, now: scene.now) == hold && transfer.attempts == 0)
        #expect(scene.scheduler.conditionsChanged(TransferConditions(), now: scene.now).isEmpty)
        #expect(scene.fill() == [id])
    }

    @Test("The end of a session's last transfer wakes its device once; listeners are notified instead")
    func sessionEnds() throws {
        var scene = Scene()
        let number = try #require(scene.scheduler.number(of: "a"))
        let ids = (0..<3).compactMap { _ in scene.submit() }
        _ = scene.fill()
        for id in ids[..<2] {
            scene.succeed(id)
            #expect(scene.scheduler.announceEnd(of: number) == .ignore)
        }
        _ = scene.scheduler.cancelled(ids[2], now: scene.now)
        #expect(scene.scheduler.announceEnd(of: number) == .wake(device: Self.device, finished: 2))
        #expect(scene.scheduler.announceEnd(of: number) == .ignore)
        scene.scheduler.listenerCame(number)
        try scene.end()
        #expect(scene.scheduler.announceEnd(of: number) == .announce)
        #expect(
            scene.scheduler.listenerLeft(number, hasRead: 1) == .ignore
                && scene.scheduler.unconfirmedCount(of: number) == 0
        )
        var quiet = TransferSession()
        quiet.sendsLaunchEvents = false
        _ = scene.scheduler.sessionSet("a", quiet)
        try scene.end()
        #expect(scene.scheduler.announceEnd(of: number) == .ignore && scene.scheduler.unconfirmedCount(of: number) == 0)
    }

    @Test("Cancelled transfers alone wake no device, and followers learn of the end of all", arguments: [false, true])
    func cancelled(isFollowed: Bool) throws {
        var scene = Scene()
        let number = try #require(scene.scheduler.number(of: "a"))
        if isFollowed { scene.scheduler.listenerCame(number) }
        _ = scene.scheduler.cancelled(try scene.submitted(), now: scene.now)
        #expect(scene.scheduler.announceEnd(of: number) == (isFollowed ? .announce : .ignore))
    }

    @Test("The device is woken only for an end that the last follower has not read")
    func unread() throws {
        var scene = Scene()
        let number = try #require(scene.scheduler.number(of: "a"))
        func end() throws {
            try scene.end()
            #expect(scene.scheduler.announceEnd(of: number) == .announce)
        }
        for _ in 0..<2 { scene.scheduler.listenerCame(number) }
        try end()
        #expect(scene.scheduler.listenerLeft(number, hasRead: nil) == .ignore)
        #expect(
            scene.scheduler.listenerLeft(number, hasRead: nil) == .wake(device: Self.device, finished: 1)
        )
        scene.scheduler.listenerCame(number)
        #expect(scene.scheduler.listenerLeft(number, hasRead: nil) == .ignore)
        // A caller that reads the end before the last one may not have read the last one.
        scene.scheduler.listenerCame(number)
        try end()
        try end()
        let announcement = scene.scheduler.announcementCount(of: number)
        #expect(
            scene.scheduler.listenerLeft(number, hasRead: announcement - 1)
                == .wake(device: Self.device, finished: 2)
        )
    }

    @Test("An end is stored as unheard until a follower has read it")
    func unconfirmedCount() throws {
        var scene = Scene()
        let number = try #require(scene.scheduler.number(of: "a"))
        scene.scheduler.listenerCame(number)
        try scene.end()
        #expect(
            scene.scheduler.announceEnd(of: number) == .announce && scene.scheduler.unconfirmedCount(of: number) == 1
        )
        _ = scene.scheduler.takeChanges()
        scene.scheduler.listenerRead(number, announcement: 0)
        #expect(scene.scheduler.unconfirmedCount(of: number) == 1 && scene.scheduler.takeChanges().sessions.isEmpty)
        scene.scheduler.listenerRead(number, announcement: scene.scheduler.announcementCount(of: number))
        #expect(scene.scheduler.unconfirmedCount(of: number) == 0 && scene.scheduler.takeChanges().sessions == [number])
    }

    @Test("Sessions and transfers are limited by sessionsMax and transfersMax")
    func bounds() {
        var limits = TransferLimits()
        limits.sessionsMax = 2
        limits.transfersMax = 3
        var scene = Scene(limits, sessions: ["a", "b"])
        #expect(scene.scheduler.sessionSet("c", TransferSession()) == .tooMany)
        #expect((0..<4).compactMap { _ in scene.submit() }.count == 3)
    }

    @Test("Counts stay correct when transfers and sessions are removed")
    func counts() throws {
        var scene = Scene()
        let ids = (0..<4).compactMap { _ in scene.submit() }
        _ = scene.fill()
        scene.succeed(ids[0])
        scene.scheduler.forgotten(ids[1])
        #expect(scene.scheduler.counts[.running] == 3)
        scene.scheduler.forgotten(ids[0])
        #expect(scene.scheduler.counts[.finished] == 0 && scene.scheduler.transferCount == 3)
        scene.scheduler.sessionRemoved(try #require(scene.scheduler.number(of: "a")))
        #expect(scene.scheduler.transferCount == 0 && scene.scheduler.running.isEmpty)
    }

    @Test("Changes are reported once")
    func changes() throws {
        var scene = Scene()
        _ = scene.scheduler.takeChanges()
        let id = try scene.submitted()
        #expect(scene.scheduler.takeChanges().transfers.isEmpty, "the caller stores a new transfer")
        _ = scene.scheduler.cancelled(id, now: scene.now)
        #expect(scene.scheduler.takeChanges().transfers == [id])
        #expect(scene.scheduler.takeChanges().transfers.isEmpty)
    }
}
