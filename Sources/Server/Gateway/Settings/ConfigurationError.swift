package import Wire

/// A configuration that cannot be used, with every fault that was found in it.
package struct ConfigurationError: Error, CustomStringConvertible {
    /// At least one fault, in the order of the keys.
    package var faults: [ConfigurationFault]

    /// What could be read, with the defaults of the keys at fault; nil when nothing could.
    package var rest: GatewayConfiguration?

    package init(faults: [ConfigurationFault], rest: GatewayConfiguration? = nil) {
        self.faults = faults
        self.rest = rest
    }

    /// The faults, and those of the combination of what could be read. A key at fault is not spoken of again.
    package var allFaults: [ConfigurationFault] {
        let keys = Set(self.faults.map(\.key))
        return self.faults + (self.rest?.faults() ?? []).filter { !keys.contains($0.key) }
    }

    /// One line a fault.
    package var description: String {
        self.faults.map(\.description).joined(separator: "\n")
    }
}

extension APIError {
    /// What was read cannot be used, with every fault of it.
    package static func badConfiguration(_ error: ConfigurationError) -> APIError {
        let count = error.faults.count == 1 ? "a fault" : "\(error.faults.count) faults"
        let message = "The configuration has \(count), and the old one is in force: \(error)"
        var answer = APIError(400, "BadConfiguration", message)
        answer.faults = error.faults
        return answer
    }

    /// Fault rules cannot be taken, with every fault of them.
    package static func badFaults(_ error: ConfigurationError) -> APIError {
        APIError(400, "BadFaults", error.description)
    }
}

extension ConfigurationFault {
    /// - `error`: its message says what is wrong, and behind a semicolon what to do.
    package init(key: String, _ error: CredentialError) {
        let sentence = error.message.hasSuffix(".") ? error.message.dropLast() : error.message[...]
        let parts = sentence.split(separator: "; ", maxSplits: 1)
        self.init(key: key, problem: String(parts[0]), remedy: parts.dropFirst().joined())
    }
}
