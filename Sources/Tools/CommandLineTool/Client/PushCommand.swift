import HTTPClient
import Platform

extension CommandDefinition {
    package static let push = CommandDefinition(
        "push",
        "send a push as a provider would, and show the answer",
        arguments: [ArgumentDefinition("TOKEN", "the device token, hexadecimal")],
        options: [
            OptionDefinition("--topic", "TOPIC", "the topic of the push", isRequired: true),
            OptionDefinition(
                "--payload",
                "JSON",
                "the payload; @FILE reads a file, - standard input; default: a silent push"
            ),
            OptionDefinition(
                "--priority",
                "N",
                "10, 5 or 1; default: 5",
                value: .integer(0...1000),
                words: ["10", "5", "1"]
            ),
            OptionDefinition("--push-type", "TYPE", "apns-push-type; default: background"),
            OptionDefinition("--expiration", "SECONDS", "UNIX time at which the push expires; 0: now or never"),
            OptionDefinition("--collapse-id", "ID", "apns-collapse-id"),
            OptionDefinition("--apns-id", "UUID", "apns-id; the gateway makes one otherwise"),
            OptionDefinition("--count", "N", "send it N times over one connection", value: .integer(1...10_000_000)),
            OptionDefinition("--dry-run", "", "ask for the answer and change nothing"),
            OptionDefinition("--wait", "", "follow the push to its end, and show each step"),
            OptionDefinition(
                "--timeout",
                "SECONDS",
                "how long --wait follows it; default: 3600",
                value: .integer(1...2_592_000)
            ),
            OptionDefinition("--admin", "URL", "the admin listener, for --wait; default: --gateway, or as for stats"),
            OptionDefinition(
                "--provider-key",
                "FILE",
                "sign a provider token with this .p8; needs --team and --key-id"
            ),
            OptionDefinition("--team", "TEAM", "the team that the provider token names"),
            OptionDefinition("--key-id", "ID", "the key that the provider token names"),
        ] + OptionDefinition.client,
        example:
            "wakegate push 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe"
            + " --topic com.example.app --priority 10",
        notes: [
            """
            The exit status is 0 when every push wakes somebody, now or later (launched, scheduled, coalesced), 1 when
            one was refused, and 2 when all were accepted but one wakes nobody (no-wake, discarded). With --wait the
            push's end decides: 0 when it, or the one it was coalesced into, was completed, 2 when it was discarded or
            wakes nobody, and 1 when it was refused or has not ended in time. What to do about an answer is said on
            standard error. A payload that is no JSON object is not sent; the exit status is 64.
            """,
            """
            --wait reads the delivery log, GET /v1/pushes/<apns-id> of the admin listener:
              {"apnsID", "state", "into", "reason", "receivedAt", "events": [{"at", "event", "detail", "other"}]}
              state  pending, inFlight, completed, coalesced (into), discarded (reason), noWake
              event  received, absorbed (other), launched, result, coalesced (other), discarded
            """,
        ],
        run: PushCommand.run
    )
}

/// `wakegate push`.
package enum PushCommand {
    /// The most requests under way at once.
    private static let windowMax = 100
    /// Up to this many pushes each have a line of their own.
    private static let linesMax = 20

    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .edge)
        let follower = try self.follower(parsed)
        let token = try ProviderToken(parsed)
        let request = try self.request(parsed, to: location, token, environment)
        let advice = PushAdvice(
            device: parsed.arguments[0],
            topic: parsed.text("--topic") ?? "",
            expiration: parsed.text("--expiration"),
            showsProviderToken: token != nil
        )
        var told = Set<String>()
        let client = try location.client()
        let count = parsed.integer("--count") ?? 1
        var tally = PushTally()
        var apnsID: String?
        var started = 0
        while tally.count < count {
            do throws(HTTPClientError) {
                while started < count, client.activeCount < self.windowMax {
                    _ = try client.start(request)
                    started += 1
                }
            } catch {
                throw location.failure(error)
            }
            for case .ended(_, let result) in client.poll(timeoutMilliseconds: 1000) {
                do throws(HTTPClientError) {
                    let answer = PushAnswer(try result.get(), now: SystemClock.wall)
                    tally.add(answer)
                    if answer.isAccepted { apnsID = answer.apnsID }
                    if count <= self.linesMax || (!answer.isAccepted && tally.refused <= self.linesMax) {
                        Console.out("\(parsed.isSet("--dry-run") ? self.dryRun : "")\(answer.text)\n")
                    }
                    for warning in answer.warnings where told.insert(warning).inserted {
                        Console.error("wakegate: warning: \(warning)")
                    }
                    if told.insert(answer.outcome).inserted, let text = advice.text(answer) {
                        Console.error("wakegate: \(text)")
                    }
                } catch {
                    if count > 1 { Console.out(tally.text) }
                    throw location.failure(error)
                }
            }
        }
        if count > 1 { Console.out(tally.text) }
        if let follower, let apnsID {
            return (try follower.follow(apnsID) ? PushStatus.wakes : .wakesNobody).rawValue
        }
        return tally.status.rawValue
    }

    /// What stands before an answer that changed nothing.
    private static let dryRun = "dry run, nothing was sent: it would be "

    /// Who follows the push, when that is asked for.
    private static func follower(_ parsed: ParsedCommand) throws(CommandFailure) -> PushFollower? {
        guard parsed.isSet("--wait") else {
            if let option = ["--timeout", "--admin"].first(where: { parsed.isSet($0) }) {
                throw .usage("\(option) is for --wait; write --wait, or leave it out")
            }
            return nil
        }
        if let option = ["--dry-run", "--count"].first(where: { parsed.isSet($0) }) {
            throw .usage("--wait follows one push that is sent; leave \(option) out")
        }
        let option = parsed.isSet("--admin") ? "--admin" : "--gateway"
        return PushFollower(
            location: try GatewayLocation(parsed, side: .admin, option: option),
            device: parsed.arguments[0],
            timeoutSeconds: parsed.integer("--timeout") ?? 3600
        )
    }

    private static func request(
        _ parsed: ParsedCommand,
        to location: GatewayLocation,
        _ token: ProviderToken?,
        _ environment: CommandEnvironment
    ) throws(CommandFailure) -> HTTPRequest {
        let payload = try PushPayloadOption.read(parsed.text("--payload"))
        var headers = token == nil ? location.providerHeaders : []
        if let token {
            let header = try token.header(now: Int(SystemClock.wall / 1000), sign: environment.signES256)
            headers.append(("authorization", header))
        }
        headers.append(("apns-topic", parsed.text("--topic") ?? ""))
        headers.append(("apns-push-type", parsed.text("--push-type") ?? "background"))
        headers.append(("apns-priority", parsed.text("--priority") ?? "5"))
        for name in ["expiration", "collapse-id"] {
            if let value = parsed.text("--\(name)") { headers.append(("apns-\(name)", value)) }
        }
        if let id = parsed.text("--apns-id") { headers.append(("apns-id", id)) }
        if parsed.isSet("--dry-run") { headers.append(("wakegate-dry-run", "1")) }
        let path = "/3/device/\(URLPath.component(parsed.arguments[0]))"
        return HTTPRequest("POST", location.url + path, headers: headers, body: payload)
    }
}
