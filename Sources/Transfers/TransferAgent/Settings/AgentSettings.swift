package import ServiceManager

/// How an agent is set up.
package struct AgentSettings: Sendable {
    /// Whether the network costs by the byte.
    package enum Metered: String, CaseIterable, Sendable {
        /// As NetworkManager says; where it does not, the network is not metered.
        case auto
        case yes
        case no
    }

    /// The program's version, and the commit that it was built of, as callers are told them.
    package var version = ""
    package var commit: String?
    package var stateFolder = ""
    /// `unix:PATH`.
    package var listen = ""
    /// The gateway that is told of finished sessions; nil for none.
    package var gateway: String?
    /// PEM file of the authority of the gateway's certificate.
    package var gatewayAuthority: String?
    /// The file with the bearer token for the gateway; it is read anew for each request.
    package var gatewayToken: String?
    package var metered = Metered.auto
    /// PEM file of the authorities that transfers trust instead of the system's.
    package var trust: String?
    /// PEM files of the certificate and the key that servers of transfers are shown.
    package var certificate: String?
    package var privateKey: String?
    /// The proxy of transfers instead of those of the environment.
    package var proxy: String?
    /// Where the system's folders `sys`, `run` and `var` lie.
    package var machine = "/"
    /// Bytes of the file system that are left to others.
    package var spaceReserve: Int64 = 16 << 20
    package var limits = TransferLimits()
    package var retry = RetryPolicy()
    package var logLevel = LogLevel.info
    package var logFormat = LogFormat.text

    package init() {}

    /// The path of the socket; nil when `listen` is no path.
    package var socketPath: String? {
        guard self.listen.hasPrefix("unix:/") else { return nil }
        return String(self.listen.dropFirst("unix:".count))
    }
}
