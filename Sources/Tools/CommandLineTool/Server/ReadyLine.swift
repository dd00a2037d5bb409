package import Settings

/// The line on standard output that tells whoever started the server that it accepts.
package enum ReadyLine {
    /// One JSON object and a line feed; a listener that is off is null, one given as a list is a list.
    package static func text(_ addresses: BoundAddresses) -> String {
        let members = [("edge", addresses.edge), ("admin", addresses.admin), ("plain", addresses.plain)]
        let parts = members.map { "\"\($0.0)\": \(self.json($0.1))" }
        return "{\"ready\": true, \(parts.joined(separator: ", "))}\n"
    }

    private static func json(_ setting: ListenSetting) -> String {
        let addresses = setting.addresses.map { JSONText.quoted($0) }
        return setting.isList ? "[\(addresses.joined(separator: ", "))]" : addresses.first ?? "null"
    }
}
