import Foundation
import Gateway
import HTTPTransport
import Wire

/// The configuration file and `--set`.
///
/// An input is the text of the file. Every line that begins with `--set ` is a setting, and is removed from the text.
enum ConfigurationTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var text: [UInt8] = []
        var settings: [String] = []
        var reader = InputReader(input)
        while !reader.isAtEnd {
            let line = reader.line()
            if line.starts(with: "--set ") {
                settings.append(line.dropFirst(6).string)
            } else {
                text += line.array + [0x0A]
            }
        }
        let file = text.isEmpty ? nil : Data(text)
        let loaded: GatewayConfiguration
        do throws(ConfigurationError) {
            loaded = try ConfigurationLoader.load(text: file, name: "file", settings: settings)
        } catch {
            try self.checkFaults(error)
            return try self.checkSyntax(text, error)
        }
        try self.checkAddresses(loaded)
    }

    private static func checkFaults(_ error: ConfigurationError) throws(BrokenPromise) {
        try promise(!error.faults.isEmpty, "a configuration is refused without a fault")
        for fault in error.allFaults {
            try promise(!fault.problem.isEmpty && !fault.remedy.isEmpty, "a fault says nothing: \(fault)")
        }
    }

    /// Checks that all valid JSON is also valid JSON5.
    private static func checkSyntax(_ text: [UInt8], _ error: ConfigurationError) throws(BrokenPromise) {
        guard let text = String(validating: text, as: UTF8.self), let value = try? JSONReader.read(text),
            self.isFinite(value)
        else { return }
        let fault = error.faults.first { $0.problem.contains("is not JSON5") }
        try promise(fault == nil, "JSON is refused: \(fault?.description ?? "")")
    }

    private static func isFinite(_ value: JSONValue) -> Bool {
        switch value {
        case .number(let number): number.double.isFinite
        case .array(let elements): elements.allSatisfy { self.isFinite($0) }
        case .object(let members): members.allSatisfy { self.isFinite($0.value) }
        case .null, .bool, .string: true
        }
    }

    /// Checks that the gateway can listen on every address that passes the loader and the checks of combinations.
    private static func checkAddresses(_ configuration: GatewayConfiguration) throws(BrokenPromise) {
        let refused = Set(configuration.faults().map(\.key))
        for (key, setting) in [
            ("edge", configuration.edge), ("admin", configuration.admin), ("plain", configuration.plain),
        ] where !refused.contains(key) {
            for address in setting.addresses {
                let parsed = try? ListenAddress.parse(address)
                try promise(parsed != nil, "\(key) may be \"\(address)\", which cannot be listened on")
            }
        }
    }
}
