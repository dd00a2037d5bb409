package import ServiceManager
import Wire

extension GatewayConfiguration {
    /// Has every listener for which there are sockets take those instead of its own addresses.
    ///
    /// - Throws: `ConfigurationError` that names each socket that is for no listener.
    package mutating func adopt(_ sockets: [InheritedSocket]) throws(ConfigurationError) {
        var faults: [ConfigurationFault] = []
        var addresses: [ListenerRole: [String]] = [:]
        for socket in sockets {
            if let role = ListenerRole.allCases.first(where: { "\($0)" == socket.name }) {
                addresses[role, default: []].append(socket.address)
            } else {
                let names = ListenerRole.allCases.map { "\($0)" }.joined(separator: ", ")
                faults.append(
                    ConfigurationFault(
                        key: "the socket \"\(socket.name)\"",
                        problem: "passed by the service manager for \(socket.address), is for no listener",
                        remedy: "set FileDescriptorName= in its unit to one of: \(names)"
                    )
                )
            }
        }
        guard faults.isEmpty else { throw ConfigurationError(faults: faults, rest: self) }
        for (role, found) in addresses {
            let setting = found.count == 1 ? ListenSetting(found[0]) : ListenSetting(found)
            switch role {
            case .edge: self.edge = setting
            case .admin: self.admin = setting
            case .plain: self.plain = setting
            }
        }
        self.inheritedSockets = sockets
    }
}
