import Platform

/// What operators know a gateway by among others on the same database: its machine, and the port of its edge.
package enum MemberName {
    /// - Parameters:
    ///   - addresses: where it accepts.
    ///   - machine: the name of the machine; nil when it has none.
    package static func name(
        of addresses: BoundAddresses,
        machine: String? = ProcessFigures.hostName
    ) -> String {
        let address = [addresses.edge, addresses.plain, addresses.admin].compactMap(\.addresses.first).first ?? "off"
        // A socket of the file system has no port.
        guard !address.hasPrefix("unix:"), let (host, port) = ListenSetting.hostAndPort(address) else {
            return machine ?? address
        }
        // Every gateway listens on these: they tell no machine from another.
        let isAny = host == "::" || host == "0.0.0.0" || ListenSetting.isLocal(address)
        if isAny, let machine { return "\(machine):\(port)" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
