package import HTTPClient
import LinuxConditions
import Platform

/// The state of the machine, as far as transfers depend on it.
package struct MachineState: Hashable, Sendable {
    package var conditions = TransferConditions()
    package var thermal = "nominal"

    package init() {}
}

/// Watches the machine's state and reports changes.
///
/// `@unchecked Sendable`: accessed only on the `HTTPThread`.
package final class MachineWatch: HTTPAgent, @unchecked Sendable {
    private let metered: AgentSettings.Metered
    private let constrained: AgentSettings.Metered
    private let root: String
    private let report: @Sendable (MachineState) -> Void
    private var watch: ConditionsWatch?
    private var network: MeteredWatch?
    private var state = MachineState()
    private var isFirst = true

    package init(_ settings: AgentSettings, report: @escaping @Sendable (MachineState) -> Void) {
        self.metered = settings.metered
        self.constrained = settings.constrained
        self.root = settings.machine
        self.report = report
    }

    package func begin(on loop: HTTPLoop) {
        self.watch = ConditionsWatch(root: self.root)
        if self.metered == .auto || self.constrained == .auto { self.network = MeteredWatch(root: self.root) }
        self.momentReached(on: loop)
    }

    package func received(_ event: HTTPEvent, on loop: HTTPLoop) {}

    package func momentReached(on loop: HTTPLoop) {
        guard let watch = self.watch else { return }
        var state = self.state
        if let found = watch.conditions(now: loop.now) {
            state.conditions.hasExternalPower = found.charging ?? true
            state.conditions.isLowPower = found.lowPowerMode ?? false
            state.conditions.hasNetwork = found.network
            let thermal = found.thermalState ?? .nominal
            state.conditions.isHot = thermal >= .serious
            state.thermal = thermal.rawValue
        }
        self.network?.take(now: loop.now)
        state.conditions.isMetered = self.metered == .auto ? self.network?.isMetered : self.metered == .yes
        state.conditions.isConstrained =
            self.constrained == .auto ? self.network?.isConstrained : self.constrained == .yes
        let hasChanged = state != self.state
        self.state = state
        // The first report waits for NetworkManager's answer, because transfers may begin after the report.
        if hasChanged || self.isFirst, self.network?.isSettled != false {
            self.isFirst = false
            self.report(state)
        }
        let descriptors = watch.descriptors + [self.network?.descriptor].compactMap(\.self)
        let writable = watch.writableDescriptors + (self.network?.wantsToWrite == true ? descriptors.suffix(1) : [])
        loop.watch(descriptors, writable: writable, for: self)
        loop.setMoment(max(loop.now + 100, min(watch.nextAt, self.network?.nextAt ?? .max)), for: self)
    }
}
