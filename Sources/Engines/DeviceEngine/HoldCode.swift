package import LaunchPolicy

/// Why a pending push is not launched, as explain, statistics and the provider's answer name it.
package enum HoldCode: UInt8, CaseIterable, Sendable {
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
