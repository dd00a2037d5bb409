import Engine
import Policy
import Wire

/// Watches from outside that launches keep their distance, their allowance and their budget.
struct SpacingChecker {
    private struct Account {
        var last: Instant?
        /// The launches of priority 10 that came before the interval had passed.
        var jumps: [Instant] = []
        var windowStart: Instant?
        var windowCount: UInt32 = 0
    }

    private var accounts: [DeviceToken: Account] = [:]
    private var before: [DeviceToken: Account] = [:]
    private(set) var faults: [String] = []
    /// How often a launch was as early as it may be.
    private(set) var exact = 0
    /// How often a launch came before the interval had passed.
    private(set) var jumps = 0

    /// An ordinary launch of a device that is not active.
    mutating func charged(_ token: DeviceToken, _ priority: Priority, at now: Instant, _ parameters: Parameters) {
        var account = self.accounts[token] ?? Account()
        self.before[token] = account
        if priority < .immediate, let last = account.last {
            if now < last + parameters.launchInterval { self.faults.append("two launches are too close") }
            if now == last + parameters.launchInterval { self.exact += 1 }
        }
        if priority == .immediate, let last = account.last, now < last + parameters.launchInterval {
            account.jumps.append(now)
            self.jumps += 1
            if !Self.isAllowed(account.jumps, parameters) { self.faults.append("the allowance is overdrawn") }
        }
        if let start = account.windowStart, now < start + parameters.budgetWindow {
            if account.windowCount >= parameters.dailyLaunches { self.faults.append("the budget is overdrawn") }
            account.windowCount += 1
        } else {
            account.windowStart = now
            account.windowCount = 1
        }
        account.last = now
        self.accounts[token] = account
    }

    /// Whether the last of these jumps was: however far one looks back, there are no more than may come at once and
    /// those that were allowed anew since.
    private static func isAllowed(_ jumps: [Instant], _ parameters: Parameters) -> Bool {
        guard let last = jumps.last else { return true }
        return jumps.indices.allSatisfy { first in
            let since = last.milliseconds - jumps[first].milliseconds
            return Int64(jumps.count - first) <= parameters.immediateBurst + since / parameters.immediateRefill
        }
    }

    /// A launch that costs nothing.
    mutating func free(_ token: DeviceToken) { self.before[token] = self.accounts[token] ?? Account() }

    /// The launch never happened.
    mutating func lost(_ token: DeviceToken) {
        guard let before = self.before.removeValue(forKey: token) else { return }
        self.accounts[token] = before
    }

    /// The device was removed: it starts afresh.
    mutating func forgotten(_ token: DeviceToken) {
        self.accounts[token] = nil
        self.before[token] = nil
    }
}
