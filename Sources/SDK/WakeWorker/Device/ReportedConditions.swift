internal import LinuxConditions

/// Which conditions of a Linux machine are reported: see ``WakeWorker/reportMachineConditions(for:_:)``.
///
/// ```swift
/// try await worker.reportMachineConditions(for: token, [.hardware, .appState])
/// ```
public struct ReportedConditions: OptionSet, Hashable, Sendable {
    /// Battery, charger, power saving, thermal state and network.
    public static let hardware = ReportedConditions(rawValue: 1)

    /// `appState`: `active` while somebody uses the machine's own screen and keyboard (logind's first seat, `seat0`),
    /// `background` while nobody does.
    ///
    /// While it is `active`, wakes come at once and cost nothing of the budgets. On a machine whose desktop never tells
    /// logind that it is idle, such as many kiosks, that is always.
    public static let appState = ReportedConditions(rawValue: 2)

    /// One bit for each.
    public let rawValue: Int

    /// A set of the conditions whose bits are set.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// The same for those who read the machine.
    var read: ConditionSet {
        var conditions: ConditionSet = []
        if self.contains(.hardware) { conditions.insert(.hardware) }
        if self.contains(.appState) { conditions.insert(.appState) }
        return conditions
    }
}
