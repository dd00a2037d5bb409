import Bytes
import HTTPTransport

/// Keeps other people's web pages out of the cleartext listeners, which a browser on this machine can reach.
///
/// One a loop: it remembers the last host it admitted, since nearly every request names the same.
struct CallerCheck {
    /// The hosts of the addresses that the cleartext listeners were configured with.
    private let configuredHosts: Set<String>
    private var admitted: [UInt8] = []

    init(configuration: GatewayConfiguration) {
        let addresses = configuration.admin.addresses + configuration.plain.addresses
        self.configuredHosts = Set(addresses.compactMap { ListenSetting.hostAndPort($0).map { String($0.host) } })
    }

    /// Whether the request may come in: its host is this gateway, and it is of no foreign origin.
    mutating func admits(_ request: Request) -> Bool {
        let authority = request.authority
        guard authority.isEmpty || self.admits(host: authority) else { return false }
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            guard field.name == "origin" else { continue }
            guard field.value.string == "http://" + authority.string else { return false }
        }
        return true
    }

    private mutating func admits(host authority: ByteView) -> Bool {
        if self.admitted.withByteView({ $0 == authority }) { return true }
        guard self.isOwn(host: authority.string) else { return false }
        self.admitted = authority.array
        return true
    }

    private func isOwn(host authority: String) -> Bool {
        let address = authority.hasSuffix("]") || !authority.contains(":") ? authority + ":0" : authority
        guard let host = ListenSetting.hostAndPort(address)?.host else { return false }
        return ListenSetting.isLocal(address) || host.lowercased() == "localhost"
            || self.configuredHosts.contains(String(host))
    }
}
