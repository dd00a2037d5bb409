import Engine
import Platform
import Policy
import Wire

/// Says why interval and budget keep a launch back until some moment.
struct SpacingReasoning {
    let device: DeviceSnapshot
    let priority: Priority
    let offset: WallOffset

    /// What goes behind "waits until" and the moment, up to the full stop.
    func clause(until eligibleAt: Instant) -> String {
        let state = self.device.state
        let parameters = self.device.parameters
        if state.spacing.windowCount >= parameters.dailyLaunches,
            state.spacing.windowStart + parameters.budgetWindow == eligibleAt
        {
            return ", because all \(parameters.dailyLaunches) launches of the budget window are used up"
        }
        var causes: [String] = []
        if state.penalty > 0 { causes.append(Self.doubled(state.penalty)) }
        if state.conditions.lowPowerMode, self.priority < .immediate { causes.append("doubled in low power mode") }
        let cause = causes.isEmpty ? "" : " (" + causes.joined(separator: "; ") + ")"
        let seconds = JSONNumber.seconds(state.interval(self.priority, parameters))
        let last = WallTime.textRoundedUp(self.offset.wall(state.spacing.lastLaunch))
        return ": the last launch was at \(last), and launches of priority \(self.priority.rawValue) are "
            + "\(seconds) s apart\(cause)"
    }

    /// Why an interval is longer than it was.
    static func doubled(_ penalty: some BinaryInteger) -> String {
        "doubled \(penalty) times after wakes that were not completed, until one reports newData"
    }
}

extension JSONNumber {
    /// A duration in seconds.
    static func seconds(_ milliseconds: Int64) -> String { self.text(of: Double(milliseconds) / 1000) }

    /// A part of one.
    static func percent(_ fraction: Double) -> String { "\(self.text(of: (fraction * 1000).rounded() / 10)) %" }
}
