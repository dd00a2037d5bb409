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

/// A property of a service on the system bus. It is asked for now and then, and soon after the bus tells of a change.
///
/// At most one question is unanswered at a time, and a signal is only a reason to ask.
///
/// It belongs to one thread and waits for nothing.
final class PropertyWatch {
    /// Times in milliseconds.
    enum Timing {
        /// The least time between two questions, however much is told.
        static let pause: Int64 = 500
        /// How long an answer may take.
        static let patience: Int64 = 10_000
        /// The wait before the next connection after one that came to nothing; it doubles with each.
        static let firstRetry: Int64 = 1000
        static let lastRetry: Int64 = 60_000
    }

    /// The property, and how often to ask for it.
    struct Subject {
        let property: String
        let interface: String
        let path: String
        let service: String
        /// The time between two questions, while nothing is told.
        let interval: Int64
        /// How long an answer may take before it is asked anew.
        let abandonment: Int64

        /// The match rules of the signals that are reasons to ask.
        var rules: [String] {
            let bus = "org.freedesktop.DBus"
            return [
                "type='signal',sender='\(self.service)',path='\(self.path)',interface='\(bus).Properties',"
                    + "member='PropertiesChanged'",
                "type='signal',sender='\(bus)',interface='\(bus)',member='NameOwnerChanged',arg0='\(self.service)'",
            ]
        }
    }

    /// An event of the property.
    enum News {
        case answer(SystemBus.Answer)
        /// An answer takes longer than it may.
        case silence
        /// There is no connection, or no longer.
        case lost(SystemError)
    }

    /// The most messages that are taken at once.
    private static let messagesMax = 64

    private let subject: Subject
    private let socket: String?
    private var bus: SystemBus?
    private var connectsAt: Int64 = .min
    /// Connections in a row that brought no answer.
    private var failures = 0
    /// The cookie of the question that is on its way.
    private var question: UInt64?
    private var askedAt: Int64?
    private var hasNews = false
    /// True if the silence was reported.
    private var isSilent = false
    /// Whether there may be more messages than were taken.
    private var isBehind = false

    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    init(_ subject: Subject, socket: String?) {
        self.subject = subject
        self.socket = socket
    }

    /// The connection's descriptor; nil while there is none.
    var descriptor: Int32? { self.bus?.descriptor }

    /// Whether the descriptor is to be waited on to be writable, too.
    var wantsToWrite: Bool { self.bus?.wantsToWrite ?? false }

    /// When `take` is to be called even if the descriptor says nothing.
    var nextAt: Int64 {
        guard self.bus != nil else { return self.connectsAt }
        guard !self.isBehind, let askedAt = self.askedAt else { return .min }
        guard self.question != nil else { return self.asksAt }
        return askedAt + (self.isSilent ? self.subject.abandonment : Timing.patience)
    }

    /// When the next question may be asked, the last one having its answer.
    private var asksAt: Int64 {
        guard let askedAt = self.askedAt else { return .min }
        return askedAt + (self.hasNews ? Timing.pause : self.subject.interval)
    }

    /// Connects, takes what the bus brings, and asks, whatever it is time for.
    func take(now: Int64, _ tell: (News) -> Void) {
        do throws(SystemError) {
            if self.bus == nil, now >= self.connectsAt { try self.connect() }
            if let bus = self.bus {
                try self.receive(from: bus, tell)
                try self.ask(bus, now: now, tell)
            }
        } catch {
            self.bus = nil
            self.connectsAt = now + min(Timing.lastRetry, Timing.firstRetry << Int64(min(self.failures, 16)))
            self.failures += 1
            tell(.lost(error))
        }
    }

    private func connect() throws(SystemError) {
        let bus = try SystemBus(socket: self.socket)
        for rule in self.subject.rules { try bus.subscribe(rule) }
        self.bus = bus
        self.question = nil
        self.askedAt = nil
        self.hasNews = false
    }

    private func receive(from bus: SystemBus, _ tell: (News) -> Void) throws(SystemError) {
        self.isBehind = true
        for _ in 0..<Self.messagesMax {
            guard let message = try bus.receive() else {
                self.isBehind = false
                return
            }
            switch message {
            case .answer(self.question, let answer):
                self.question = nil
                self.failures = 0
                tell(.answer(answer))
            case .news: self.hasNews = true
            case .answer, .other: ()
            }
        }
    }

    private func ask(_ bus: SystemBus, now: Int64, _ tell: (News) -> Void) throws(SystemError) {
        if self.question != nil, let askedAt = self.askedAt {
            if now >= askedAt + Timing.patience {
                self.isSilent = true
                tell(.silence)
            }
            guard now >= askedAt + self.subject.abandonment else { return }
        } else if now < self.asksAt {
            return
        }
        self.hasNews = false
        self.isSilent = false
        self.askedAt = now
        self.question = try bus.get(
            self.subject.property,
            of: self.subject.interface,
            at: self.subject.path,
            from: self.subject.service
        )
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
/// it is asked now and then.
///
/// It belongs to one thread and waits for nothing.
package final class SeatWatch {
    /// How long a hint that was known stands when it is known no longer, as while the bus restarts, in milliseconds.
    private static let grace: Int64 = 15_000

    private let hint: PropertyWatch
    private var isIdle: Bool?
    private var last: Bool?
    private var lostAt: Int64?
    private var reason: String?

    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    package init(socket: String? = nil) {
        let subject = PropertyWatch.Subject(
            property: "IdleHint",
            interface: "org.freedesktop.login1.Seat",
            path: "/org/freedesktop/login1/seat/seat0",
            service: "org.freedesktop.login1",
            interval: 15_000,
            abandonment: 60_000
        )
        self.hint = PropertyWatch(subject, socket: socket)
    }

    package var descriptor: Int32? { self.hint.descriptor }
    package var wantsToWrite: Bool { self.hint.wantsToWrite }
    package var nextAt: Int64 { self.hint.nextAt }

    /// Whether logind's last answer was a state.
    package var isKnown: Bool { self.isIdle != nil }

    /// Whether there was an answer, or a reason why there is none.
    package var isSettled: Bool { self.isKnown || self.reason != nil }

    /// What `appState` is; nil when it was never known.
    ///
    /// A hint that is known no longer stands for a while; then the state is `background`, as on a machine that tells
    /// nothing: else a machine whose logind has gone would count as in use for ever.
    package func appState(now: Int64) -> AppState? {
        guard let last = self.last else { return nil }
        if let lostAt = self.lostAt, now >= lostAt + Self.grace { return .background }
        return last ? .background : .active
    }

    /// Why the state is not known; nil when it is, or may soon be.
    package func fault(now: Int64) -> String? {
        if self.last != nil, let lostAt = self.lostAt, now < lostAt + Self.grace { return nil }
        return self.reason
    }

    /// Connects, takes what the bus brings, and asks, whatever it is time for; whether the hint has changed.
    package func take(now: Int64) -> Bool {
        let before = self.isIdle
        self.hint.take(now: now) { news in
            switch news {
            case .answer(.boolean(let isIdle)):
                self.isIdle = isIdle
                self.last = isIdle
                self.lostAt = nil
                self.reason = nil
            case .answer(.number), .answer(.other):
                self.unknown("what logind calls the IdleHint of seat0 is not a boolean", now: now)
            case .answer(.error(let name)):
                self.unknown("logind does not tell the IdleHint of seat0: \(name)", now: now)
            case .silence: self.unknown("logind does not answer, though its bus is there", now: now)
            case .lost(let error):
                let problem = "the system bus, over which logind is asked, cannot be reached"
                self.unknown("\(problem): \(error.message)", now: now)
            }
        }
        return self.isIdle != before
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
    private let property: PropertyWatch
    /// Nil while nobody says.
    package private(set) var isMetered: Bool?

    /// - Parameter root: `/`, or a folder with `run` in it that stands for it.
    package convenience init(root: String = "/") {
        self.init(socket: SystemFolder(root: root).busSocket)
    }

    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    package init(socket: String?) {
        let subject = PropertyWatch.Subject(
            property: "Metered",
            interface: "org.freedesktop.NetworkManager",
            path: "/org/freedesktop/NetworkManager",
            service: "org.freedesktop.NetworkManager",
            interval: 60_000,
            abandonment: PropertyWatch.Timing.patience
        )
        self.property = PropertyWatch(subject, socket: socket)
    }

    package var descriptor: Int32? { self.property.descriptor }
    package var wantsToWrite: Bool { self.property.wantsToWrite }
    package var nextAt: Int64 { self.property.nextAt }

    /// Connects, takes what the bus brings, and asks, whatever it is time for.
    package func take(now: Int64) {
        self.property.take(now: now) { news in
            switch news {
            // NM_METERED_YES and NM_METERED_GUESS_YES, NM_METERED_NO and NM_METERED_GUESS_NO.
            case .answer(.number(1)), .answer(.number(3)): self.isMetered = true
            case .answer(.number(2)), .answer(.number(4)): self.isMetered = false
            case .answer, .lost: self.isMetered = nil
            case .silence: ()
            }
        }
    }
}
