/// Where a running gateway's configuration comes from, so that it can be read again.
package struct ConfigurationSource: Sendable {
    /// Reads it anew, with all that the command line says.
    ///
    /// - Throws: `ConfigurationError` with every fault, those of the combination included.
    package let read: @Sendable () throws(ConfigurationError) -> GatewayConfiguration
    /// Whether SIGHUP reloads. Otherwise it stops the gateway, as closing its terminal does to other programs.
    package let reloadsOnHangup: Bool

    package init(
        reloadsOnHangup: Bool,
        read: @escaping @Sendable () throws(ConfigurationError) -> GatewayConfiguration
    ) {
        self.read = read
        self.reloadsOnHangup = reloadsOnHangup
    }
}
