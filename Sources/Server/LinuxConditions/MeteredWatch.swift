import Platform

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
