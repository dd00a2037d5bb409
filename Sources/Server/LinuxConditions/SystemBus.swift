internal import CSystemBus
import Glibc
package import Platform

/// A connection to a D-Bus message bus, whose methods never wait. Owns the descriptor.
///
/// Belongs to one thread.
@safe
package final class SystemBus {
    /// The answer to a call.
    package enum Answer: Hashable, Sendable {
        case boolean(Bool)
        /// An unsigned 32-bit number.
        case number(UInt32)
        /// A value of another type.
        case other
        /// An error with this name.
        case error(String)
    }

    /// A message on the connection.
    package enum Message: Hashable, Sendable {
        /// The answer to the call with this cookie.
        case answer(UInt64, Answer)
        /// A signal that this connection has subscribed to.
        case news
        /// A message that is ignored.
        case other
    }

    private let bus: OpaquePointer

    /// Starts to connect. Later calls throw if the connection fails.
    ///
    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    package init(socket: String?) throws(SystemError) {
        var bus: OpaquePointer?
        let address = socket.map { "unix:path=\(FileSystem.percentEncoded($0))" }
        let result = unsafe wakegate_bus_open(&bus, address)
        guard result >= 0, let bus = unsafe bus else { throw SystemError(-result) }
        unsafe self.bus = bus
    }

    deinit { _ = unsafe sd_bus_close_unref(self.bus) }

    /// The descriptor to wait on; nil if the connection is lost.
    package var descriptor: Int32? {
        let descriptor = unsafe sd_bus_get_fd(self.bus)
        return descriptor >= 0 ? descriptor : nil
    }

    /// True if there is output to send when the descriptor is writable.
    package var wantsToWrite: Bool {
        let events = unsafe sd_bus_get_events(self.bus)
        return events > 0 && events & Int32(POLLOUT) != 0
    }

    /// Subscribes to signals that match `rule`.
    package func subscribe(_ rule: String) throws(SystemError) {
        let name = "org.freedesktop.DBus"
        _ = try self.call(name, "/org/freedesktop/DBus", name, "AddMatch", rule, nil)
    }

    /// Requests a property of an object. The answer will have the returned cookie.
    package func get(
        _ property: String,
        of interface: String,
        at path: String,
        from service: String
    ) throws(SystemError) -> UInt64 {
        try self.call(service, path, "org.freedesktop.DBus.Properties", "Get", interface, property)
    }

    /// Continues the connection, and returns the next message; nil if there is none now.
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
}

/// Watches a property of a service on the system bus. Sends queries at intervals, and soon after a signal.
///
/// At most one query is unanswered at a time. The contents of signals are ignored.
///
/// Belongs to one thread and never waits.
final class PropertyWatch {
    /// Times in milliseconds.
    enum Timing {
        /// The shortest time between two queries, regardless of signals.
        static let pause: Int64 = 500
        /// The timeout for an answer.
        static let gracePeriod: Int64 = 10_000
        /// The first and the last delay before connecting again; it doubles after each failure.
        static let firstRetry: Int64 = 1000
        static let lastRetry: Int64 = 60_000
    }

    /// The property, and the intervals of its queries.
    struct Subject {
        let property: String
        let interface: String
        let path: String
        let service: String
        /// The time between two queries without a signal, in milliseconds.
        let interval: Int64
        /// The time after which an unanswered query is repeated, in milliseconds.
        let abandonment: Int64

        /// The match rules of the signals that trigger a query.
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
        /// The answer is late.
        case silence
        /// The connection failed or was lost.
        case lost(SystemError)
    }

    /// The maximum number of messages processed at once.
    private static let messagesMax = 64

    private let subject: Subject
    private let socket: String?
    private var bus: SystemBus?
    private var connectsAt: Int64 = .min
    /// The number of consecutive connections that failed without an answer.
    private var failures = 0
    /// The cookie of the unanswered query.
    private var question: UInt64?
    private var askedAt: Int64?
    private var hasNews = false
    /// True if the lack of an answer was reported.
    private var isSilent = false
    /// True if more messages may be waiting.
    private var isBehind = false

    /// - `socket`: the path of the bus's socket; nil for the system's bus.
    init(_ subject: Subject, socket: String?) {
        self.subject = subject
        self.socket = socket
    }

    /// The connection's descriptor; nil while not connected.
    var descriptor: Int32? { self.bus?.descriptor }

    /// True if the descriptor must be watched for being writable, too.
    var wantsToWrite: Bool { self.bus?.wantsToWrite ?? false }

    /// The time of the next call of `take` if the descriptor does not become ready earlier.
    var nextAt: Int64 {
        guard self.bus != nil else { return self.connectsAt }
        guard !self.isBehind, let askedAt = self.askedAt else { return .min }
        guard self.question != nil else { return self.asksAt }
        return askedAt + (self.isSilent ? self.subject.abandonment : Timing.gracePeriod)
    }

    /// The earliest time of the next query, if the last one was answered.
    private var asksAt: Int64 {
        guard let askedAt = self.askedAt else { return .min }
        return askedAt + (self.hasNews ? Timing.pause : self.subject.interval)
    }

    /// Connects, processes messages and sends a query, as far as each is due.
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
            if now >= askedAt + Timing.gracePeriod {
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

/// The use of a machine, in the terms of the launch policy.
package enum AppState: String, Sendable {
    case background, active
}

/// Watches the use of a machine: the `IdleHint` of logind for the first seat, `seat0`, which is the machine's own
/// screen and keyboard.
///
/// The seat's hint ignores sessions without a user at the machine, such as an SSH shell or a cron job. Every machine
/// has this seat, which is idle without a session.
///
/// logind signals changes of a graphical session's hint. It computes the hint of a text console only on request, so the
/// watch also queries at intervals.
///
/// Belongs to one thread and never waits.
package final class SeatWatch {
    /// The time, in milliseconds, for which the last known hint remains in use after the hint has become unknown. It
    /// bridges a restart of the bus.
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

    /// True if logind's last answer was a hint.
    package var isKnown: Bool { self.isIdle != nil }

    /// True if logind has answered, or if a reason for the missing answer is known.
    package var isSettled: Bool { self.isKnown || self.reason != nil }

    /// Returns the value of `appState`; nil if it was never known.
    ///
    /// After the hint becomes unknown, the last value is used for 15 seconds, and then `background`. Otherwise a
    /// machine without logind could count as in use indefinitely.
    package func appState(now: Int64) -> AppState? {
        guard let last = self.last else { return nil }
        if let lostAt = self.lostAt, now >= lostAt + Self.grace { return .background }
        return last ? .background : .active
    }

    /// Returns the reason why the state is unknown; nil if it is known or may become known soon.
    package func fault(now: Int64) -> String? {
        if self.last != nil, let lostAt = self.lostAt, now < lostAt + Self.grace { return nil }
        return self.reason
    }

    /// Connects, processes messages, and sends a query if due. Returns true if the hint has changed.
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

/// Watches the property `Metered` of NetworkManager, which signals changes.
///
/// Belongs to one thread and never waits.
package final class MeteredWatch {
    private let property: PropertyWatch
    /// True if the network is metered; nil while unknown.
    package private(set) var isMetered: Bool?
    /// True if a person set the connection to metered, like Low Data Mode on iOS. False if NetworkManager only assumes
    /// that it is metered, as for a phone's hotspot. Nil while unknown.
    package private(set) var isConstrained: Bool?
    /// True if NetworkManager has answered, or if no answer is expected soon.
    package private(set) var isSettled = false

    /// - Parameter root: `/`, or a folder that replaces it, with `run`.
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
            abandonment: PropertyWatch.Timing.gracePeriod
        )
        self.property = PropertyWatch(subject, socket: socket)
    }

    package var descriptor: Int32? { self.property.descriptor }
    package var wantsToWrite: Bool { self.property.wantsToWrite }
    package var nextAt: Int64 { self.property.nextAt }

    /// Connects, processes messages and sends a query, as far as each is due.
    package func take(now: Int64) {
        self.property.take(now: now) { news in
            self.isSettled = true
            switch news {
            // NM_METERED_YES and NM_METERED_GUESS_YES, NM_METERED_NO and NM_METERED_GUESS_NO.
            case .answer(.number(1)): (self.isMetered, self.isConstrained) = (true, true)
            case .answer(.number(3)): (self.isMetered, self.isConstrained) = (true, false)
            case .answer(.number(2)), .answer(.number(4)): (self.isMetered, self.isConstrained) = (false, false)
            case .answer, .lost: (self.isMetered, self.isConstrained) = (nil, nil)
            case .silence: ()
            }
        }
    }
}
