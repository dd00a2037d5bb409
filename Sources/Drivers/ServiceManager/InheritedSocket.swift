/// A listening socket that the service manager opened before it started the process.
package struct InheritedSocket: Hashable, Sendable {
    package let descriptor: Int32
    /// What the manager calls it: `FileDescriptorName=` of its unit.
    package let name: String
    /// Where it listens: `HOST:PORT`, `[v6]:PORT` or `unix:/path`.
    package let address: String

    package init(descriptor: Int32, name: String, address: String) {
        self.descriptor = descriptor
        self.name = name
        self.address = address
    }
}

/// Why what the service manager passed cannot be used; the message names the fault and the remedy.
package struct ServiceManagerError: Error, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { self.message }
}
