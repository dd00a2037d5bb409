import HTTPClient
import Wire

extension CommandDefinition {
    package static let deviceWatch = CommandDefinition(
        "device watch",
        "show the conditions of devices whenever they change, a JSON line each",
        options: [
            OptionDefinition("--topic", "TOPIC", "the devices' topic", isRequired: true),
            OptionDefinition("--device", "TOKEN", "only this device; up to 64", isRepeatable: true),
            OptionDefinition("--name", "NAME", "what the gateway calls this subscription; default: device watch"),
        ] + OptionDefinition.client,
        example: "wakegate device watch --topic com.example.app",
        notes: [
            """
            It subscribes on the gateway's edge, as a worker that takes no wakes, and asks for conditions alone. Each
            line has the device and all of its conditions. When the gateway goes away it subscribes again; what changes
            meanwhile is not shown. SIGINT or SIGTERM ends it with exit status 0.
            """
        ],
        run: DeviceWatchCommand.run
    )
}

/// `wakegate device watch`.
package enum DeviceWatchCommand {
    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        let path = try self.path(parsed)
        var watch = StreamWatch(path: path, words: ("subscribed", "subscribing"), isJSON: true) {
            () throws(CommandFailure) in
            try GatewayLocation(parsed, side: .edge)
        } line: { event in
            guard case .conditions = StreamEvent(name: event.name, data: event.data) else { return nil }
            return event.dataLine
        }
        return try watch.run()
    }

    /// What is subscribed to: conditions, and nothing else.
    ///
    /// - Throws: `badUsage` for more devices than a subscription names.
    package static func path(_ parsed: ParsedCommand) throws(CommandFailure) -> String {
        let devices = parsed.all("--device")
        guard devices.count <= 64 else {
            throw .usage("--device was given \(devices.count) times; give it at most 64 times")
        }
        var query = ["slots=1", "push=0", "conditions=1"]
        query.append("name=\(URLPath.component(parsed.text("--name") ?? "device watch"))")
        query += devices.map { "device=\(URLPath.component($0))" }
        return "/v1/topics/\(URLPath.component(parsed.text("--topic") ?? ""))/wakes?\(query.joined(separator: "&"))"
    }
}
