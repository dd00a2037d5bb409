import Engine
import Policy
import Wire

/// The texts about the causes and the ends of holds.
extension Reasoning {
    /// Returns the causes of all holds of a launch, as the text between "is held" and the final period.
    ///
    /// - `holds`: one or more holds, without `worker`.
    /// - `ending`: the words before the end of a single hold: "and launches once" or "until".
    func causes(of holds: [Hold], _ kind: LaunchKind, ending: String) -> String {
        let causes = holds.map { self.cause(of: $0, kind) }
        guard causes.count > 1 else {
            return causes.map { "because \($0.what), \(ending) \($0.end)" }.joined()
        }
        let all = ending == "until" ? "until all of them have ended" : "\(ending) all of them have ended"
        let list = causes.map { "\($0.what), until \($0.end)" }.joined(separator: "; ")
        return "for \(causes.count) reasons, \(all): \(list)"
    }

    /// Returns the cause of a hold and the event that ends it, as two main clauses.
    func cause(of hold: Hold, _ kind: LaunchKind) -> (what: String, end: String) {
        let (conditions, parameters) = (self.device.state.conditions, self.device.parameters)
        switch hold {
        case .paused:
            return (
                "the topic \(self.device.topic) is paused",
                "it is resumed (wakegate topic resume \(self.device.topic))"
            )
        case .forceQuit:
            let states = kind == .push || kind == .urlSession ? "background or active" : "background"
            return ("the app was force-quit", "appState is reported as \(states)")
        case .backgroundRefresh: return self.refusedRefresh
        case .active: return ("the device is in use", "appState is reported as background")
        case .network:
            return ("the device has no network\(kind == .push ? "" : ", which it needs")", "it reports one")
        case .power:
            return ("it requires external power and the device is not charging", "charging is reported")
        case .lowPower: return ("the device is in low power mode", "lowPowerMode is reported as false")
        case .thermal:
            let remedy = conditions.thermalState == .serious ? Self.priorityRemedy(kind) : ""
            return (
                "the thermal state is \(conditions.thermalState.rawValue)",
                "the device reports that it is cooler\(remedy)"
            )
        case .memory:
            return ("the memory pressure is critical", "the device reports that it is normal or warning")
        case .battery:
            let (level, critical) = (Self.percent(conditions.batteryLevel), Self.percent(parameters.criticalBattery))
            return (
                "the battery is at \(level), below the critical \(critical), and not charging",
                "the device reports more charge or a charger\(Self.priorityRemedy(kind))"
            )
        case .usage:
            return (
                "the device has not been used since \(self.pastTime(self.device.usage.last)), for longer than the "
                    + "\(Self.seconds(parameters.usageWindow)) s of usageWindow", "the device is used again"
            )
        case .priority:
            return (
                "it has priority 1, which never wakes a device", "the device is active, or a more urgent push comes"
            )
        case .worker: return ("no worker has a free slot", "one has")
        }
    }

    /// The cause and the end of the hold `backgroundRefresh`. The user of the device can change `denied`, but not
    /// `restricted`.
    private var refusedRefresh: (what: String, end: String) {
        guard self.device.state.conditions.backgroundRefresh == .restricted else {
            return ("background refresh is denied", "it is reported as available")
        }
        return (
            "background refresh is restricted, which the user of the device cannot change",
            "the restriction (parental controls, or a profile of an administrator) is lifted and it is reported as "
                + "available"
        )
    }

    private static func priorityRemedy(_ kind: LaunchKind) -> String {
        kind == .push ? ", or with a push of priority 10" : ""
    }

    /// Formats a fraction as a percentage.
    private static func percent(_ fraction: Double) -> String {
        "\(JSONNumber.text(of: (fraction * 1000).rounded() / 10)) %"
    }
}
