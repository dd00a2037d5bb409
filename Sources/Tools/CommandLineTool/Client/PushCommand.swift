import Foundation
import Glibc
import HTTPClient
import Platform

extension CommandDefinition {
    package static let push = CommandDefinition(
        "push",
        "send a push as a provider would, and show the answer",
        arguments: [ArgumentDefinition("TOKEN", "the device token, hexadecimal")],
        options: [
            OptionDefinition("--topic", "TOPIC", "the topic of the push", isRequired: true),
            OptionDefinition("--payload", "JSON", "the payload; - reads standard input; default: a silent push"),
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
            The exit status is 0 when every push was accepted, and 1 otherwise; with --wait, 0 when the push, or the one
            it was coalesced into, was completed, and 1 when it was discarded, wakes nobody, or has not ended in time.
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
    /// The longest payload read from standard input, in bytes; past what any gateway takes.
    private static let payloadBytesMax = 1 << 20

    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .edge)
        let follower = try self.follower(parsed)
        var request = try self.request(parsed, to: location)
        if let token = try ProviderToken(parsed) {
            let header = try token.header(now: Int(SystemClock.wall / 1000), sign: environment.signES256)
            request.headers.append(("authorization", header))
        }
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
                    let answer = PushAnswer(try result.get(), now: Int(SystemClock.wall / 1000))
                    tally.add(answer)
                    if answer.isAccepted { apnsID = answer.apnsID }
                    if count <= self.linesMax || (!answer.isAccepted && tally.refused <= self.linesMax) {
                        Console.out(answer.text + "\n")
                    }
                } catch {
                    if count > 1 { Console.out(tally.text) }
                    throw location.failure(error)
                }
            }
        }
        if count > 1 { Console.out(tally.text) }
        if let follower, let apnsID { return try follower.follow(apnsID) ? 0 : 1 }
        return tally.refused == 0 ? 0 : 1
    }

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
        to location: GatewayLocation
    ) throws(CommandFailure) -> HTTPRequest {
        var payload = Array((parsed.text("--payload") ?? "{\"aps\":{\"content-available\":1}}").utf8)
        if parsed.text("--payload") == "-" { payload = try self.standardInput() }
        var headers = location.headers
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

    private static func standardInput() throws(CommandFailure) -> [UInt8] {
        let data = (try? FileHandle.standardInput.read(upToCount: self.payloadBytesMax + 1)) ?? Data()
        guard data.count <= self.payloadBytesMax else {
            throw CommandFailure(.failed, "the payload is longer than \(self.payloadBytesMax) bytes; send less")
        }
        return Array(data)
    }
}
