internal import CNetlink
import Glibc

/// The links and default routes of a machine.
package struct NetworkReading: Hashable, Sendable {
    /// Links that are up, have a carrier and lead out of the machine, by index.
    package var usableLinks: Set<Int>
    /// The links that the default routes of both families lead to, by index.
    package var defaultRouteLinks: Set<Int>

    package init(usableLinks: Set<Int> = [], defaultRouteLinks: Set<Int> = []) {
        self.usableLinks = usableLinks
        self.defaultRouteLinks = defaultRouteLinks
    }

    /// Whether there is a way out: a default route over a link that works.
    package var isAvailable: Bool { !self.usableLinks.isDisjoint(with: self.defaultRouteLinks) }
}

/// Reads answers of rtnetlink; see `linux/rtnetlink.h`, whose numbers never change.
package enum RouteMessages {
    /// What a datagram said of the dump that it belongs to.
    package enum Progress: Hashable, Sendable {
        case more, done
        /// The kernel refused, or the datagram is none of its.
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

    /// Adds what a datagram says to `reading`.
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
            // Other messages may share the socket.
            default: ()
            }
            rest = rest.dropFirst(self.aligned(length))
        }
        return .more
    }

    /// `struct ifinfomsg`: family, pad, type (2), index (4), flags (4), change (4).
    private static func takeLink(_ body: ArraySlice<UInt8>, into reading: inout NetworkReading) {
        guard let index = self.integer(body, 4, bytes: 4), let flags = self.integer(body, 8, bytes: 4) else { return }
        let isUsable = flags & self.linkUp != 0 && flags & self.linkRunning != 0 && flags & self.linkLoopback == 0
        if isUsable { reading.usableLinks.insert(index) }
    }

    /// `struct rtmsg`: family, destination's length, source's length, tos, table, protocol, scope, type, flags (4).
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

    /// `struct rtnexthop`: length (2), flags, hops, link's index (4), then attributes.
    private static func takeNextHops(_ value: ArraySlice<UInt8>, into reading: inout NetworkReading) {
        var rest = value
        while let length = self.integer(rest, 0, bytes: 2), length >= 8, length <= rest.count,
            let link = self.integer(rest, 4, bytes: 4)
        {
            reading.defaultRouteLinks.insert(link)
            rest = rest.dropFirst(self.aligned(length))
        }
    }

    /// `struct rtattr`: length (2), kind (2), then the value.
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

    /// The number of `bytes` bytes at `offset`, in the byte order of the machines we run on; nil beyond the end.
    private static func integer(_ bytes: ArraySlice<UInt8>, _ offset: Int, bytes count: Int) -> Int? {
        guard bytes.count >= offset + count else { return nil }
        let start = bytes.startIndex + offset
        return bytes[start..<(start + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}

/// Where the links and routes of a machine are read, and how a change of them shows; tests replace it.
package protocol NetworkSource: AnyObject {
    /// A descriptor that becomes readable when something changed; nil when there is none.
    var descriptor: Int32? { get }
    /// Takes what the descriptor holds; whether there was anything.
    func hasChanged() -> Bool
    /// The links and default routes; nil when they cannot be read now.
    func read() -> NetworkReading?
}

/// A socket on which the kernel tells what happens; owns its descriptor.
package final class NetlinkSocket {
    package let descriptor: Int32

    private init?(_ descriptor: Int32) {
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(self.descriptor) }

    /// Hears of links and routes that change; nil with `errno` when the kernel gives no such socket.
    static func routeEvents() -> NetlinkSocket? { NetlinkSocket(wakegate_netlink_open_route_events()) }

    /// Hears of devices that change, such as a charger that is plugged in; nil with `errno` likewise.
    package static func deviceEvents() -> NetlinkSocket? { NetlinkSocket(wakegate_netlink_open_device_events()) }

    static func questions(timeoutMilliseconds: Int32) -> NetlinkSocket? {
        NetlinkSocket(wakegate_netlink_open_questions(timeoutMilliseconds))
    }

    /// Asks for all links.
    func askForLinks() -> Bool { wakegate_netlink_ask(self.descriptor, Int32(RTM_GETLINK)) == 0 }

    /// Asks for all routes.
    func askForRoutes() -> Bool { wakegate_netlink_ask(self.descriptor, Int32(RTM_GETROUTE)) == 0 }

    /// The next datagram, or what of it fits; nil when there is none.
    package func receive(into buffer: inout [UInt8]) -> ArraySlice<UInt8>? {
        let count = unsafe recv(self.descriptor, &buffer, buffer.count, 0)
        // ENOBUFS: more happened than the socket could hold, which is reason enough to look.
        if count < 0 { return errno == ENOBUFS ? buffer[..<0] : nil }
        return buffer[..<count]
    }
}

/// The network of this machine, or of the network namespace that the process is in.
package final class KernelNetwork: NetworkSource {
    private static let bufferBytes = 65_536
    private static let timeoutMilliseconds: Int32 = 1000
    /// Datagrams of one dump; the routing table of a large router does not fit, and is none of a device.
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
        guard socket.askForLinks(), self.takeAnswer(from: socket, into: &reading), socket.askForRoutes(),
            self.takeAnswer(from: socket, into: &reading)
        else { return nil }
        return reading
    }

    /// Reads to the end of a dump; false when it cannot be read.
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
