import HTTPClient
import Platform
import ServiceManager
import Synchronization
import Testing
import TransferAgent
import WakeGateTestKit
import Wire

@Suite("An agent's time advances with the machine's uptime, whatever the wall clock does", .timeLimit(.minutes(15)))
struct AgentTimeTests {
    private static let hour: Int64 = 3_600_000
    private static let day: Int64 = 86_400_000
    private let rig: AgentRig

    init() throws {
        self.rig = try AgentRig()
        try self.rig.start()
        #expect(self.rig.put { $0.resourceTimeout = Self.day } == 201)
    }

    private func state(_ id: TransferID) throws -> String? { try self.rig.shown(id)["state"]?.text }

    @Test("A jump of the wall clock neither fails nor speeds up a transfer", arguments: [400, 1, -1, -400] as [Int64])
    func jumps(days: Int64) throws {
        let running = try self.rig.download()
        let failing = try self.rig.download()
        #expect(self.rig.world.attempts.map(\.plan.id) == [running, failing])
        self.rig.fail(self.rig.world.attempts[1])
        let before = try self.rig.shown(failing)
        #expect(before["held"]?.text == "backoff")
        let wait = try #require(before["nextAttemptAt"]?.integer) - self.rig.world.wall
        self.rig.world.clock.stepWall(by: days * Self.day)
        self.rig.turn()
        #expect(try self.state(running) == "running" && self.state(failing) == "waiting")
        let after = try self.rig.shown(failing)
        #expect(try #require(after["nextAttemptAt"]?.integer) - self.rig.world.wall == wait)
        self.rig.pass(wait - 1)
        #expect(try self.state(failing) == "waiting")
        self.rig.pass(1)
        #expect(try self.state(failing) == "running")
        // The time for the whole transfer also continues.
        self.rig.pass(Self.day - wait - 1)
        #expect(try self.state(running) == "running")
        self.rig.pass(1)
        let ended = try self.rig.shown(running)
        #expect(ended["state"]?.text == "failed" && ended["error"]?["reason"]?.text == "TimedOut")
        #expect(ended["endedAt"]?.integer == self.rig.world.wall)
        #expect(self.rig.world.attempts.isEmpty)
    }

    @Test("Timeouts of a transfer override those of its session")
    func ownTimeouts() throws {
        var submission = AgentRig.download("http://h/own")
        submission.spec.requestTimeout = 2500
        submission.resourceTimeout = Self.hour
        let answer = self.rig.ask(.submit("s", submission))
        let own = try #require(answer.body?["transfer"]?.text.flatMap { TransferID($0) })
        let other = try self.rig.download()
        #expect(self.rig.world.attempts.map(\.plan.silenceSecondsMax) == [3, 60])
        #expect(self.rig.world.attempts.map(\.plan.settings.connectTimeoutMilliseconds) == [2500, 60_000])
        self.rig.pass(Self.hour - 1)
        #expect(try self.state(own) == "running")
        self.rig.pass(1)
        #expect(try self.state(own) == "failed" && self.state(other) == "running")
    }

    @Test("An upload whose file does not respond until its timeout fails with the name of the file")
    func unresponsiveFile() throws {
        let id = try self.rig.download()
        self.rig.world.attempts[0].gauge.awaitsFile.store(true, ordering: .relaxed)
        self.rig.pass(Self.day)
        let message = try self.rig.shown(id)["error"]?["message"]?.text
        #expect(message?.contains("does not respond; check that its file system is available") == true)
    }

    @Test("Attempts are repeated with growing waits until the total timeout, and then the last failure is reported")
    func retries() throws {
        (self.rig.settings.retry.first, self.rig.settings.retry.last) = (2000, 400_000)
        try self.rig.start()
        let id = try self.rig.download()
        var waits: [Int64] = []
        while let attempt = self.rig.world.attempts.first {
            // The clock is set between any two attempts.
            self.rig.world.clock.stepWall(by: (waits.count % 2 == 0 ? 40 : -40) * Self.day)
            self.rig.fail(attempt)
            let begun = self.rig.world.boot
            while self.rig.world.attempts.isEmpty, try self.state(id) == "waiting" {
                self.rig.pass(max(1, self.rig.wait))
            }
            waits.append(self.rig.world.boot - begun)
        }
        let ended = try self.rig.shown(id)
        #expect(ended["state"]?.text == "failed" && ended["error"]?["reason"]?.text == "TimedOut", "\(ended)")
        #expect(ended["error"]?["message"]?.text?.contains("The connection failed: cut") == true)
        #expect(ended["attempts"]?.integer == Int64(waits.count) && waits.count > 200)
        #expect(waits.reduce(0, +) == Self.day)
        for (number, wait) in waits.dropLast().enumerated() {
            let bound: Int64 = min(400_000, 2000 << Int64(min(number, 20)))
            #expect((bound / 2...bound).contains(wait), "the wait after failure \(number + 1)")
        }
    }

    @Test("Time continues over a restart by the uptime, and over a boot by a plausible wall clock")
    func restarts() throws {
        let id = try self.rig.download()
        self.rig.pass(Self.hour)
        // Within one boot, the wall clock has no effect.
        self.rig.world.clock.pass(Self.hour)
        self.rig.world.clock.stepWall(by: 300 * Self.day)
        try self.rig.start()
        #expect(try self.state(id) == "running")
        // Across a reboot that takes 20 hours.
        try self.rig.reboot(after: 20 * Self.hour)
        #expect(try self.state(id) == "running")
        // A clock that was set back does not add any time, and neither does a clock with an unknown offset.
        self.rig.world.clock.stepWall(by: -5 * Self.day)
        try self.rig.reboot(after: 1)
        #expect(try self.state(id) == "running")
        self.rig.world.clock.stepWall(by: 900 * Self.day)
        try self.rig.reboot(after: 1)
        #expect(try self.state(id) == "running")
        self.rig.pass(2 * Self.hour - 10)
        #expect(try self.state(id) == "running")
        self.rig.pass(10)
        #expect(try self.state(id) == "failed")
    }

    @Test("An explanation names the earliest time, and also the condition that holds the transfer")
    func reasons() throws {
        let moment = self.rig.world.wall + 10 * Self.hour
        let text = WallTime.text(moment)
        let later = try self.rig.download(earliestBegin: moment)
        #expect(try self.rig.shown(later)["why"]?.text == "It begins no earlier than \(text).")
        #expect(self.rig.put { $0.allowsConstrained = false } == 200)
        self.rig.report { $0.isConstrained = true }
        let why = "It begins no earlier than \(text). Besides: It waits for a network without data saving."
        #expect(try self.rig.shown(later)["why"]?.text == why)
        self.rig.report { _ in }
        let failing = try self.rig.download()
        self.rig.fail(self.rig.world.attempts[0])
        let shown = try self.rig.shown(failing)
        let next = try #require(shown["nextAttemptAt"]?.integer)
        let words = "The last attempt failed, and the next one begins at \(WallTime.textRoundedUp(next))."
        #expect(shown["why"]?.text == words)
    }

    @Test("Without a network, a failed transfer waits for one, unless its server is on this machine")
    func localServer() throws {
        self.rig.report { $0.hasNetwork = false }
        let ids = try ["192.0.2.1", "127.0.0.1"].map { try self.rig.download("http://\($0):80/a") }
        for attempt in self.rig.world.attempts { self.rig.fail(attempt) }
        let waits = try ids.map { try self.rig.shown($0)["why"]?.text?.contains("network is down") == true }
        #expect(waits == [true, false])
        self.rig.report { $0.hasNetwork = true }
        #expect(self.rig.world.attempts.map(\.plan.id) == [ids[0]], "the other waits as after any failure")
    }

    @Test("A transfer with an earliest beginning starts at that wall clock time, also when the clock is set")
    func earliestBegin() throws {
        let moment = self.rig.world.wall + 10 * Self.hour
        let id = try self.rig.download(earliestBegin: moment)
        #expect(try self.rig.shown(id)["nextAttemptAt"]?.integer == moment)
        self.rig.world.clock.stepWall(by: 3 * Self.hour)
        self.rig.turn()
        #expect(try self.rig.shown(id)["nextAttemptAt"]?.integer == moment)
        self.rig.world.clock.stepWall(by: -4 * Self.hour)
        self.rig.turn()
        try self.rig.reboot(after: Self.hour)
        let shown = try self.rig.shown(id)
        #expect(shown["nextAttemptAt"]?.integer == moment && shown["held"]?.text == "earliestBegin")
        self.rig.pass(10 * Self.hour - 1)
        #expect(self.rig.world.wall == moment - 1 && self.rig.world.attempts.isEmpty)
        self.rig.pass(1)
        #expect(self.rig.world.attempts.map(\.plan.id) == [id])
        // From there on, it has as much time as if it had begun immediately.
        self.rig.pass(Self.day - 1)
        #expect(try self.state(id) == "running")
        self.rig.pass(1)
        #expect(try self.state(id) == "failed")
    }

    @Test("A clock difference of milliseconds makes a start store nothing, and a changed clock does")
    func jitter() throws {
        let moment = self.rig.world.wall + 10 * Self.hour
        let id = try self.rig.download(earliestBegin: moment)
        let before = self.rig.world.updateCount
        self.rig.world.clock.stepWall(by: 3)
        try self.rig.start()
        #expect(self.rig.world.updateCount == before)
        self.rig.world.clock.stepWall(by: Self.hour)
        try self.rig.start()
        #expect(self.rig.world.updateCount == before + 1)
        #expect(try self.rig.shown(id)["nextAttemptAt"]?.integer == moment)
    }

    @Test("An untaken file is removed and counted after untakenFor, and kept parts are removed, too")
    func expiry() throws {
        let untaken = try self.rig.finished()
        let taken = try self.rig.finished()
        #expect(self.rig.take(taken, to: "\(self.rig.folder)/place") == 200)
        let kept = try self.rig.download("http://192.0.2.1:80/kept")
        try self.rig.begin(self.rig.world.attempts[0])
        #expect(self.rig.ask(.cancel("s", kept, keeps: true)).status == 204)
        #expect(Set(self.rig.fileNames()).count == 2)
        // Setting the clock does not make anything older.
        self.rig.world.clock.stepWall(by: 100 * Self.day)
        self.rig.pass(7 * Self.day - 2000)
        #expect(try self.state(untaken) == "finished" && self.rig.fileNames().count == 2)
        self.rig.pass(700_000)
        #expect(self.rig.ask(.transfer("s", untaken)).status == 404)
        #expect(self.rig.ask(.transfer("s", taken)).status == 404)
        let status = self.rig.ask(.status).body
        #expect(status?["expiredUntaken"]?.integer == 1 && status?["taken"]?.integer == 1)
        #expect(self.rig.fileNames().isEmpty && status?["stateBytes"]?.integer == 0)
        try self.rig.start()
        let listed = self.rig.ask(.transfers("s", state: nil, limit: 10, after: nil)).body
        #expect(listed?["transfers"]?.elements.isEmpty == true)
    }

    @Test("Ended transfers are searched at most once a second, however short untakenFor is")
    func shortExpiry() throws {
        self.rig.settings.limits.untakenFor = 1
        try self.rig.start()
        #expect(self.rig.wait >= 1000)
    }

    @Test("Until the conditions of the machine are known, only transfers that depend on none of them begin")
    func unknownConditions() throws {
        #expect(self.rig.put("discretionary") { $0.isDiscretionary = true } == 201)
        #expect(self.rig.put("unmetered") { $0.allowsMetered = false } == 201)
        #expect(self.rig.put("unconstrained") { $0.allowsConstrained = false } == 201)
        for session in ["discretionary", "unmetered", "unconstrained"] { _ = try self.rig.download(in: session) }
        let free = try self.rig.download()
        self.rig.conditionsAtStart = nil
        try self.rig.start()
        #expect(self.rig.world.attempts.map(\.plan.id) == [free])
        self.rig.report { _ in }
        #expect(self.rig.world.attempts.count == 4)
    }

    @Test("A transfer removed in a turn is not shown by an earlier command of the same turn")
    func sameTurn() throws {
        let id = try self.rig.finished()
        let shown = self.rig.submit(.transfer("s", id))
        let gone = self.rig.submit(.cancel("s", id, keeps: false))
        self.rig.turn()
        #expect(self.rig.answers[shown]?.status == 404 && self.rig.answers[gone]?.status == 204)
    }
}

@Suite("A force-quit, which the gateway reports, holds transfers", .timeLimit(.minutes(15)))
struct AgentForceQuitTests {
    private let rig: AgentRig

    init() throws {
        self.rig = try AgentRig(level: .info)
        try self.rig.start()
        #expect(self.put() == 201)
    }

    /// Makes or changes a session that follows force-quits.
    private func put(_ session: String = "s", _ change: @escaping SessionChange = { _ in }) -> Int {
        self.rig.put(session) {
            $0.continuesAfterForceQuit = false
            change(&$0)
        }
    }

    private func state(_ id: TransferID, in session: String = "s") throws -> String? {
        try self.rig.shown(id, in: session)["state"]?.text
    }

    private func held(_ id: TransferID) throws -> String? { try self.rig.shown(id)["held"]?.text }

    /// Answers all questions.
    private func answer(_ isForceQuit: Bool?) {
        while !self.rig.world.questions.isEmpty { self.rig.world.answerQuestion(isForceQuit) }
        self.rig.turn()
    }

    /// Lets time pass, in which the gateway answers each question at once.
    ///
    /// - Returns: the number of questions.
    private func pass(_ milliseconds: Int64, answering isForceQuit: Bool?) -> Int {
        var count = 0
        let end = self.rig.world.boot + milliseconds
        while self.rig.world.boot < end {
            self.rig.pass(min(end - self.rig.world.boot, max(1, self.rig.wait)))
            count += self.rig.world.questions.count
            self.answer(isForceQuit)
        }
        return count
    }

    @Test("The transfers of the device's sessions wait until the app is used again, unless a session continues")
    func holds() throws {
        #expect(self.rig.put("free") == 201)
        let free = try self.rig.download(in: "free")
        #expect(try self.rig.world.questions.isEmpty && self.state(free, in: "free") == "running")
        let id = try self.rig.download()
        #expect(self.rig.world.questions.map(\.device) == [AgentRig.device])
        #expect(try self.held(id) == "appState")
        #expect(try self.rig.shown(id)["why"]?.text?.contains("10 seconds") == true)
        self.answer(false)
        #expect(try self.state(id) == "running")
        self.rig.pass(AgentEngine.questionsEvery)
        self.answer(true)
        #expect(self.rig.world.attempts.map(\.plan.id) == [free])
        let held = try self.rig.shown(id)
        #expect(held["held"]?.text == "forceQuit" && held["attempts"]?.integer == 0)
        #expect(held["why"]?.text?.contains("force-quit") == true)
        // No answer changes nothing.
        let second = try self.rig.download()
        #expect(self.pass(AgentEngine.questionsEvery, answering: nil) == 1)
        #expect(try self.state(second) == "waiting")
        #expect(self.pass(2 * AgentEngine.questionsEvery, answering: false) == 1)
        #expect(try self.state(id) == "running" && self.state(second) == "running")
        #expect(try self.state(free, in: "free") == "running")
    }

    @Test("A new attempt waits for the first answer, for 10 seconds at most; a running one is not interrupted")
    func firstAnswer() throws {
        let id = try self.rig.download()
        self.rig.pass(AgentEngine.questionsEvery - 1)
        #expect(try self.held(id) == "appState")
        self.rig.pass(1)
        #expect(try self.state(id) == "running")
        #expect(self.put { $0.device = String(repeating: "ab", count: 32) } == 200)
        #expect(try self.state(id) == "running")
        #expect(self.rig.world.questions.count == 2)
    }

    @Test("The last answer applies after a restart of the agent, and without a gateway transfers run")
    func restart() throws {
        let id = try self.rig.download()
        self.answer(true)
        try self.rig.start()
        #expect(try self.held(id) == "forceQuit")
        self.answer(nil)
        #expect(try self.held(id) == "forceQuit")
        self.rig.settings.gateway = nil
        try self.rig.start()
        #expect(try self.state(id) == "running" && self.rig.world.questions.isEmpty)
    }

    @Test("The gateway is asked only while its answer decides whether a transfer runs")
    func questions() throws {
        let later = try self.rig.download(earliestBegin: self.rig.world.wall + 3_600_000)
        let id = try self.rig.download()
        self.answer(false)
        #expect(self.pass(60_000, answering: false) == 6)
        #expect(self.put { $0.isDiscretionary = true } == 200)
        self.rig.report { $0.hasExternalPower = false }
        #expect(self.pass(60_000, answering: false) <= 1)
        #expect(try self.held(id) == "power" && self.pass(60_000, answering: false) == 0)
        // The answer is old by now, so another one decides.
        self.rig.report { _ in }
        #expect(try self.held(id) == "appState" && self.rig.world.questions.count == 1)
        self.answer(true)
        #expect(try self.held(id) == "forceQuit" && self.pass(60_000, answering: true) == 6)
        #expect(self.rig.ask(.cancel("s", id, keeps: false)).status == 204)
        #expect(self.pass(60_000, answering: true) <= 1)
        #expect(try self.held(later) == "earliestBegin" && self.pass(60_000, answering: true) == 0)
    }

    @Test("Questions back off to one a minute while they fail, and the log has a line at both ends")
    func unanswered() throws {
        let id = try self.rig.download()
        self.answer(true)
        // After 10, 20, 40, and then every 60 seconds.
        #expect(self.pass(AgentEngine.unansweredMax - 1, answering: nil) == 12)
        #expect(try self.held(id) == "forceQuit")
        _ = self.pass(1, answering: nil)
        #expect(try self.state(id) == "running")
        #expect(self.rig.logged == [.appStateUnanswered])
        #expect(self.pass(AgentEngine.questionsEveryMax, answering: true) == 1)
        #expect(try self.held(id) == "forceQuit")
        #expect(self.rig.logged == [.appStateUnanswered, .appStateAnswered])
    }

    @Test("Devices are asked about in turn, even if answers take longer than the time between questions")
    func turns() throws {
        for number in 1...6 {
            #expect(self.put("s\(number)") { $0.device = String(repeating: "0\(number)", count: 32) } == 201)
            _ = try self.rig.download(in: "s\(number)")
        }
        let first = self.rig.world.questions.map(\.device)
        self.rig.pass(AgentEngine.questionsEvery)
        for _ in first { self.rig.world.answerQuestion(false) }
        self.rig.turn()
        #expect(first.count == 4 && Set(first + self.rig.world.questions.map(\.device)).count == 6)
    }
}

@Suite("Followers of a session receive its end, or its device is woken", .timeLimit(.minutes(15)))
struct AgentFollowerTests {
    private let rig: AgentRig

    init() throws {
        self.rig = try AgentRig()
        try self.rig.start()
        #expect(self.rig.put() == 201)
    }

    private func follow() -> Int32 {
        let stream = self.rig.submit(.events("s"))
        self.rig.turn()
        return stream
    }

    /// The numbers of finished transfers in the current requests to the gateway to wake the device.
    private var wakes: [Int] { self.rig.world.sendings.map(\.entry.finished) }

    @Test("An end that a follower has not read when it and the agent die wakes the device once")
    func deathOfBoth() throws {
        let stream = self.follow()
        _ = try self.rig.finished()
        #expect(self.rig.events.contains { $0.stream == stream && $0.text.hasPrefix("event: idle") })
        #expect(self.wakes.isEmpty)
        try self.rig.start()
        #expect(self.wakes == [1])
        self.rig.world.takeSending().report(.delivered)
        self.rig.turn()
        try self.rig.start()
        #expect(self.wakes.isEmpty)
    }

    @Test("Reports that cannot be sent now leave the thread at rest: beyond four at a time, and without a gateway")
    func resting() throws {
        for number in 0..<6 {
            #expect(self.rig.put("s\(number)") == 201)
            _ = try self.rig.download(in: "s\(number)")
            try self.rig.finish(self.rig.world.attempts[0])
        }
        #expect(self.wakes == [1, 1, 1, 1] && self.rig.wait > 0)
        self.rig.settings.gateway = nil
        try self.rig.start()
        #expect(self.wakes.isEmpty && self.rig.wait > 0)
    }

    @Test("A follower that left before the end was written counts as not informed", arguments: [true, false])
    func leaving(hasRead: Bool) throws {
        let stream = self.follow()
        _ = try self.rig.finished()
        if hasRead { self.rig.leave(stream) } else { self.rig.lose(stream) }
        self.rig.turn()
        #expect(self.wakes == (hasRead ? [] : [1]))
    }
}
