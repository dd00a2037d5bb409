package import Foundation
import Platform

/// A message bus of a test's own, and on it what logind says of the first seat, or NetworkManager of the network; see
/// `Clients/login_bus.py` for what it can be told. Gone with the last reference.
package final class LoginBus {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private static let script = "Tests/EndToEndTests/Clients/login_bus.py"
    /// The longest wait for it, in milliseconds: it has hung up.
    private static let waitMax: Int32 = 60_000

    /// Where the bus listens.
    package let socket: String
    private let process = Process()
    private let input = Pipe.toChild()
    private let output = Pipe.toChild()
    private var unread: [UInt8] = []

    /// - Parameters:
    ///   - root: the folder that stands for the machine's root.
    ///   - commands: what it is told first.
    ///   - service: whether `logind` is on it, or `network`.
    package init(root: URL, _ commands: [String] = ["start", "come"], service: String = "logind") throws {
        self.socket = root.appendingPathComponent("run/dbus/system_bus_socket").path
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = ["python3", Checkout.root.appendingPathComponent(Self.script).path]
        self.process.arguments? += [self.socket, service]
        self.process.standardInput = self.input
        self.process.standardOutput = self.output
        try self.process.start()
        for command in commands { try self.tell(command) }
    }

    deinit {
        // At the end of its input it ends the bus, and itself.
        try? self.input.fileHandleForWriting.close()
        if self.process.isRunning { self.process.waitUntilExit() }
    }

    /// Has it do something, and returns its answer once it has.
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

    /// How many questions logind was asked.
    package func asked() throws -> Int { Int(try self.tell("asked")) ?? 0 }

    /// Waits for a descriptor to be readable; false when it is not within so many milliseconds.
    package static func isReadable(_ descriptor: Int32, within milliseconds: Int32 = waitMax) -> Bool {
        Descriptor.wait(for: descriptor, .readable, milliseconds: milliseconds)
    }
}
