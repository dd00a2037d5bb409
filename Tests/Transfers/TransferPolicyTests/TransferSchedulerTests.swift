import Testing
import TransferAgent

@Suite("The transfer book decides which transfers start, wait and wake")
struct TransferBookTests {
    private static let device = String(repeating: "0badcafe", count: 8)

    /// A book with sessions of these names, and its own clock.
    private struct Scene {
        var book: TransferBook
        var generator = CountingGenerator()
        var now: Int64 = 1_000_000
        var count: UInt64 = 0

        init(_ limits: TransferLimits = TransferLimits(), sessions: [String] = ["a"]) {
            self.book = TransferBook(limits: limits)
            for name in sessions {
                var session = TransferSession()
                session.device = TransferBookTests.device
                _ = self.book.sessionSet(name, session)
            }
        }

        mutating func submit(_ name: String = "a", host: Int32 = 0, notBefore: Int64 = 0) -> TransferID? {
            self.count += 1
            let transfer = Transfer(
                id: TransferID((7, self.count)),
                sequence: Int64(self.count),
                session: self.book.number(of: name) ?? 0,
                host: host,
                kind: .download,
                createdAt: self.now,
                deadline: self.now + 604_800_000,
                notBefore: notBefore
            )
            return self.book.transferSubmitted(transfer, now: self.now) == .accepted ? transfer.id : nil
        }

        mutating func submitted(notBefore: Int64 = 0) throws -> TransferID {
            let id = self.submit(notBefore: notBefore)
            return try #require(id)
        }

        mutating func fill() -> [TransferID] { self.book.slotsFilled(now: self.now) }
    }

    @Test("Connections to a host are limited by the session, and used in the order of submission")
    func perHost() throws {
        var scene = Scene()
        let ids = (0..<8).compactMap { _ in scene.submit() }
        let first = scene.fill()
        #expect(first == Array(ids[..<6]))
        #expect(scene.fill().isEmpty)
        let waiting = try #require(scene.book.transfer(ids[6]))
        #expect(scene.book.hold(of: waiting, now: scene.now) == .slots)
        _ = scene.book.attemptSucceeded(ids[0], bytes: 1, status: 200, now: scene.now)
        #expect(scene.fill() == [ids[6]])
    }

    @Test("At most runningMax transfers run, and sessions and hosts take turns")
    func turns() {
        var limits = TransferLimits()
        limits.runningMax = 4
        var scene = Scene(limits, sessions: ["a", "b"])
        let long = (0..<10).compactMap { _ in scene.submit("a") }
        let other = (0..<2).compactMap { scene.submit("b", host: Int32($0)) }
        let begun = scene.fill()
        #expect(begun.count == limits.runningMax)
        #expect(Set(other).isSubset(of: begun) && begun.contains(long[0]) && begun.contains(long[1]))
    }

    @Test(
        "The conditions that hold a session's transfers",
        arguments: [
            (true, true, TransferHold.power), (true, false, .lowPower), (true, nil, .thermal), (false, nil, .metered),
            (false, nil, .constrained), (true, nil, .constrained),
        ] as [(Bool, Bool?, TransferHold)]
    )
    func holds(_ isDiscretionary: Bool, _ battery: Bool?, _ hold: TransferHold) throws {
        var scene = Scene()
        var session = TransferSession()
        session.isDiscretionary = isDiscretionary
        session.allowsMetered = isDiscretionary
        session.allowsConstrained = isDiscretionary
        _ = scene.book.sessionSet("a", session)
        let id = try scene.submitted()
        #expect(scene.fill() == [id])
        var conditions = TransferConditions()
        switch hold {
        case .power: conditions.hasExternalPower = false
        case .lowPower: conditions.isLowPower = true
        case .thermal: conditions.isHot = true
        case .constrained: conditions.isConstrained = true
        case .forceQuit, .appState, .metered, .network, .earliestBegin, .backoff, .slots: conditions.isMetered = true
        }
        #expect(scene.book.conditionsChanged(conditions, now: scene.now) == [id])
        #expect(scene.book.attemptStopped(id, now: scene.now) == .wait)
        #expect(scene.fill().isEmpty)
        let transfer = try #require(scene.book.transfer(id))
        #expect(scene.book.hold(of: transfer, now: scene.now) == hold && transfer.attempts == 0)
        #expect(scene.book.conditionsChanged(TransferConditions(), now: scene.now).isEmpty)
        #expect(scene.fill() == [id])
    }

    @Test("A failed attempt without a network waits for one, unless its server is on this machine")
    func network() throws {
        var scene = Scene()
        var conditions = TransferConditions()
        conditions.hasNetwork = false
        #expect(scene.book.conditionsChanged(conditions, now: scene.now).isEmpty)
        scene.book.hostNamed(5, isLocal: true)
        let ids = [scene.submit(host: 0), scene.submit(host: 5)].compactMap(\.self)
        // A route may exist nevertheless, so the attempt begins.
        #expect(scene.fill() == ids)
        for id in ids {
            let cut = TransferFault.connectionFailed("no route to host")
            _ = scene.book.attemptFailed(id, cut, hasProgressed: false, now: scene.now, using: &scene.generator)
        }
        let holds = try ids.map { scene.book.hold(of: try #require(scene.book.transfer($0)), now: scene.now) }
        #expect(holds == [.network, .backoff] && TransferHold.network.sentence().contains("network is down"))
        #expect(scene.fill().isEmpty)
        conditions.hasNetwork = true
        _ = scene.book.conditionsChanged(conditions, now: scene.now)
        #expect(scene.fill() == [ids[0]])
        #expect(scene.book.hold(of: try #require(scene.book.transfer(ids[1])), now: scene.now) == .backoff)
    }

    @Test("A session that is not discretionary and allows metered networks waits for nothing")
    func free() throws {
        var scene = Scene()
        var conditions = TransferConditions()
        conditions.hasExternalPower = false
        conditions.isLowPower = true
        conditions.isHot = true
        conditions.isMetered = true
        conditions.isConstrained = true
        _ = scene.book.conditionsChanged(conditions, now: scene.now)
        let id = try scene.submitted()
        #expect(scene.fill() == [id])
    }

    @Test("The end of a session's last transfer wakes its device once; listeners are notified instead")
    func sessionEnds() throws {
        var scene = Scene()
        let number = try #require(scene.book.number(of: "a"))
        let ids = (0..<3).compactMap { _ in scene.submit() }
        _ = scene.fill()
        for id in ids[..<2] {
            _ = scene.book.attemptSucceeded(id, bytes: 1, status: 200, now: scene.now)
            #expect(scene.book.sessionLooked(at: number) == .ignore)
        }
        _ = scene.book.cancelled(ids[2], now: scene.now)
        #expect(scene.book.sessionLooked(at: number) == .wake(device: Self.device, topic: nil, finished: 2))
        #expect(scene.book.sessionLooked(at: number) == .ignore)
        scene.book.listenerCame(number)
        let last = try scene.submitted()
        _ = scene.fill()
        _ = scene.book.attemptSucceeded(last, bytes: 1, status: 200, now: scene.now)
        #expect(scene.book.sessionLooked(at: number) == .tell)
        #expect(scene.book.listenerLeft(number, hasRead: 1) == .ignore && scene.book.unheard(of: number) == 0)
        var quiet = TransferSession()
        quiet.sendsLaunchEvents = false
        _ = scene.book.sessionSet("a", quiet)
        let silent = try scene.submitted()
        _ = scene.fill()
        _ = scene.book.attemptSucceeded(silent, bytes: 1, status: 200, now: scene.now)
        #expect(scene.book.sessionLooked(at: number) == .none)
    }

    @Test("Cancelled transfers alone wake no device, and followers learn of the end of all", arguments: [false, true])
    func cancelled(isFollowed: Bool) throws {
        var scene = Scene()
        let number = try #require(scene.book.number(of: "a"))
        if isFollowed { scene.book.listenerCame(number) }
        _ = scene.book.cancelled(try scene.submitted(), now: scene.now)
        #expect(scene.book.sessionLooked(at: number) == (isFollowed ? .tell : .ignore))
    }

    @Test("The device is woken only for an end that the last follower has not read")
    func unread() throws {
        var scene = Scene()
        let number = try #require(scene.book.number(of: "a"))
        func end() throws {
            let id = try scene.submitted()
            _ = scene.fill()
            _ = scene.book.attemptSucceeded(id, bytes: 1, status: 200, now: scene.now)
            #expect(scene.book.sessionLooked(at: number) == .tell)
        }
        for _ in 0..<2 { scene.book.listenerCame(number) }
        try end()
        #expect(scene.book.listenerLeft(number, hasRead: nil) == .ignore)
        #expect(
            scene.book.listenerLeft(number, hasRead: nil) == .wake(device: Self.device, topic: nil, finished: 1)
        )
        scene.book.listenerCame(number)
        #expect(scene.book.listenerLeft(number, hasRead: nil) == .ignore)
        // A caller that reads the end before the last one may not have read the last one.
        scene.book.listenerCame(number)
        try end()
        try end()
        let telling = scene.book.tellings(of: number)
        #expect(
            scene.book.listenerLeft(number, hasRead: telling - 1)
                == .wake(device: Self.device, topic: nil, finished: 2)
        )
    }

    @Test("An end is stored as unheard until a follower has read it")
    func unheard() throws {
        var scene = Scene()
        let number = try #require(scene.book.number(of: "a"))
        scene.book.listenerCame(number)
        let id = try scene.submitted()
        _ = scene.fill()
        _ = scene.book.attemptSucceeded(id, bytes: 1, status: 200, now: scene.now)
        #expect(scene.book.sessionLooked(at: number) == .tell && scene.book.unheard(of: number) == 1)
        _ = scene.book.takeChanges()
        scene.book.listenerRead(number, telling: 0)
        #expect(scene.book.unheard(of: number) == 1 && scene.book.takeChanges().sessions.isEmpty)
        scene.book.listenerRead(number, telling: scene.book.tellings(of: number))
        #expect(scene.book.unheard(of: number) == 0 && scene.book.takeChanges().sessions == [number])
    }

    @Test("Sessions and transfers are limited by sessionsMax and transfersMax")
    func bounds() {
        var limits = TransferLimits()
        limits.sessionsMax = 2
        limits.transfersMax = 3
        var scene = Scene(limits, sessions: ["a", "b"])
        #expect(scene.book.sessionSet("c", TransferSession()) == .tooMany)
        #expect((0..<4).compactMap { _ in scene.submit() }.count == 3)
    }

    @Test("Counts stay correct when transfers and sessions are removed")
    func counts() throws {
        var scene = Scene()
        let ids = (0..<4).compactMap { _ in scene.submit() }
        _ = scene.fill()
        _ = scene.book.attemptSucceeded(ids[0], bytes: 1, status: 200, now: scene.now)
        scene.book.forgotten(ids[1])
        #expect(scene.book.counts[.running] == 3)
        scene.book.forgotten(ids[0])
        #expect(scene.book.counts[.finished] == 0 && scene.book.transferCount == 3)
        let action = scene.book.sessionRemoved(try #require(scene.book.number(of: "a")))
        #expect(Set(action.stop) == Set(ids[1...]) && Set(action.forget) == Set(ids[1...]))
        #expect(scene.book.transferCount == 0 && scene.book.running.isEmpty)
    }

    @Test("Changes are reported once")
    func changes() throws {
        var scene = Scene()
        _ = scene.book.takeChanges()
        let id = try scene.submitted()
        #expect(scene.book.takeChanges().transfers == [id])
        #expect(scene.book.takeChanges().transfers.isEmpty)
    }
}
