/// A configuration that cannot be used, with every fault that was found in it.
package struct ConfigurationError: Error, CustomStringConvertible {
    /// At least one fault, in the order of the keys.
    package var faults: [ConfigurationFault]

    package init(faults: [ConfigurationFault]) {
        self.faults = faults
    }

    /// One line a fault.
    package var description: String {
        self.faults.map(\.description).joined(separator: "\n")
    }
}
