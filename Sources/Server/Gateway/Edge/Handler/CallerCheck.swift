import HTTPTransport
import Wire

/// Keeps other people's web pages out of the cleartext listeners, which a browser on this machine can reach.
///
/// One a loop: it remembers the last host it admitted, since nearly every request names the same.
struct CallerCheck: ~Copyable {
    /// The hosts of the addresses that the cleartext listeners were configured with.
    private let configuredHosts: Set<String>
    /// Whether machines of networks that were named come in, by whatever name of such a network.
    private let takesNetworkNames: Bool
    private var admitted = ByteBuffer()

    /// - Parameters:
    ///   - addresses: those of the cleartext listeners. A socket file has no name that a request could give.
    ///   - takesNetworkNames: whether machines of networks that were named come in.
    init(addresses: [String], takesNetworkNames: Bool = false) {
        self.takesNetworkNames = takesNetworkNames
        self.configuredHosts = Set(
            addresses.compactMap { address in
                guard case .tcp(let host, _)? = try? ListenAddress.parse(address).kind else { return nil }
                return host.lowercased()
            }
        )
    }

    /// Whether the request may come in: it names this gateway and nobody else, and is of no foreign page.
    ///
    /// - Parameter role: that of the listener it came to.
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

    /// Whether a path of the admin listener is that of the dashboard's page, to which other people's pages may lead.
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

    /// Whether a host goes by a name that nobody can have on the Internet: an address, one label, or one below a domain
    /// that is for networks of one's own. Other people's pages have names of other kinds.
    private static func isOfNetwork(_ host: Authority) -> Bool {
        let labels = host.name.split(separator: ".")
        guard !host.isIPv6, labels.count > 1, let last = labels.last else { return true }
        return last.utf8.allSatisfy { $0 &- 0x30 <= 9 } || ["internal", "local", "localhost", "test"].contains(last)
    }

    /// Whether both name one host, at whatever port.
    private static func isSame(_ one: ByteView, _ other: ByteView) -> Bool {
        guard let one = Authority(one), let other = Authority(other) else { return false }
        return one.isIPv6 == other.isIPv6 && one.name == other.name
    }
}
