import HTTPClient
import Wire

extension CommandDefinition {
    private static let actedOn = ArgumentDefinition(
        "TOKEN",
        "the device token, hexadecimal; a list of devices without it",
        count: 0...1
    )

    private static let onLists = [
        OptionDefinition("--topic", "TOPIC", "every device of a topic that the action concerns"),
        OptionDefinition("--hold", "CODE", "every one that this hold keeps back", words: DeviceListCommand.holds),
        OptionDefinition("--yes", "", "without asking, once the number is said"),
    ]

    package static let deviceLaunch = CommandDefinition(
        "device launch",
        "launch what waits on a device now, whatever holds it; an empty wake when nothing does",
        arguments: [actedOn],
        options: onLists + OptionDefinition.client,
        example: "wakegate device launch 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe",
        run: DeviceActions.run(.launch)
    )

    package static let deviceDrop = CommandDefinition(
        "device drop",
        "discard the push that waits on a device; a wake in flight goes on",
        arguments: [actedOn],
        options: onLists + OptionDefinition.client,
        example: "wakegate device drop 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe",
        run: DeviceActions.run(.drop)
    )

    package static let deviceExpire = CommandDefinition(
        "device expire",
        "end the wake in flight of a device as expired now",
        arguments: [actedOn],
        options: onLists + OptionDefinition.client,
        example: "wakegate device expire 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe",
        run: DeviceActions.run(.expire)
    )
}

/// What people do to devices and what waits on them.
package enum DeviceActions {
    /// One of the actions.
    package enum Action: Sendable {
        case launch, drop, expire

        /// The method and the end of the path of the route for one device.
        var route: (method: String, path: String) {
            switch self {
            case .launch: ("POST", "simulate-launch")
            case .drop: ("DELETE", "pending")
            case .expire: ("POST", "simulate-expiration")
            }
        }

        /// The states of devices of a list that it concerns.
        var states: Set<String> {
            switch self {
            case .launch: ["pending", "held"]
            case .drop: ["pending", "held", "inFlight"]
            case .expire: ["inFlight"]
            }
        }

        /// What it has done, behind a number of devices.
        var word: String {
            switch self {
            case .launch: "launched"
            case .drop: "dropped"
            case .expire: "expired"
            }
        }
    }

    static func run(_ action: Action) -> CommandDefinition.Run {
        { parsed, _ throws(CommandFailure) in
            let desk = try Desk(action, parsed)
            guard let token = parsed.arguments.first else { return try desk.actOnList() }
            guard !["--topic", "--hold"].contains(where: { parsed.isSet($0) }) else {
                throw .usage("a device and a list of devices were both named; leave TOKEN out, or --topic and --hold")
            }
            let response = try desk.act(on: token)
            try GatewayAnswer.check(response)
            switch action {
            case .launch: Console.error("wakegate: the wake is launched")
            case .drop:
                let isDropped = try Desk.hasDropped(response)
                Console.error(isDropped ? "wakegate: the push is dropped" : "wakegate: no push waits on this device")
            case .expire: Console.error("wakegate: the wake has expired")
            }
            return 0
        }
    }

    /// An action, and the gateway that does it.
    private struct Desk {
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

        /// - Parameter isOfList: whether what was seen of the device a moment ago may be over.
        func act(on token: String, isOfList: Bool = false) throws(CommandFailure) -> HTTPResponse {
            let route = self.action.route
            // What has launched by itself since is not to be followed by an empty wake.
            let query = isOfList && self.action == .launch ? "?pending=1" : ""
            let path = "/v1/devices/\(URLPath.component(token))/\(route.path)\(query)"
            let body: [UInt8]? = route.method == "POST" ? [] : nil
            return try self.location.answer(self.location.request(route.method, path, body: body), with: self.client)
        }

        static func hasDropped(_ response: HTTPResponse) throws(CommandFailure) -> Bool {
            try GatewayAnswer.object(response)["dropped"]?.number == 1
        }

        /// Acts on every device of a list that the action concerns, once a person has agreed to their number.
        ///
        /// - Returns: 1 when some were refused.
        func actOnList() throws(CommandFailure) -> Int32 {
            guard self.parsed.isSet("--topic") || self.parsed.isSet("--hold") else {
                throw .usage("TOKEN is missing; name a device, or the devices of a list by --topic or --hold")
            }
            let tokens = try self.tokens()
            let number = tokens.count == 1 ? "1 device" : "\(tokens.count) devices"
            Console.error("wakegate: \(number) to be \(self.action.word)")
            guard !tokens.isEmpty else { return 0 }
            if !self.parsed.isSet("--yes") {
                guard Console.isAsked("wakegate: go on? [y/N] ") else {
                    throw CommandFailure(.failed, "nothing was done; answer y, or add --yes")
                }
            }
            var (done, refused) = (0, [String: Int]())
            for token in tokens {
                let response = try self.act(on: token, isOfList: true)
                if response.status >= 500 { try GatewayAnswer.check(response) }
                if let reason = try self.refusal(response) {
                    refused[reason, default: 0] += 1
                } else {
                    done += 1
                }
            }
            let rest = refused.sorted { $0.key < $1.key }.map { "\($0.value) refused: \($0.key)" }
            Console.error("wakegate: " + (["\(done) \(self.action.word)"] + rest).joined(separator: ", "))
            return refused.isEmpty ? 0 : 1
        }

        /// Why an answer says that nothing was done; nil when something was.
        private func refusal(_ response: HTTPResponse) throws(CommandFailure) -> String? {
            guard response.isSuccess else {
                return (try? JSONReader.read(response.text))?["reason"]?.text ?? "\(response.status)"
            }
            guard self.action == .drop else { return nil }
            return try Self.hasDropped(response) ? nil : "NothingPending"
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
                    if let token = device["token"]?.text { tokens.append(token) }
                }
                after = answer["next"]?.text
            } while after != nil
            return tokens
        }
    }
}
