import Bytes
import DeviceEngine
import LaunchPolicy

/// Watches from outside that launches keep their distance and their budget.
struct SpacingChecker {
    private struct Account {
        var last: Instant?
        var windowStart: Instant?
        var windowCount: UInt32 = 0
    }

    private var accounts: [DeviceToken: Account] = [:]
    private var before: [DeviceToken: Account] = [:]
    private(set) var faults: [String] = []
    /// How often a launch was as early as it may be.
    private(set) var exact = 0

    /// An ordinary launch of a device that is not active.
    mutating func charged(_ token: DeviceToken, _ priority: Priority, at now: Instant, _ parameters: Parameters) {
        var account = self.accounts[token] ?? Account()
        self.before[token] = account
        if priority < .immediate, let last = account.last {
            if now < last + parameters.launchInterval { self.faults.append("two launches are too close") }
            if now == last + parameters.launchInterval { self.exact += 1 }
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
