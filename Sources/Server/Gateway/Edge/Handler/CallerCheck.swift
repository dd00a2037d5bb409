import HTTPTransport
import Wire

/// Refuses requests from foreign web pages on the cleartext listeners, because a browser on this machine can reach
/// them.
///
/// Each loop has its own instance. It stores the last admitted host, because nearly all requests name the same host.
struct CallerCheck: ~Copyable {
    /// The hosts in the configured addresses of the cleartext listeners.
    private let configuredHosts: Set<String>
    /// True if machines of configured networks are admitted. They may use any host name of a local network.
    private let takesNetworkNames: Bool
    private var admitted = ByteBuffer()

    /// - Parameters:
    ///   - addresses: the addresses of the cleartext listeners. A Unix socket has no host name, so it is ignored.
    ///   - takesNetworkNames: true if machines of configured networks are admitted.
    init(addresses: [String], takesNetworkNames: Bool = false) {
        self.takesNetworkNames = takesNetworkNames
        self.configuredHosts = Set(
            addresses.compactMap { address in
                guard case .tcp(let host, _)? = try? ListenAddress.parse(address).kind else { return nil }
                return host.lowercased()
            }
        )
    }

    /// Returns true if the request names this gateway as its host and does not come from a foreign page.
    ///
    /// - `role`: the role of the listener that received the request.
    mutating func admits(_ request: Request, on role: ListenerRole) -> Bool {
        let authority = request.authority
        guard self.admits(host: authority) else { return false }
        var (isForeign, isNavigation, isForDocument) = (false, false, false)
        for index in 0..<request.headerCount {
            let (name, value) = request.header(at: index)
            switch name.count {
            case 4 where name == "host":
                guard value == authority || Self.isSame(value, authority) else { return false }
            case 6 where name == "origin":
                guard value.string == "http://" + authority.string else { return false }
            case 14 where name == "sec-fetch-site":
                if !(value == "same-origin" || value == "none") { isForeign = true }
            case 14 where name == "sec-fetch-mode":
                isNavigation = value == "navigate"
            case 14 where name == "sec-fetch-dest":
                isForDocument = value == "document"
            default: ()
            }
        }
        guard isForeign else { return true }
        return role == .admin && Self.isPage(request.path) && request.method == "GET" && isNavigation && isForDocument
    }

    /// Returns true if an admin path is the dashboard's page. Foreign pages may link to this page.
    private static func isPage(_ path: ByteView) -> Bool {
        path == "/" || path.starts(with: "/?")
    }

    private mutating func admits(host authority: ByteView) -> Bool {
        if !self.admitted.isEmpty, self.admitted.view == authority { return true }
        guard let host = Authority(authority),
            host.isLoopback || self.configuredHosts.contains(host.name)
                || self.takesNetworkNames && Self.isOfNetwork(host)
        else { return false }
        self.admitted.removeAll()
        self.admitted.append(authority)
        return true
    }

    /// Returns true if a host cannot be a public Internet name. Such a host is an address, a single label, or a name
    /// below a domain that is reserved for local networks. A foreign page has a public name.
    private static func isOfNetwork(_ host: Authority) -> Bool {
        let labels = host.name.split(separator: ".")
        guard !host.isIPv6, labels.count > 1, let last = labels.last else { return true }
        return last.utf8.allSatisfy { $0 &- 0x30 <= 9 } || ["internal", "local", "localhost", "test"].contains(last)
    }

    /// Returns true if both authorities name the same host. The port is ignored.
    private static func isSame(_ one: ByteView, _ other: ByteView) -> Bool {
        guard let one = Authority(one), let other = Authority(other) else { return false }
        return one.isIPv6 == other.isIPv6 && one.name == other.name
    }
}
