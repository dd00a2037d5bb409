internal import CNetlink
import Glibc

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
