import Engine
import Policy
import Wire

/// The wakes that streams of this gateway hold, of which device each is, and when somebody has to look whether one has
/// ended elsewhere: its slot would stay taken if the notice of that was lost.
struct HeldWakes {
    private struct Held {
        let device: DeviceToken
        /// When to look for it.
        var lookAt: Instant
    }

    /// How long after its deadline a wake is looked for, and after that each time, in milliseconds.
    private static let patience: Int64 = 5000

    private var wakes: [WakeID: Held] = [:]

    /// No wakes.
    init() {}

    /// The device of a wake that a stream here holds.
    func device(of wake: WakeID) -> DeviceToken? { self.wakes[wake]?.device }

    mutating func insert(_ wake: WakeID, of device: DeviceToken, deadline: Instant) {
        self.wakes[wake] = Held(device: device, lookAt: deadline + Self.patience)
    }

    mutating func remove(_ wake: WakeID) { self.wakes[wake] = nil }

    mutating func removeAll() { self.wakes = [:] }

    /// Wakes that should have ended, each again only after a while.
    mutating func overdue(at now: Instant, countMax: Int) -> [WakeID] {
        var overdue: [WakeID] = []
        for (wake, held) in self.wakes where held.lookAt <= now {
            overdue.append(wake)
            if overdue.count == countMax { break }
        }
        for wake in overdue { self.wakes[wake]?.lookAt = now + Self.patience }
        // In an order that does not hang on the process.
        return overdue.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
    }
}
