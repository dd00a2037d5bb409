import HTTPClient
package import Wire

extension CommandDefinition {
    static let token = ArgumentDefinition("TOKEN", "the device token, hexadecimal")

    private static let conditionWords = DeviceCommands.conditionNames.map { "\($0)=" }

    package static let deviceRegister = CommandDefinition(
        "device register",
        "register a device for a topic, and print its token",
        arguments: [ArgumentDefinition("TOKEN", "the token; by default the gateway creates one", count: 0...1)],
        options: [OptionDefinition("--topic TOPIC", "the device's topic", isRequired: true)]
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
        "report conditions of a device, and print all of them",
        arguments: [
            token,
            ArgumentDefinition("NAME=VALUE", "a condition and its value", count: 0...64, words: conditionWords),
        ],
        options: [
            OptionDefinition(
                "--set NAME=VALUE",
                "the same as the argument",
                value: .setting,
                isRepeatable: true,
                words: conditionWords
            )
        ] + OptionDefinition.client,
        example:
            "wakegate device conditions 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe"
            + " batteryLevel=0.1 charging=true",
        notes: """
            conditions:
              appState           background, active or forceQuit
              backgroundRefresh  available, denied or restricted
              batteryLevel       a number from 0 to 1
              charging           true or false
              lowPowerMode       true or false
              thermalState       nominal, fair, serious or critical
              memoryPressure     normal, warning or critical
              network            true or false
            """,
        run: DeviceCommands.conditions
    )
}

/// `wakegate device`.
package enum DeviceCommands {
    /// The names of the conditions a device can report.
    package static let conditionNames = [
        "appState", "backgroundRefresh", "batteryLevel", "charging", "lowPowerMode", "thermalState",
        "memoryPressure", "network",
    ]

    static func register(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let path = "/v1/topics/\(URLPath.component(parsed.text("--topic") ?? ""))/devices"
        let body = parsed.arguments.first.map { Array("{\"token\":\(JSONText.quoted($0))}".utf8) } ?? []
        let answer = try GatewayAnswer.object(try parsed.ask("POST", path, body: body))
        Console.out("\(answer["token"]?.text ?? "")\n")
        return 0
    }

    static func remove(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        try GatewayAnswer.check(try parsed.ask("DELETE", "/v1/devices/\(URLPath.component(parsed.arguments[0]))"))
        Console.error("wakegate: the device is removed")
        return 0
    }

    static func conditions(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let report = try self.report(Array(parsed.arguments.dropFirst()) + parsed.all("--set"))
        let path = "/v1/devices/\(URLPath.component(parsed.arguments[0]))/conditions"
        let answer = try GatewayAnswer.object(try parsed.ask("PATCH", path, body: Array(report.utf8)))
        for member in answer.members {
            Console.out(TerminalText.sanitized("\(member.name)=\(member.value.text ?? member.value.described)") + "\n")
        }
        return 0
    }

    /// Returns the JSON object for words of the form `NAME=VALUE`.
    ///
    /// - Throws: `badUsage` for a word without `=` or with an unknown name. The gateway checks the values.
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
            let isLiteral: Bool
            switch JSONValue(text.utf8) {
            case .bool, .null, .number: isLiteral = true
            default: isLiteral = false
            }
            members.append("\"\(name)\":\(isLiteral ? text : JSONText.quoted(text))")
        }
        return "{\(members.joined(separator: ","))}"
    }
}

extension CommandDefinition {
    private static let optionalToken = ArgumentDefinition(
        "TOKEN",
        "the device token, hexadecimal; without it, the devices of --topic or --hold",
        count: 0...1
    )

    private static let listOptions = [
        OptionDefinition("--topic TOPIC", "all devices of a topic to which the action applies"),
        OptionDefinition("--hold CODE", "all devices with this first hold", words: DeviceListCommand.holds),
        OptionDefinition("--yes", "do not ask for confirmation"),
    ]

    package static let deviceLaunch = actionCommand(
        .launch,
        "launch a device's pending push, or an empty wake, despite all holds"
    )
    package static let deviceDrop = actionCommand(
        .drop,
        "discard the pending push of a device; a wake in flight continues"
    )
    package static let deviceExpire = actionCommand(.expire, "end the wake in flight of a device as expired now")

    private static func actionCommand(_ action: DeviceActions.Action, _ summary: String) -> CommandDefinition {
        CommandDefinition(
            "device \(action.rawValue)",
            summary,
            arguments: [optionalToken],
            options: listOptions + OptionDefinition.client,
            example:
                "wakegate device \(action.rawValue) 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe",
            run: DeviceActions.run(action)
        )
    }
}

/// Actions of operators on devices and their pending pushes.
package enum DeviceActions {
    /// One of the actions.
    package enum Action: String, Sendable {
        case launch, drop, expire

        /// The HTTP method and the last path component of the route for one device.
        var route: (method: String, path: String) {
            switch self {
            case .launch: ("POST", "simulate-launch")
            case .drop: ("DELETE", "pending")
            case .expire: ("POST", "simulate-expiration")
            }
        }

        /// The states of listed devices to which the action applies.
        var states: Set<String> {
            switch self {
            case .launch: ["pending", "held"]
            case .drop: ["pending", "held", "inFlight"]
            case .expire: ["inFlight"]
            }
        }

        /// The past participle of the action, for messages.
        var pastParticiple: String {
            switch self {
            case .launch: "launched"
            case .drop: "dropped"
            case .expire: "expired"
            }
        }
    }

    static func run(_ action: Action) -> CommandDefinition.Run {
        { parsed throws(CommandFailure) in
            let actions = try Runner(action, parsed)
            guard let token = parsed.arguments.first else { return try actions.actOnList() }
            guard !["--topic", "--hold"].contains(where: { parsed.isSet($0) }) else {
                throw .usage("a device and a list of devices were both named; leave TOKEN out, or --topic and --hold")
            }
            let response = try actions.act(on: token)
            try GatewayAnswer.check(response)
            switch action {
            case .launch: Console.error("wakegate: the wake is launched")
            case .drop:
                let isDropped = try Runner.hasDropped(response)
                Console.error(isDropped ? "wakegate: the push is dropped" : "wakegate: no push waits on this device")
            case .expire: Console.error("wakegate: the wake has expired")
            }
            return 0
        }
    }

    /// An action and the gateway that performs it.
    private struct Runner {
        private let action: Action
        private let parsed: ParsedCommand
        private let location: GatewayLocation
        private let client: HTTPClient

        init(_ action: Action, _ parsed: ParsedCommand) throws(CommandFailure) {
            self.action = action
            self.parsed = parsed
            self.location = try GatewayLocation(parsed, side: .admin)
            self.client = try self.location.client()
        }

        /// - `isFromList`: true if the device comes from a list, which may be outdated.
        func act(on token: String, isFromList: Bool = false) throws(CommandFailure) -> HTTPResponse {
            let route = self.action.route
            // The listed device may have launched in the meantime. It must not be woken without a push.
            let query = isFromList && self.action == .launch ? "?pending=1" : ""
            let path = "/v1/devices/\(URLPath.component(token))/\(route.path)\(query)"
            let body: [UInt8]? = route.method == "POST" ? [] : nil
            return try self.location.answer(self.location.request(route.method, path, body: body), with: self.client)
        }

        static func hasDropped(_ response: HTTPResponse) throws(CommandFailure) -> Bool {
            try GatewayAnswer.object(response)["dropped"]?.number == 1
        }

        /// Performs the action on all listed devices in one of its `states`, after a person has confirmed their number.
        ///
        /// - Returns: 1 if the gateway refused the action for some devices, otherwise 0.
        func actOnList() throws(CommandFailure) -> Int32 {
            guard self.parsed.isSet("--topic") || self.parsed.isSet("--hold") else {
                throw .usage("TOKEN is missing; name a device, or the devices of a list by --topic or --hold")
            }
            let tokens = try self.tokens()
            let number = tokens.count == 1 ? "1 device" : "\(tokens.count) devices"
            Console.error("wakegate: \(number) to be \(self.action.pastParticiple)")
            guard !tokens.isEmpty else { return 0 }
            if !self.parsed.isSet("--yes") {
                guard Console.confirms("wakegate: continue? [y/N] ") else {
                    throw .failed("nothing was done; answer y, or add --yes")
                }
            }
            var (done, refused) = (0, [String: Int]())
            for token in tokens {
                let response = try self.act(on: token, isFromList: true)
                if response.status >= 500 { try GatewayAnswer.check(response) }
                if let reason = try self.refusal(response) {
                    refused[reason, default: 0] += 1
                } else {
                    done += 1
                }
            }
            let rest = refused.sorted { $0.key < $1.key }.map { "\($0.value) refused: \($0.key)" }
            Console.error("wakegate: " + (["\(done) \(self.action.pastParticiple)"] + rest).joined(separator: ", "))
            return refused.isEmpty ? 0 : 1
        }

        /// Returns the reason why the action had no effect; nil if it had an effect.
        private func refusal(_ response: HTTPResponse) throws(CommandFailure) -> String? {
            guard response.isSuccess else {
                return response.refusal?.reason ?? "\(response.status)"
            }
            guard self.action == .drop else { return nil }
            return try Self.hasDropped(response) ? nil : "NothingPending"
        }

        /// Returns true if a listed device whose wake is in flight also has a pending push.
        private static func hasPending(_ device: JSONValue) -> Bool {
            device["eligibleAt"]?.number != nil || device["held"]?.elements.isEmpty == false
        }

        private func tokens() throws(CommandFailure) -> [String] {
            var tokens: [String] = []
            var after: String?
            repeat {
                let query = ListPages.query(self.parsed, ["topic", "hold"], limit: 1000, after: after)
                let request = self.location.request("GET", "/v1/devices?\(query.joined(separator: "&"))")
                let answer = try GatewayAnswer.object(try self.location.answer(request, with: self.client))
                for device in answer["devices"]?.elements ?? [] {
                    guard let state = device["state"]?.text, self.action.states.contains(state) else { continue }
                    if self.action == .drop, state == "inFlight", !Self.hasPending(device) { continue }
                    if let token = device["token"]?.text { tokens.append(token) }
                }
                after = answer["next"]?.text
            } while after != nil
            return tokens
        }
    }
}

extension CommandDefinition {
    package static let deviceList = CommandDefinition(
        "device list",
        "list devices by topic, state, hold or token prefix",
        options: [
            OptionDefinition("--topic TOPIC", "only devices of one topic"),
            OptionDefinition("--state STATE", "pending, inFlight, held or idle", words: DeviceListCommand.states),
            OptionDefinition("--hold CODE", "only devices with this first hold", words: DeviceListCommand.holds),
            OptionDefinition("--prefix DIGITS", "only devices whose tokens begin with these hexadecimal digits"),
            OptionDefinition(
                "--sort ORDER",
                "token, or waiting: the oldest push first, in one page of at most 1000 devices",
                words: ["token", "waiting"]
            ),
            OptionDefinition("--limit N", "at most N devices; default: 100", value: .integer(1...1_000_000)),
            OptionDefinition("--after TOKEN", "only devices after this one, in the order of tokens"),
            OptionDefinition("--json", "print the gateway's answers unchanged, one page per line"),
        ] + OptionDefinition.client,
        example: "wakegate device list --topic com.example.app --hold battery",
        notes: """
            states:
              pending   a push waits for its time
              inFlight  a wake is in flight
              held      a push waits under a hold, possibly behind a wake in flight; `wakegate stats` counts these
                        devices, and `wakegate stats --device TOKEN` prints the reason
              idle      no push waits and no wake is in flight
            """,
        run: DeviceListCommand.list
    )
}

/// `wakegate device list`.
package enum DeviceListCommand {
    package static let states = ["pending", "inFlight", "held", "idle"]
    package static let holds = [
        "paused", "forceQuit", "backgroundRefresh", "network", "thermal", "battery", "priority", "worker",
    ]

    static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        try ListPages(
            member: "devices",
            nothing: "there is no such device",
            path: { self.path(parsed, limit: $0, after: $1) },
            text: { self.text($0, withHeader: $1) }
        ).show(parsed)
    }

    /// Returns the path of a page.
    package static func path(_ parsed: ParsedCommand, limit: Int, after: String?) -> String {
        let query = ListPages.query(parsed, ["topic", "state", "hold", "prefix", "sort"], limit: limit, after: after)
        return "/v1/devices?\(query.joined(separator: "&"))"
    }

    /// Returns one line for each device. All pages have the same columns.
    package static func text(_ devices: [JSONValue], withHeader hasHeader: Bool) -> String {
        let head = ["state", "held", "may launch at", "last launch", "topic", "token"]
        return TableText.page(devices, widths: [8, 17, 20, 20, 24], head: hasHeader ? head : nil) { device in
            [
                device["state"]?.text ?? "-",
                (device["held"]?.elements ?? []).first?.text ?? "-",
                TableText.due(device["eligibleAt"]),
                TableText.moment(device["lastLaunchAt"]),
                device["topic"]?.text ?? "-",
                device["token"]?.text ?? "-",
            ]
        }
    }
}

extension CommandDefinition {
    package static let deviceWatch = CommandDefinition(
        "device watch",
        "print the conditions of devices whenever they change, as JSON lines",
        options: [
            OptionDefinition("--topic TOPIC", "the devices' topic", isRequired: true),
            OptionDefinition("--device TOKEN", "only this device; up to 64", isRepeatable: true),
            OptionDefinition("--name NAME", "the name of this subscription at the gateway; default: device watch"),
        ] + OptionDefinition.client,
        example: "wakegate device watch --topic com.example.app",
        notes: """
            It subscribes on the gateway's edge like a worker, but only to conditions, not to wakes. Each line has the
            device and all of its conditions. If the connection ends, the command subscribes again; changes in the
            meantime are not printed. After SIGINT or SIGTERM it exits with status 0.
            """,
        run: DeviceWatchCommand.run
    )
}

/// `wakegate device watch`.
package enum DeviceWatchCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let stream = try WatchConnection(.stream(try self.path(parsed)), parsed, side: .edge)
        return try stream.printEvents(("subscribed", "subscribing"), isJSON: true) { event in
            guard case .conditions = StreamEvent(name: event.name, data: event.data) else { return nil }
            return event.dataLine
        }
    }

    /// Returns the path of the subscription. It requests only conditions.
    ///
    /// - Throws: `badUsage` if there are more devices than one subscription permits.
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
