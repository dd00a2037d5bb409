internal import CNetlink
import Glibc

/// The links and default routes of a machine.
package struct NetworkReading: Hashable, Sendable {
    /// The links that are up, have a carrier and are not loopback, by index.
    package var usableLinks: Set<Int>
    /// The links of the default routes of IPv4 and IPv6, by index.
    package var defaultRouteLinks: Set<Int>

    package init(usableLinks: Set<Int> = [], defaultRouteLinks: Set<Int> = []) {
        self.usableLinks = usableLinks
        self.defaultRouteLinks = defaultRouteLinks
    }

    /// True if there is a default route over a usable link.
    package var isAvailable: Bool { !self.usableLinks.isDisjoint(with: self.defaultRouteLinks) }
}

/// Parses answers of rtnetlink; see `linux/rtnetlink.h`, whose numbers never change.
package enum RouteMessages {
    /// The progress of a dump after a datagram.
    package enum Progress: Hashable, Sendable {
        case more, done
        /// The kernel refused the request, or the datagram is invalid.
        case failed
    }

    private static let messageDone = 3
    private static let messageError = 2
    private static let newLink = 16
    private static let newRoute = 24
    private static let linkUp = 0x1
    private static let linkLoopback = 0x8
    private static let linkRunning = 0x40
    private static let routeUnicast = 1
    private static let attributeOutput = 4
    private static let attributeMultipath = 9

    /// Parses a datagram and adds its links and routes to `reading`.
    package static func take(_ datagram: ArraySlice<UInt8>, into reading: inout NetworkReading) -> Progress {
        var rest = datagram
        while !rest.isEmpty {
            guard let length = self.integer(rest, 0, bytes: 4), length >= 16, length <= rest.count,
                let type = self.integer(rest, 4, bytes: 2)
            else { return .failed }
            let body = rest.prefix(length).dropFirst(16)
            switch type {
            case self.messageDone: return .done
            case self.messageError: return .failed
            case self.newLink: self.takeLink(body, into: &reading)
            case self.newRoute: self.takeRoute(body, into: &reading)
            // The socket may also receive other messages.
            default: ()
            }
            rest = rest.dropFirst(self.aligned(length))
        }
        return .more
    }

    /// Parses `struct ifinfomsg`: family, pad, type (2), index (4), flags (4), change (4).
    private static func takeLink(_ body: ArraySlice<UInt8>, into reading: inout NetworkReading) {
        guard let index = self.integer(body, 4, bytes: 4), let flags = self.integer(body, 8, bytes: 4) else { return }
        let isUsable = flags & self.linkUp != 0 && flags & self.linkRunning != 0 && flags & self.linkLoopback == 0
        if isUsable { reading.usableLinks.insert(index) }
    }

    /// Parses `struct rtmsg`: family, destination length, source length, tos, table, protocol, scope, type, flags (4).
    private static func takeRoute(_ body: ArraySlice<UInt8>, into reading: inout NetworkReading) {
        guard let destinationBits = self.integer(body, 1, bytes: 1), destinationBits == 0,
            let type = self.integer(body, 7, bytes: 1), type == self.routeUnicast
        else { return }
        self.forEachAttribute(of: body.dropFirst(12)) { kind, value in
            if kind == self.attributeOutput, let link = self.integer(value, 0, bytes: 4) {
                reading.defaultRouteLinks.insert(link)
            } else if kind == self.attributeMultipath {
                self.takeNextHops(value, into: &reading)
            }
        }
    }

    /// Parses `struct rtnexthop`: length (2), flags, hops, link index (4), then attributes.
    private static func takeNextHops(_ value: ArraySlice<UInt8>, into reading: inout NetworkReading) {
        var rest = value
        while let length = self.integer(rest, 0, bytes: 2), length >= 8, length <= rest.count,
            let link = self.integer(rest, 4, bytes: 4)
        {
            reading.defaultRouteLinks.insert(link)
            rest = rest.dropFirst(self.aligned(length))
        }
    }

    /// Parses `struct rtattr`: length (2), kind (2), then the value.
    private static func forEachAttribute(of bytes: ArraySlice<UInt8>, _ body: (Int, ArraySlice<UInt8>) -> Void) {
        var rest = bytes
        while let length = self.integer(rest, 0, bytes: 2), length >= 4, length <= rest.count,
            let kind = self.integer(rest, 2, bytes: 2)
        {
            body(kind, rest.prefix(length).dropFirst(4))
            rest = rest.dropFirst(self.aligned(length))
        }
    }

    private static func aligned(_ length: Int) -> Int { (length + 3) & ~3 }

    /// Returns the little-endian number of `count` bytes at `offset`; nil if it reaches beyond the end. All supported
    /// machines are little-endian.
    private static func integer(_ bytes: ArraySlice<UInt8>, _ offset: Int, bytes count: Int) -> Int? {
        guard bytes.count >= offset + count else { return nil }
        let start = bytes.startIndex + offset
        return bytes[start..<(start + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}

/// A source of a machine's links and routes, and of notifications when they change.
package protocol NetworkSource: AnyObject {
    /// A descriptor that becomes readable on changes; nil if there is none.
    var descriptor: Int32? { get }
    /// Reads the notifications; returns true if there were any.
    func hasChanged() -> Bool
    /// Returns the links and default routes; nil if they cannot be read now.
    func read() -> NetworkReading?
}

/// A socket on which the kernel reports events; owns its descriptor.
package final class NetlinkSocket {
    package let descriptor: Int32

    private init?(_ descriptor: Int32) {
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(self.descriptor) }

    /// Opens a socket for changes of links and routes; nil with `errno` if the kernel refuses.
    static func routeEvents() -> NetlinkSocket? { NetlinkSocket(wakegate_netlink_open_route_events()) }

    /// Opens a socket for changes of devices, such as a connected charger; nil with `errno` if the kernel refuses.
    package static func deviceEvents() -> NetlinkSocket? { NetlinkSocket(wakegate_netlink_open_device_events()) }

    static func questions(timeoutMilliseconds: Int32) -> NetlinkSocket? {
        NetlinkSocket(wakegate_netlink_open_questions(timeoutMilliseconds))
    }

    /// Requests all links (`RTM_GETLINK`) or all routes (`RTM_GETROUTE`).
    func ask(for type: Int) -> Bool { wakegate_netlink_ask(self.descriptor, Int32(type)) == 0 }

    /// Returns the next datagram, truncated to the buffer; nil if there is none.
    package func receive(into buffer: inout [UInt8]) -> ArraySlice<UInt8>? {
        let count = unsafe recv(self.descriptor, &buffer, buffer.count, 0)
        // ENOBUFS means that events were lost, so the state must also be read again.
        if count < 0 { return errno == ENOBUFS ? buffer[..<0] : nil }
        return buffer[..<count]
    }
}

/// The network of this machine, or of the process's network namespace.
package final class KernelNetwork: NetworkSource {
    private static let bufferBytes = 65_536
    private static let timeoutMilliseconds: Int32 = 1000
    /// The maximum number of datagrams of one dump; only the routing table of a large router exceeds it.
    private static let datagramsMax = 10_000

    private let events: NetlinkSocket?
    private var buffer = [UInt8](repeating: 0, count: bufferBytes)

    package init() {
        self.events = NetlinkSocket.routeEvents()
    }

    package var descriptor: Int32? { self.events?.descriptor }

    package func hasChanged() -> Bool {
        var hasChanged = false
        while self.events?.receive(into: &self.buffer) != nil { hasChanged = true }
        return hasChanged
    }

    package func read() -> NetworkReading? {
        guard let socket = NetlinkSocket.questions(timeoutMilliseconds: Self.timeoutMilliseconds) else { return nil }
        var reading = NetworkReading()
        guard socket.ask(for: RTM_GETLINK), self.takeAnswer(from: socket, into: &reading),
            socket.ask(for: RTM_GETROUTE), self.takeAnswer(from: socket, into: &reading)
        else { return nil }
        return reading
    }

    /// Reads a dump to its end. Returns false if that fails.
    private func takeAnswer(from socket: NetlinkSocket, into reading: inout NetworkReading) -> Bool {
        for _ in 0..<Self.datagramsMax {
            guard let datagram = socket.receive(into: &self.buffer) else { return false }
            switch RouteMessages.take(datagram, into: &reading) {
            case .more: ()
            case .done: return true
            case .failed: return false
            }
        }
        return false
    }
}
