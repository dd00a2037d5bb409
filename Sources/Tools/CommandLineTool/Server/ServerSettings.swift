/// What the servers' command line says about the configuration.
package enum ServerSettings {
    /// `KEY=VALUE` settings, in the order in which they win: `--set` first, then the options of their own.
    package static func settings(_ parsed: ParsedCommand) -> [String] {
        var settings = parsed.all("--set")
        for key in ["edge", "admin", "plain"] {
            let addresses = parsed.all("--\(key)")
            if addresses.count == 1 {
                settings.append("\(key)=\(addresses[0])")
            } else if addresses.count > 1 {
                settings.append("\(key)=[\(addresses.map { JSONText.quoted($0) }.joined(separator: ","))]")
            }
        }
        if let state = parsed.text("--state") { settings.append("state=\(JSONText.quoted(state))") }
        return settings
    }
}
