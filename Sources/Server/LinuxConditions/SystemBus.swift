internal import CSystemBus
import Glibc
package import Platform

/// A connection to a D-Bus message bus; owns its descriptor. Nothing here waits.
///
/// It belongs to one thread.
@safe
package final class SystemBus {
    /// What a call was answered.
    package enum Answer: Hashable, Sendable {
        case boolean(Bool)
        /// A number of 32 bits without a sign.
        case number(UInt32)
        /// A value of another type.
        case other
        /// An error of this name.
        case error(String)
    }

    /// What a connection brings.
    package enum Message: Hashable, Sendable {
        /// The answer to the call with this cookie.
        case answer(UInt64, Answer)
        /// Something has happened that this connection asked to hear of.
        case news
        /// Nothing that is looked at here.
        case other
    }

    private let bus: OpaquePointer

    /// Begins to connect; whether that comes to anything shows later.
    ///
    /// - Parameter socket: the path of the bus's socket; nil for the system's bus.
    package init(socket: String?) throws(SystemError) {
        var bus: OpaquePointer?
        let address = socket.map { "unix:path=\(Self.escaped($0))" }
        let result = unsafe wakegate_bus_open(&bus, address)
        guard result >= 0, let bus = unsafe bus else { throw SystemError(-result) }
        unsafe self.bus = bus
    }

    deinit { _ = unsafe sd_bus_close_unref(self.bus) }

    /// The descriptor to wait on; nil when the connection is lost.
    package var descriptor: Int32? {
        let descriptor = unsafe sd_bus_get_fd(self.bus)
        return descriptor >= 0 ? descriptor : nil
    }

    /// Whether something waits for the descriptor to be writable.
    package var wantsToWrite: Bool {
        let events = unsafe sd_bus_get_events(self.bus)
        return events > 0 && events & Int32(POLLOUT) != 0
    }

    /// Asks to hear of signals that `rule` matches.
    package func subscribe(_ rule: String) throws(SystemError) {
        let name = "org.freedesktop.DBus"
        _ = try self.call(name, "/org/freedesktop/DBus", name, "AddMatch", rule, nil)
    }

    /// Asks for a property of an object; the answer comes with the cookie that is returned.
    package func get(
        _ property: String,
        of interface: String,
        at path: String,
        from service: String
    ) throws(SystemError) -> UInt64 {
        try self.call(service, path, "org.freedesktop.DBus.Properties", "Get", interface, property)
    }

    /// Makes a step of the connection, and takes the next message if there is one; nil when there is nothing to do.
    package func receive() throws(SystemError) -> Message? {
        var message: OpaquePointer?
        let result = unsafe sd_bus_process(self.bus, &message)
        defer { _ = unsafe sd_bus_message_unref(message) }
        guard result >= 0 else { throw SystemError(-result) }
        guard unsafe sd_bus_is_open(self.bus) > 0 else { throw SystemError(ECONNRESET) }
        if let message = unsafe message { return unsafe Self.read(message) }
        return result > 0 ? .other : nil
    }

    private static func read(_ message: OpaquePointer) -> Message {
        let hasChanged = unsafe sd_bus_message_is_signal(
            message,
            "org.freedesktop.DBus.Properties",
            "PropertiesChanged"
        )
        let isOwnerNew = unsafe sd_bus_message_is_signal(message, "org.freedesktop.DBus", "NameOwnerChanged")
        if hasChanged > 0 || isOwnerNew > 0 { return .news }
        var cookie: UInt64 = 0
        guard unsafe sd_bus_message_get_reply_cookie(message, &cookie) >= 0 else { return .other }
        if let name = unsafe wakegate_bus_error(message) {
            return .answer(cookie, .error(unsafe String(cString: name)))
        }
        switch unsafe wakegate_bus_boolean(message) {
        case 0: return .answer(cookie, .boolean(false))
        case 1: return .answer(cookie, .boolean(true))
        default: ()
        }
        switch unsafe wakegate_bus_unsigned(message) {
        case let number where number >= 0: return .answer(cookie, .number(UInt32(truncatingIfNeeded: number)))
        default: return .answer(cookie, .other)
        }
    }

    private func call(
        _ service: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ first: String,
        _ second: String?
    ) throws(SystemError) -> UInt64 {
        var cookie: UInt64 = 0
        let result = unsafe wakegate_bus_call(self.bus, service, path, interface, member, first, second, &cookie)
        guard result >= 0 else { throw SystemError(-result) }
        return cookie
    }

    /// A path as D-Bus addresses write it.
    private static func escaped(_ path: String) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var escaped: [UInt8] = []
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."):
                escaped.append(byte)
            default: escaped += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }
}
