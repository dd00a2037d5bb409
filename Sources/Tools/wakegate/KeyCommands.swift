package import CommandLineTool
import Gateway
import Wire

extension CommandDefinition {
    private static let folderOptions = [
        OptionDefinition("--keys DIR", "the folder of the keys"),
        OptionDefinition("--config FILE", "the gateway's configuration, whose providerKeys names the folder"),
    ]

    package static let keyAdd = CommandDefinition(
        "key add",
        "let a provider push: store the public key that verifies its tokens",
        arguments: [ArgumentDefinition("FILE", "the .p8 file from Apple, or any P-256 key in PEM")],
        options: [
            OptionDefinition("--team TEAM", "the team in the tokens", isRequired: true),
            OptionDefinition("--key-id ID", "the key id in the tokens", isRequired: true),
            OptionDefinition("--topic TOPIC", "a topic for pushes; default: all", isRepeatable: true),
            OptionDefinition(
                "--environment NAME",
                "development or production, if the key is valid in only one",
                value: .word,
                words: APNSEnvironment.allCases.map(\.rawValue)
            ),
        ] + folderOptions,
        example:
            "wakegate key add AuthKey_ABC123DEFG.p8 --team DEF123GHIJ --key-id ABC123DEFG --keys /etc/wakegate/keys",
        notes: """
            Only the public key of FILE is stored, in DIR/ID.pem: a line "Team: TEAM", a line "Topic: TOPIC" for each
            topic, a line "Environment: NAME" if given, an empty line, and the key. A topic includes the app's other
            topics, such as TOPIC.voip.

            With --environment, a gateway whose `environment` is the other one answers the key's tokens with 403
            BadEnvironmentKeyIdInToken. A gateway without `environment` accepts every key.

            A running gateway with providerKeys accepts a new key, and refuses a removed one, at once.
            """,
        run: KeyCommands.add
    )

    package static let keyList = CommandDefinition(
        "key list",
        "list the keys of the providers that may push",
        options: folderOptions,
        example: "wakegate key list --keys /etc/wakegate/keys",
        notes: "The exit status is 1 if a file in the folder has no key.",
        run: KeyCommands.list
    )

    package static let keyRemove = CommandDefinition(
        "key remove",
        "remove a key, which invalidates the tokens that it signed",
        arguments: [ArgumentDefinition("ID", "the key's id")],
        options: folderOptions,
        example: "wakegate key remove ABC123DEFG --keys /etc/wakegate/keys",
        run: KeyCommands.remove
    )
}

/// The commands `wakegate key add`, `list` and `remove`.
package enum KeyCommands {
    static func add(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        for (option, what) in [("--team", "team"), ("--key-id", "key id")] {
            guard let name = parsed.text(option), !self.isAppleName(name) else { continue }
            throw .usage(
                "\(option) is \"\(name)\"; a \(what) is 10 capital letters and digits, shown next to the key"
            )
        }
        let folder = try self.folder(parsed)
        let keyEnvironment = parsed.text("--environment").flatMap { APNSEnvironment(rawValue: $0) }
        try self.perform { () throws(CredentialError) in
            try folder.add(
                keyFile: parsed.arguments[0],
                team: parsed.text("--team") ?? "",
                keyID: parsed.text("--key-id") ?? "",
                topics: parsed.all("--topic"),
                environment: keyEnvironment
            )
        }
        let topics = parsed.all("--topic")
        let permitted = topics.isEmpty ? "every topic" : topics.joined(separator: ", ")
        let place = keyEnvironment.map { " of the \($0.rawValue) environment" } ?? ""
        let key = "key \(parsed.text("--key-id") ?? "") of team \(parsed.text("--team") ?? "")"
        Console.error("wakegate: \(TerminalText.sanitized("\(key) may push to \(permitted)\(place)"))")
        return 0
    }

    static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let folder = try self.folder(parsed)
        let contents = try self.perform { () throws(CredentialError) in try folder.read() }
        for key in contents.keys { Console.out(self.line(key)) }
        if contents.keys.isEmpty {
            Console.error("wakegate: no key is stored, and no provider may push; see `wakegate key add --help`")
        }
        for fault in contents.faults { Console.error("wakegate: \(fault.message)") }
        return contents.faults.isEmpty ? 0 : 1
    }

    static func remove(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let folder = try self.folder(parsed)
        try self.perform { () throws(CredentialError) in try folder.remove(keyID: parsed.arguments[0]) }
        return 0
    }

    /// Returns true if `text` has the form of Apple's team and key ids. Tokens for Apple's keys contain no other ids.
    package static func isAppleName(_ text: String) -> Bool {
        text.utf8.count == 10 && text.utf8.allSatisfy { $0 &- 0x30 < 10 || $0 &- 0x41 < 26 }
    }

    private static func line(_ key: ProviderKeyFile) -> String {
        let topics = key.topics.isEmpty ? "all topics" : key.topics.joined(separator: ", ")
        let environment = key.environment.map { "  \($0.rawValue)" } ?? ""
        return TerminalText.sanitized("\(key.keyID)  team \(key.team)  \(topics)\(environment)") + "\n"
    }

    /// Returns the folder of the keys, from `--keys` or from the configuration.
    private static func folder(_ parsed: ParsedCommand) throws(CommandFailure) -> ProviderKeyFolder {
        if let path = parsed.text("--keys") { return ProviderKeyFolder(path) }
        guard let file = parsed.text("--config") else {
            throw .usage("--keys is missing; write --keys DIR, or --config FILE of a gateway with providerKeys")
        }
        guard let path = try ServeCommand.configuration(parsed, file: file).providerKeysFolder else {
            throw CommandFailure(.badConfiguration, "\(file) sets no providerKeys; set it, or write --keys DIR")
        }
        return ProviderKeyFolder(path)
    }

    @discardableResult
    private static func perform<Result>(
        _ body: () throws(CredentialError) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(CredentialError) {
            return try body()
        } catch {
            throw .failed(error.message)
        }
    }
}
