internal import CSystemBus
import Glibc
package import Platform

/// A connection to a D-Bus message bus; owns its descriptor. Nothing here waits.
///
/// It belongs to one thread.
@safe
package final class SystemBus {
    /// What a call was answered.
    package enum Answer: Hashable, Sendable {
        case boolean(Bool)
        /// A number of 32 bits without a sign.
        case number(UInt32)
        /// A value of another type.
        case other
        /// An error of this name.
        case error(String)
    }

    /// What a connection brings.
    package enum Message: Hashable, Sendable {
        /// The answer to the call with this cookie.
        case answer(UInt64, Answer)
        /// Something has happened that this connection asked to hear of.
        case news
        /// Nothing that is looked at here.
        case other
    }

    private let bus: OpaquePointer

    /// Begins to connect; whether that comes to anything shows later.
    ///
    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    package init(socket: String?) throws(SystemError) {
        var bus: OpaquePointer?
        let address = socket.map { "unix:path=\(Self.escaped($0))" }
        let result = unsafe wakegate_bus_open(&bus, address)
        guard result >= 0, let bus = unsafe bus else { throw SystemError(-result) }
        unsafe self.bus = bus
    }

    deinit { _ = unsafe sd_bus_close_unref(self.bus) }

    /// The descriptor to wait on; nil when the connection is lost.
    package var descriptor: Int32? {
        let descriptor = unsafe sd_bus_get_fd(self.bus)
        return descriptor >= 0 ? descriptor : nil
    }

    /// Whether something waits for the descriptor to be writable.
    package var wantsToWrite: Bool {
        let events = unsafe sd_bus_get_events(self.bus)
        return events > 0 && events & Int32(POLLOUT) != 0
    }

    /// Asks to hear of signals that `rule` matches.
    package func subscribe(_ rule: String) throws(SystemError) {
        let name = "org.freedesktop.DBus"
        _ = try self.call(name, "/org/freedesktop/DBus", name, "AddMatch", rule, nil)
    }

    /// Asks for a property of an object; the answer comes with the cookie that is returned.
    package func get(
        _ property: String,
        of interface: String,
        at path: String,
        from service: String
    ) throws(SystemError) -> UInt64 {
        try self.call(service, path, "org.freedesktop.DBus.Properties", "Get", interface, property)
    }

    /// Makes a step of the connection, and takes the next message if there is one; nil when there is nothing to do.
    package func receive() throws(SystemError) -> Message? {
        var message: OpaquePointer?
        let result = unsafe sd_bus_process(self.bus, &message)
        defer { _ = unsafe sd_bus_message_unref(message) }
        guard result >= 0 else { throw SystemError(-result) }
        guard unsafe sd_bus_is_open(self.bus) > 0 else { throw SystemError(ECONNRESET) }
        if let message = unsafe message { return unsafe Self.read(message) }
        return result > 0 ? .other : nil
    }

    private static func read(_ message: OpaquePointer) -> Message {
        let hasChanged = unsafe sd_bus_message_is_signal(
            message,
            "org.freedesktop.DBus.Properties",
            "PropertiesChanged"
        )
        let isOwnerNew = unsafe sd_bus_message_is_signal(message, "org.freedesktop.DBus", "NameOwnerChanged")
        if hasChanged > 0 || isOwnerNew > 0 { return .news }
        var cookie: UInt64 = 0
        guard unsafe sd_bus_message_get_reply_cookie(message, &cookie) >= 0 else { return .other }
        if let name = unsafe wakegate_bus_error(message) {
            return .answer(cookie, .error(unsafe String(cString: name)))
        }
        switch unsafe wakegate_bus_boolean(message) {
        case 0: return .answer(cookie, .boolean(false))
        case 1: return .answer(cookie, .boolean(true))
        default: ()
        }
        switch unsafe wakegate_bus_unsigned(message) {
        case let number where number >= 0: return .answer(cookie, .number(UInt32(truncatingIfNeeded: number)))
        default: return .answer(cookie, .other)
        }
    }

    private func call(
        _ service: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ first: String,
        _ second: String?
    ) throws(SystemError) -> UInt64 {
        var cookie: UInt64 = 0
        let result = unsafe wakegate_bus_call(self.bus, service, path, interface, member, first, second, &cookie)
        guard result >= 0 else { throw SystemError(-result) }
        return cookie
    }

    /// A path as D-Bus addresses write it.
    private static func escaped(_ path: String) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var escaped: [UInt8] = []
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."):
                escaped.append(byte)
            default: escaped += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }
}

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

/// Whether the network costs by the byte: `Metered` of NetworkManager, which tells of its changes.
///
/// It belongs to one thread and waits for nothing.
package final class MeteredWatch {
    /// Times in milliseconds.
    package enum Timing {
        /// The time between two questions, while nothing is told.
        package static let interval: Int64 = 60_000
        /// The least time between two questions, however much is told.
        package static let pause: Int64 = 500
        /// How long an answer may take before it is asked anew.
        package static let patience: Int64 = 10_000
        /// The wait before the next connection after one that came to nothing; it doubles with each.
        package static let firstRetry: Int64 = 1000
        package static let lastRetry: Int64 = 60_000
    }

    /// The most messages that are taken at once.
    private static let messagesMax = 64
    private static let service = "org.freedesktop.NetworkManager"
    private static let path = "/org/freedesktop/NetworkManager"
    private static let rules = [
        "type='signal',sender='\(service)',path='\(path)',interface='org.freedesktop.DBus.Properties',"
            + "member='PropertiesChanged'",
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            + "arg0='\(service)'",
    ]

    private let socket: String?
    private var bus: SystemBus?
    private var connectsAt: Int64 = .min
    private var failures = 0
    private var question: UInt64?
    private var askedAt: Int64?
    private var hasNews = true

    /// Nil while nobody says.
    package private(set) var isMetered: Bool?

    /// - Parameter root: `/`, or a folder with `run` in it that stands for it.
    package convenience init(root: String = "/") {
        self.init(socket: SystemFolder(root: root).busSocket)
    }

    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    package init(socket: String?) {
        self.socket = socket
    }

    /// The connection's descriptor; nil while there is none.
    package var descriptor: Int32? { self.bus?.descriptor }

    /// Whether the descriptor is to be waited on to be writable, too.
    package var wantsToWrite: Bool { self.bus?.wantsToWrite ?? false }

    /// When `take` is to be called even if the descriptor says nothing.
    package var nextAt: Int64 {
        guard self.bus != nil else { return self.connectsAt }
        guard let askedAt = self.askedAt else { return .min }
        if self.question != nil { return askedAt + Timing.patience }
        return askedAt + (self.hasNews ? Timing.pause : Timing.interval)
    }

    /// Connects, takes what the bus brings, and asks, whatever it is time for.
    package func take(now: Int64) {
        do throws(SystemError) {
            if self.bus == nil {
                guard now >= self.connectsAt else { return }
                try self.connect()
            }
            guard let bus = self.bus else { return }
            for _ in 0..<Self.messagesMax {
                guard let message = try bus.receive() else { break }
                switch message {
                case .answer(self.question, let answer): self.answered(answer)
                case .news: self.hasNews = true
                case .answer, .other: ()
                }
            }
            guard now >= self.nextAt else { return }
            self.hasNews = false
            self.askedAt = now
            self.question = try bus.get("Metered", of: Self.service, at: Self.path, from: Self.service)
        } catch {
            self.bus = nil
            self.isMetered = nil
            self.connectsAt = now + min(Timing.lastRetry, Timing.firstRetry << Int64(min(self.failures, 16)))
            self.failures += 1
        }
    }

    private func connect() throws(SystemError) {
        let bus = try SystemBus(socket: self.socket)
        for rule in Self.rules { try bus.subscribe(rule) }
        self.bus = bus
        self.question = nil
        self.askedAt = nil
    }

    private func answered(_ answer: SystemBus.Answer) {
        self.question = nil
        self.failures = 0
        switch answer {
        // NM_METERED_YES and NM_METERED_GUESS_YES, NM_METERED_NO and NM_METERED_GUESS_NO.
        case .number(1), .number(3): self.isMetered = true
        case .number(2), .number(4): self.isMetered = false
        case .number, .boolean, .other, .error: self.isMetered = nil
        }
    }
}
