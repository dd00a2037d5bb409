import HTTPClient
import Wire

extension CommandDefinition {
    private static let token = ArgumentDefinition("TOKEN", "the device token, hexadecimal")

    private static let conditionWords = [
        "appState=", "backgroundRefresh=", "batteryLevel=", "charging=", "lowPowerMode=", "thermalState=", "network=",
    ]

    package static let deviceRegister = CommandDefinition(
        "device register",
        "register a device for a topic, and show its token",
        arguments: [ArgumentDefinition("TOKEN", "the token; the gateway makes one otherwise", count: 0...1)],
        options: [OptionDefinition("--topic", "TOPIC", "the device's topic", isRequired: true)]
            + OptionDefinition.client,
        example: "wakegate device register --topic com.example.app",
        run: DeviceCommands.register
    )

    package static let deviceRemove = CommandDefinition(
        "device remove",
        "remove a device; pushes to it are then refused as Unregistered",
        arguments: [token],
        options: OptionDefinition.client,
        example: "wakegate device remove 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe",
        run: DeviceCommands.remove
    )

    package static let deviceConditions = CommandDefinition(
        "device conditions",
        "report conditions of a device, and show all of them",
        arguments: [
            token,
            ArgumentDefinition("NAME=VALUE", "a condition and its value", count: 0...64, words: conditionWords),
        ],
        options: [
            OptionDefinition(
                "--set",
                "NAME=VALUE",
                "the same as the argument",
                value: .setting,
                isRepeatable: true,
                words: conditionWords
            )
        ] + OptionDefinition.client,
        example:
            "wakegate device conditions 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe"
            + " batteryLevel=0.1 charging=true",
        notes: [
            """
            conditions:
              appState           background, active or forceQuit
              backgroundRefresh  available, denied or restricted
              batteryLevel       a number from 0 to 1
              charging           true or false
              lowPowerMode       true or false
              thermalState       nominal, fair, serious or critical
              network            true or false
            """
        ],
        run: DeviceCommands.conditions
    )
}

/// `wakegate device`.
package enum DeviceCommands {
    /// The names of the conditions a device can report.
    package static let conditionNames = [
        "appState", "backgroundRefresh", "batteryLevel", "charging", "lowPowerMode", "thermalState", "network",
    ]

    static func register(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let path = "/v1/topics/\(URLPath.component(parsed.text("--topic") ?? ""))/devices"
        let body = parsed.arguments.first.map { Array("{\"token\":\(JSONText.quoted($0))}".utf8) } ?? []
        let request = location.request("POST", path, body: body)
        let answer = try GatewayAnswer.object(try location.answer(request, with: try location.client()))
        Console.out("\(answer["token"]?.text ?? "")\n")
        return 0
    }

    static func remove(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let request = location.request("DELETE", "/v1/devices/\(URLPath.component(parsed.arguments[0]))")
        try GatewayAnswer.check(try location.answer(request, with: try location.client()))
        Console.error("wakegate: the device is removed")
        return 0
    }

    static func conditions(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let report = try self.report(Array(parsed.arguments.dropFirst()) + parsed.all("--set"))
        let location = try GatewayLocation(parsed, side: .admin)
        let path = "/v1/devices/\(URLPath.component(parsed.arguments[0]))/conditions"
        let request = location.request("PATCH", path, body: Array(report.utf8))
        let answer = try GatewayAnswer.object(try location.answer(request, with: try location.client()))
        for member in answer.members {
            Console.out(TerminalText.harmless("\(member.name)=\(member.value.text ?? member.value.described)") + "\n")
        }
        return 0
    }

    /// The JSON object that `NAME=VALUE` words stand for.
    ///
    /// - Throws: `badUsage` for a word without `=` and an unknown name, with the nearest one; values are judged by
    ///   the gateway.
    package static func report(_ words: [String]) throws(CommandFailure) -> String {
        guard !words.isEmpty else {
            throw .usage("no condition was given; write NAME=VALUE, such as batteryLevel=0.1")
        }
        var members: [String] = []
        for word in words {
            guard let equals = word.firstIndex(of: "=") else {
                throw .usage("\"\(word)\" has no value; write NAME=VALUE, such as batteryLevel=0.1")
            }
            let name = String(word[..<equals])
            guard self.conditionNames.contains(name) else {
                let near = NearestMatch.find(name, in: self.conditionNames)
                let remedy =
                    near.map { "did you mean \($0)?" } ?? "there are: \(self.conditionNames.joined(separator: ", "))"
                throw .usage("unknown condition \"\(name)\"; \(remedy)")
            }
            let text = String(word[word.index(after: equals)...])
            let isLiteral = text == "true" || text == "false" || text == "null"
            let isNumber = text.utf8.allSatisfy { "0123456789.-+eE".utf8.contains($0) } && Double(text) != nil
            members.append("\"\(name)\":\(isLiteral || isNumber ? text : JSONText.quoted(text))")
        }
        return "{\(members.joined(separator: ","))}"
    }
}
