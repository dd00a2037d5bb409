import Platform

/// Whether somebody uses a machine, in the words of the launch policy.
package enum AppState: String, Sendable {
    case background, active
}

/// Whether somebody uses a machine: the `IdleHint` that logind keeps for the first seat, `seat0`, which is the screen
/// and keyboard of the machine itself.
///
/// It is the seat's, not that of all sessions: an administrator's shell over SSH or a job of cron is a session too, and
/// neither is somebody before the machine. Every machine has this seat, and without a session on it, it is idle.
///
/// logind tells when a graphical session changes its hint. Of a text console it computes the hint when it is asked, so
/// it is asked now and then. One question is on its way at a time, and whatever logind tells is but a reason to ask.
///
/// It belongs to one thread and waits for nothing.
package final class SeatWatch {
    /// Times in milliseconds.
    package enum Timing {
        /// The time between two questions, while nothing is told.
        package static let interval: Int64 = 15_000
        /// The least time between two questions, however much is told.
        package static let pause: Int64 = 500
        /// How long an answer may take before the hint counts as unknown.
        package static let patience: Int64 = 10_000
        /// How long an answer may take before it is asked anew.
        package static let abandonment: Int64 = 60_000
        /// The wait before the next connection after one that came to nothing; it doubles with each.
        package static let firstRetry: Int64 = 1000
        package static let lastRetry: Int64 = 60_000
        /// How long a hint that was known stands when it is known no longer, as while the bus restarts.
        package static let grace: Int64 = 15_000
    }

    /// The most messages that are taken at once.
    private static let messagesMax = 64
    private static let service = "org.freedesktop.login1"
    private static let seat = "/org/freedesktop/login1/seat/seat0"
    private static let rules = [
        "type='signal',sender='\(service)',path='\(seat)',interface='org.freedesktop.DBus.Properties',"
            + "member='PropertiesChanged'",
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            + "arg0='\(service)'",
    ]

    private let socket: String?
    private var bus: SystemBus?
    private var connectsAt: Int64 = .min
    /// Connections in a row that brought no answer.
    private var failures = 0
    /// The cookie of the question that is on its way.
    private var question: UInt64?
    private var askedAt: Int64?
    private var hasNews = false
    /// Whether there may be more messages than were taken.
    private var isBehind = false
    private var isIdle: Bool?
    private var last: Bool?
    private var lostAt: Int64?
    private var reason: String?

    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    package init(socket: String? = nil) {
        self.socket = socket
    }

    /// The connection's descriptor; nil while there is none.
    package var descriptor: Int32? { self.bus?.descriptor }

    /// Whether the descriptor is to be waited on to be writable, too.
    package var wantsToWrite: Bool { self.bus?.wantsToWrite ?? false }

    /// Whether logind's last answer was a state.
    package var isKnown: Bool { self.isIdle != nil }

    /// Whether there was an answer, or a reason why there is none.
    package var isSettled: Bool { self.isKnown || self.reason != nil }

    /// When `take` is to be called even if the descriptor says nothing.
    package var nextAt: Int64 {
        guard self.bus != nil else { return self.connectsAt }
        guard !self.isBehind, let askedAt = self.askedAt else { return .min }
        guard self.question != nil else { return self.asksAt }
        return askedAt + (self.reason == nil ? Timing.patience : Timing.abandonment)
    }

    /// What `appState` is; nil when it was never known.
    ///
    /// A hint that is known no longer stands for a while; then the state is `background`, as on a machine that tells
    /// nothing: else a machine whose logind has gone would count as in use for ever.
    package func appState(now: Int64) -> AppState? {
        guard let last = self.last else { return nil }
        if let lostAt = self.lostAt, now >= lostAt + Timing.grace { return .background }
        return last ? .background : .active
    }

    /// Why the state is not known; nil when it is, or may soon be.
    package func fault(now: Int64) -> String? {
        if self.last != nil, let lostAt = self.lostAt, now < lostAt + Timing.grace { return nil }
        return self.reason
    }

    /// Connects, takes what the bus brings, and asks, whatever it is time for; whether the hint has changed.
    package func take(now: Int64) -> Bool {
        let before = self.isIdle
        do throws(SystemError) {
            if self.bus == nil, now >= self.connectsAt { try self.connect() }
            if let bus = self.bus {
                try self.receive(from: bus, now: now)
                try self.ask(bus, now: now)
            }
        } catch {
            self.bus = nil
            self.connectsAt = now + min(Timing.lastRetry, Timing.firstRetry << Int64(min(self.failures, 16)))
            self.failures += 1
            self.unknown("the system bus, over which logind is asked, cannot be reached: \(error.message)", now: now)
        }
        return self.isIdle != before
    }

    /// When the next question may be asked, the last one having its answer.
    private var asksAt: Int64 {
        guard let askedAt = self.askedAt else { return .min }
        return askedAt + (self.hasNews ? Timing.pause : Timing.interval)
    }

    private func connect() throws(SystemError) {
        let bus = try SystemBus(socket: self.socket)
        for rule in Self.rules { try bus.subscribe(rule) }
        self.bus = bus
        self.question = nil
        self.askedAt = nil
        self.hasNews = false
    }

    private func receive(from bus: SystemBus, now: Int64) throws(SystemError) {
        self.isBehind = true
        for _ in 0..<Self.messagesMax {
            guard let message = try bus.receive() else {
                self.isBehind = false
                return
            }
            switch message {
            case .answer(self.question, let answer): self.answered(answer, now: now)
            case .news: self.hasNews = true
            case .answer, .other: ()
            }
        }
    }

    private func answered(_ answer: SystemBus.Answer, now: Int64) {
        self.question = nil
        self.failures = 0
        switch answer {
        case .boolean(let isIdle):
            self.isIdle = isIdle
            self.last = isIdle
            self.lostAt = nil
            self.reason = nil
        case .number, .other:
            self.unknown("what logind calls the IdleHint of seat0 is no boolean", now: now)
        case .error(let name): self.unknown("logind does not tell the IdleHint of seat0: \(name)", now: now)
        }
    }

    private func ask(_ bus: SystemBus, now: Int64) throws(SystemError) {
        if self.question != nil, let askedAt = self.askedAt {
            if now >= askedAt + Timing.patience {
                self.unknown("logind does not answer, though its bus is there", now: now)
            }
            guard now >= askedAt + Timing.abandonment else { return }
        } else if now < self.asksAt {
            return
        }
        self.hasNews = false
        self.askedAt = now
        self.question = try bus.get("IdleHint", of: "org.freedesktop.login1.Seat", at: Self.seat, from: Self.service)
    }

    private func unknown(_ reason: String, now: Int64) {
        self.reason = reason
        self.isIdle = nil
        if self.lostAt == nil { self.lostAt = now }
    }
}
