import WakeGateTestKit

/// What a random trace contains, in milliseconds, for the checkers: nothing here comes from the code under test.
struct TraceFacts {
    struct Push {
        var moment: Int64
        var priority: Int
        /// As in the trace: 0 is now or never.
        var expiration: Int64?
    }

    /// The conditions of a device from a moment on.
    struct Report {
        var moment: Int64
        var device: DeviceFacts
    }

    var limits = TraceLimits()
    /// The pushes by apns-id.
    var pushes: [String: Push] = [:]
    var reports: [String: [Report]] = [:]
    /// The last push of each device, after which nothing holds it; empty when the trace stops early.
    var finalPushes: [String: String] = [:]
    /// Whether every wake is answered in time, and well.
    var isWorkerGood = false

    /// Every state the device was in at some point of the millisecond `moment`, the earliest first.
    func states(of device: String, at moment: Int64) -> [DeviceFacts] {
        let reports = self.reports[device] ?? []
        let before = reports.last { $0.moment < moment }?.device ?? DeviceFacts()
        return [before] + reports.filter { $0.moment == moment }.map(\.device)
    }
}
