package import Foundation
import Platform

/// A private message bus for a test, on which a simulated logind reports about the first seat, or a simulated
/// NetworkManager about the network. `Clients/login_bus.py` explains the commands. The bus ends when the last reference
/// is released.
package final class LoginBus {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private static let script = "Tests/EndToEndTests/Clients/login_bus.py"
    /// The maximum time, in milliseconds, until the bus must answer a command.
    private static let waitMax: Int32 = 60_000

    /// The path of the socket on which the bus listens.
    package let socket: String
    private let process = Process()
    private let input = Pipe.toChild()
    private let output = Pipe.toChild()
    private var unread: [UInt8] = []

    /// - Parameters:
    ///   - root: the folder that replaces the machine's root.
    ///   - commands: the commands to send at once.
    ///   - service: the service on the bus, `logind` or `network`.
    package init(root: URL, _ commands: [String] = ["start", "come"], service: String = "logind") throws {
        self.socket = root.appendingPathComponent("run/dbus/system_bus_socket").path
        // Debian's D-Bus modules work only with Debian's own Python.
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        self.process.arguments = [Checkout.root.appendingPathComponent(Self.script).path, self.socket, service]
        self.process.standardInput = self.input
        self.process.standardOutput = self.output
        try self.process.start()
        for command in commands { try self.tell(command) }
    }

    deinit {
        // The end of the script's input ends the script and the bus.
        try? self.input.fileHandleForWriting.close()
        if self.process.isRunning { self.process.waitUntilExit() }
    }

    /// Sends a command, waits for its completion, and returns the answer.
    @discardableResult
    package func tell(_ command: String) throws -> String {
        try self.input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
        while true {
            if let end = self.unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { self.unread.removeSubrange(...end) }
                return String(decoding: self.unread[..<end], as: UTF8.self)
            }
            guard Self.isReadable(self.output.fileHandleForReading.fileDescriptor, within: Self.waitMax) else {
                throw Failure(description: "the bus does not answer \"\(command)\"")
            }
            let more = self.output.fileHandleForReading.availableData
            guard !more.isEmpty else { throw Failure(description: "the bus ended at \"\(command)\"") }
            self.unread += more
        }
    }

    /// Returns the number of queries to the simulated service.
    package func asked() throws -> Int { Int(try self.tell("asked")) ?? 0 }

    /// Waits until a descriptor is readable; returns false if it is not after `milliseconds`.
    package static func isReadable(_ descriptor: Int32, within milliseconds: Int32 = waitMax) -> Bool {
        Descriptor.wait(for: descriptor, .readable, milliseconds: milliseconds)
    }
}
