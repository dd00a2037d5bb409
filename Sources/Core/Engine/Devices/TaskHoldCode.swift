package import Policy

/// Why a task or a session is not launched, as explain and the answer to its submission name it.
package enum TaskHoldCode: UInt8, CaseIterable, Sendable {
    /// The topic is paused: a person said that nothing of it is to launch by itself.
    case paused
    case forceQuit, backgroundRefresh, active, network, power, lowPower, thermal, battery, usage
    /// Everything allows the launch but a free slot on a stream that takes it.
    case worker

    package init(_ hold: TaskHold) {
        self =
            switch hold {
            case .forceQuit: .forceQuit
            case .backgroundRefresh: .backgroundRefresh
            case .active: .active
            case .network: .network
            case .power: .power
            case .lowPower: .lowPower
            case .thermal: .thermal
            case .battery: .battery
            case .usage: .usage
            }
    }

    package var name: StaticString {
        switch self {
        case .paused: "paused"
        case .forceQuit: "forceQuit"
        case .backgroundRefresh: "backgroundRefresh"
        case .active: "active"
        case .network: "network"
        case .power: "power"
        case .lowPower: "lowPower"
        case .thermal: "thermal"
        case .battery: "battery"
        case .usage: "usage"
        case .worker: "worker"
        }
    }
}
