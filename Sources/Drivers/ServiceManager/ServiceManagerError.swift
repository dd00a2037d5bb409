/// Why what the service manager passed cannot be used; the message names the fault and the remedy.
package struct ServiceManagerError: Error, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { self.message }
}
