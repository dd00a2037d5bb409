import Bytes
import HTTPTransport

/// Keeps other people's web pages out of the cleartext listeners, which a browser on this machine can reach.
struct CallerCheck: Sendable {
    /// The hosts of the addresses that the cleartext listeners were configured with.
    let configuredHosts: Set<String>

    init(configuration: GatewayConfiguration) {
        let addresses = configuration.admin.addresses + configuration.plain.addresses
        self.configuredHosts = Set(addresses.compactMap { ListenSetting.hostAndPort($0).map { String($0.host) } })
    }

    /// Whether the request may come in: its host is this gateway, and it is of no foreign origin.
    func admits(_ request: Request) -> Bool {
        let authority = request.authority
        guard authority.isEmpty || self.isOwn(host: authority.string) else { return false }
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            guard field.name == "origin" else { continue }
            guard field.value.string == "http://" + authority.string else { return false }
        }
        return true
    }

    private func isOwn(host authority: String) -> Bool {
        let address = authority.hasSuffix("]") || !authority.contains(":") ? authority + ":0" : authority
        guard let host = ListenSetting.hostAndPort(address)?.host else { return false }
        return ListenSetting.isLocal(address) || host.lowercased() == "localhost"
            || self.configuredHosts.contains(String(host))
    }
}
