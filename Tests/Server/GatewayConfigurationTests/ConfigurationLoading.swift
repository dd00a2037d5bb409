import Foundation
import Gateway
import Testing
import Wire

/// Loads a configuration from JSON5 text and settings of the command line.
func load(_ text: String? = nil, set settings: [String] = []) throws(ConfigurationError) -> GatewayConfiguration {
    try ConfigurationLoader.load(text: text.map { Data($0.utf8) }, name: "test.json5", settings: settings)
}

/// Returns the texts of the faults for which `load` refuses a configuration.
func refusal(of load: @autoclosure () throws -> GatewayConfiguration) -> [String] {
    let error = #expect(throws: ConfigurationError.self) { _ = try load() }
    return error?.faults.map(\.description) ?? []
}
