package import Policy

/// Why a pending push is not launched, as explain, statistics and the provider's answer name it.
package enum HoldCode: UInt8, CaseIterable, Sendable {
    /// The topic is paused: a person said that nothing of it is to launch by itself.
    case paused
    case forceQuit, backgroundRefresh, network, thermal, battery, priority
    /// Everything allows the launch but a free worker slot.
    case worker

    package init(_ hold: Hold) {
        self =
            switch hold {
            case .forceQuit: .forceQuit
            case .backgroundRefresh: .backgroundRefresh
            case .network: .network
            case .thermal: .thermal
            case .battery: .battery
            case .priority: .priority
            }
    }

    package var name: StaticString {
        switch self {
        case .paused: "paused"
        case .forceQuit: "forceQuit"
        case .backgroundRefresh: "backgroundRefresh"
        case .network: "network"
        case .thermal: "thermal"
        case .battery: "battery"
        case .priority: "priority"
        case .worker: "worker"
        }
    }
}
