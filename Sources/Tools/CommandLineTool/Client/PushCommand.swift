import Glibc
import HTTPClient
import Platform
import Policy
package import Wire

extension CommandDefinition {
    /// - Parameter signES256: signs a message with the key in a file. The signature is the number R followed by S.
    package static func push(signES256: @escaping ProviderToken.Sign) -> CommandDefinition {
        CommandDefinition(
            "push",
            "send a push as a provider does, and print the answer",
            arguments: [ArgumentDefinition("TOKEN", "the device token, hexadecimal")],
            options: Self.pushOptions + OptionDefinition.client,
            example:
                "wakegate push 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe"
                + " --topic com.example.app --priority 10",
            notes: """
                The exit status is 0 if every push causes a wake, now or later (launched, scheduled, coalesced), 1 if
                one was refused, and 2 if all were accepted but one causes no wake (no-wake, discarded). With --wait,
                the outcome of the push decides: 0 if it, or the push into which it was coalesced, was completed, 2 if
                it was discarded or causes no wake, and 1 if it was refused or has not ended in time. Standard error
                explains what to do about an answer. A payload that is not a JSON object is not sent; the exit status is
                then 64.

                --wait reads the delivery log, GET /v1/pushes/<apns-id> of the admin listener:
                  {"apnsID", "state", "into", "reason", "receivedAt", "events": [{"at", "event", "detail", "other"}]}
                  state  pending, inFlight, completed, coalesced (into), discarded (reason), noWake
                  event  received, absorbed (other), launched, result, coalesced (other), discarded
                """,
            run: { parsed throws(CommandFailure) in try PushCommand.run(parsed, signES256) }
        )
    }

    private static let pushOptions = [
        OptionDefinition("--topic TOPIC", "the topic of the push", isRequired: true),
        OptionDefinition("--payload JSON", "the payload; @FILE reads a file, - standard input; default: a silent push"),
        OptionDefinition("--priority N", "10, 5 or 1; default: 5", value: .integer(0...1000), words: ["10", "5", "1"]),
        OptionDefinition("--push-type TYPE", "apns-push-type; default: background"),
        OptionDefinition(
            "--expiration WHEN",
            "expire after a duration such as 10m, or at a UNIX time; 0: deliver now or never"
        ),
        OptionDefinition("--collapse-id ID", "apns-collapse-id"),
        OptionDefinition("--apns-id UUID", "apns-id; by default the gateway creates one"),
        OptionDefinition("--count N", "send it N times over one connection", value: .integer(1...10_000_000)),
        OptionDefinition("--dry-run", "predict the answer without changing anything"),
        OptionDefinition("--wait", "follow the push until it ends, and print each step"),
        OptionDefinition(
            "--timeout DURATION",
            "the maximum time for which --wait follows the push; default: 1h",
            value: .duration(1...2_592_000)
        ),
        OptionDefinition(
            "--admin URL",
            "the admin listener, for --wait; default: that of the gateway on this machine, or --gateway"
        ),
        OptionDefinition("--provider-key FILE", "sign a provider token with this .p8 file; needs --team and --key-id"),
        OptionDefinition("--team TEAM", "the team in the provider token"),
        OptionDefinition("--key-id ID", "the key id in the provider token"),
    ]
}

/// `wakegate push`.
package enum PushCommand {
    /// The maximum number of concurrent requests.
    private static let windowMax = 100
    /// The maximum number of pushes whose answers are printed one per line.
    private static let linesMax = 20

    static func run(_ parsed: ParsedCommand, _ sign: ProviderToken.Sign) throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .edge)
        let follower = try self.follower(parsed)
        let token = try ProviderToken(parsed)
        let request = try self.request(parsed, to: location, token, sign)
        let advice = PushAdvice(
            device: parsed.arguments[0],
            topic: parsed.text("--topic") ?? "",
            expiration: parsed.text("--expiration"),
            showsProviderToken: token != nil
        )
        var reported = Set<String>()
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
                    for warning in answer.warnings where reported.insert(warning).inserted {
                        Console.error("wakegate: warning: \(warning)")
                    }
                    if reported.insert(answer.outcome).inserted, let text = advice.text(answer) {
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

    /// The prefix of a dry run's answer.
    private static let dryRun = "dry run, nothing was sent: it would be "

    /// Returns the object that waits for the push's end if `--wait` is given; nil otherwise.
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
        var asked = parsed
        if !parsed.isSet("--admin"), let edge = parsed.text("--gateway"), let admin = GatewayLocation.admin(of: edge) {
            asked.values["--admin"] = [admin]
        }
        let option = asked.isSet("--admin") ? "--admin" : "--gateway"
        return PushFollower(
            location: try GatewayLocation(asked, side: .admin, option: option),
            device: parsed.arguments[0],
            timeoutSeconds: parsed.seconds("--timeout") ?? 3600
        )
    }

    /// Returns the value of `apns-expiration`. Adds a duration with a unit to `now`, in milliseconds since 1970, and
    /// rounds the sum up to seconds. A duration of 0 becomes 0. Returns other text, such as a UNIX time, unchanged.
    package static func expiration(_ text: String, now: Int64) -> String {
        guard text.last?.isLetter == true, let duration = DurationText.milliseconds(text) else { return text }
        return duration == 0 ? "0" : String((now + duration + 999) / 1000)
    }

    private static func request(
        _ parsed: ParsedCommand,
        to location: GatewayLocation,
        _ token: ProviderToken?,
        _ sign: ProviderToken.Sign
    ) throws(CommandFailure) -> HTTPRequest {
        let payload = try PushPayloadOption.read(parsed.text("--payload"))
        var headers = token == nil ? location.providerHeaders : []
        if let token {
            let header = try token.header(now: Int(SystemClock.wall / 1000), sign: sign)
            headers.append(("authorization", header))
        }
        headers.append(("apns-topic", parsed.text("--topic") ?? ""))
        headers.append(("apns-push-type", parsed.text("--push-type") ?? "background"))
        headers.append(("apns-priority", parsed.text("--priority") ?? "5"))
        if let text = parsed.text("--expiration") {
            headers.append(("apns-expiration", self.expiration(text, now: SystemClock.wall)))
        }
        if let value = parsed.text("--collapse-id") { headers.append(("apns-collapse-id", value)) }
        if let id = parsed.text("--apns-id") { headers.append(("apns-id", id)) }
        if parsed.isSet("--dry-run") { headers.append(("wakegate-dry-run", "1")) }
        let path = "/3/device/\(URLPath.component(parsed.arguments[0]))"
        return HTTPRequest("POST", location.url + path, headers: headers, body: payload)
    }
}

extension CommandDefinition {
    package static let pushList = CommandDefinition(
        "push list",
        "list pushes, newest first, with their outcomes",
        options: [
            OptionDefinition("--topic TOPIC", "only pushes to devices of one topic"),
            OptionDefinition(
                "--outcome WORD",
                "only pushes with this outcome, or with one of several, such as expired,lost",
                isRepeatable: true,
                words: PushListCommand.outcomes + ["discarded"]
            ),
            OptionDefinition("--device TOKEN", "the last 32 pushes to one device; excludes other filters"),
            OptionDefinition("--limit N", "at most N pushes; default: 100", value: .integer(1...1_000_000)),
            OptionDefinition("--after NEXT", "continue a list; its last line names the value"),
            OptionDefinition("--json", "print the gateway's answers unchanged, one page per line"),
        ] + OptionDefinition.period + OptionDefinition.client,
        example: "wakegate push list --topic com.example.app --outcome expired,lost --since 24h",
        notes: """
            outcomes:
              pending    the push waits
              inFlight   its wake is in flight
              completed  a worker handled it
              coalesced  a later push to the device replaced it
              noWake     it wakes no device, because it has no content-available
              \(PushListCommand.discarded.joined(separator: ", "))   it was discarded for this reason
              discarded  any of these reasons
              lost       a wake of it was lost, whatever its outcome
            """,
        run: PushListCommand.list
    )
}

extension OptionDefinition {
    /// The options of `PushListCommand.period`.
    static let period = [
        OptionDefinition("--since TIME", "only the last 30s, 1h, 7d ..., or from 2026-11-23T17:00:00Z on"),
        OptionDefinition("--until TIME", "only until 30s, 1h, 7d ... ago, or until such a time"),
    ]
}

/// `wakegate push list`.
package enum PushListCommand {
    /// The reasons for which a push is discarded.
    static let discarded = DiscardReason.ofPushes.map(\.rawValue)
    package static let outcomes =
        ["pending", "inFlight", "completed", "coalesced", "noWake"] + Self.discarded + ["lost"]

    static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let period = try self.period(parsed, now: SystemClock.wall)
        let device = parsed.text("--device")
        if device != nil,
            let other = ["--topic", "--outcome", "--since", "--until", "--limit", "--after"].first(
                where: parsed.isSet
            )
        {
            throw .usage("--device shows the last 32 pushes to the device; leave \(other) out")
        }
        return try ListPages(
            member: "pushes",
            nothing: "there is no such push in the delivery log",
            path: { self.path(parsed, period, limit: $0, after: $1) },
            text: { self.text($0, device: device, withHeader: $1) }
        ).show(parsed)
    }

    /// Returns the period of `--since` and `--until` as query parameters, in milliseconds since 1970.
    ///
    /// - `spanMax`: the longest time before now that the gateway can count, in milliseconds; nil for no limit.
    package static func period(
        _ parsed: ParsedCommand,
        spanMax: Int64? = nil,
        now: Int64
    ) throws(CommandFailure) -> [String] {
        var spans: [Int64] = []
        for option in ["--since", "--until"] {
            guard let text = parsed.text(option) else { continue }
            let duration = DurationText.milliseconds(text) ?? TaskMoment.instant(text).map { now - $0 }
            guard let duration, duration > 0 else {
                throw .usage(
                    "\(option) is \"\(text)\"; write a duration above 0, such as 30m, 1h or 7d, or a time in the past, "
                        + "such as 2026-11-23T17:00:00Z"
                )
            }
            if let spanMax, duration > spanMax {
                let longest = DurationText.text(milliseconds: spanMax)
                throw .usage("\(option) is \"\(text)\", but the gateway counts \(longest); write 24h or less")
            }
            spans.append(duration)
        }
        if spans.count == 2, spans[1] >= spans[0] {
            throw .usage("--until ends the period before --since begins it; write --since 24h --until 12h")
        }
        let names = ["since", "until"].filter { parsed.isSet("--\($0)") }
        return zip(names, spans).map { "\($0)=\(max(0, now - $1))" }
    }

    /// Returns the path of a page.
    package static func path(_ parsed: ParsedCommand, _ period: [String], limit: Int, after: String?) -> String {
        if let device = parsed.text("--device") { return "/v1/devices/\(URLPath.component(device))/pushes" }
        var parsed = parsed
        parsed.values["--outcome"] = parsed.values["--outcome"]?.map {
            $0.split(separator: ",", omittingEmptySubsequences: false)
                .map { $0 == "discarded" ? self.discarded.joined(separator: ",") : String($0) }.joined(separator: ",")
        }
        let query = period + ListPages.query(parsed, ["topic", "outcome"], limit: limit, after: after)
        return "/v1/pushes?\(query.joined(separator: "&"))"
    }

    /// Returns the outcome, and the number of lost wakes if it is not zero: `completed, lost 2`.
    private static func outcome(_ push: JSONValue) -> String {
        let outcome = push["outcome"]?.text ?? push["reason"]?.text ?? push["state"]?.text ?? "-"
        guard let lost = push["lost"]?.number, lost > 0 else { return outcome }
        return "\(outcome), lost \(JSONNumber.text(of: lost))"
    }

    /// Returns one line for each push. All pages have the same columns.
    ///
    /// - `device`: the device whose pushes are listed; nil for other lists. A list of one device does not repeat the
    ///   device.
    package static func text(_ pushes: [JSONValue], device: String? = nil, withHeader hasHeader: Bool) -> String {
        let head = ["received", "outcome", "ended", "apns-id", "topic", "device"]
        return TableText.page(pushes, widths: [20, 17, 20, 36, 24], head: hasHeader ? head : nil) { push in
            [
                TableText.moment(push["receivedAt"]),
                self.outcome(push),
                TableText.moment(push["outcomeAt"]),
                push["apnsID"]?.text ?? "-",
                push["topic"]?.text ?? "-",
                push["device"]?.text ?? device ?? "-",
            ]
        }
    }
}

/// Reads the value of `--payload`: JSON, a file with `@FILE`, or standard input with `-`.
package enum PushPayloadOption {
    /// The maximum number of payload bytes that are read: more than any gateway accepts.
    private static let bytesMax = 1 << 20
    /// The default payload: a silent push without data.
    static let silent = "{\"aps\":{\"content-available\":1}}"

    /// - Throws: `CommandFailure` if a file cannot be read or the bytes are not a payload.
    static func read(_ text: String?) throws(CommandFailure) -> [UInt8] {
        guard let text else { return Array(self.silent.utf8) }
        let payload: [UInt8]
        let name: String
        if text == "-" {
            name = "the payload on standard input"
            payload = try CommandFile.standardInput(bytesMax: self.bytesMax + 1)
        } else if text.hasPrefix("@") {
            let path = String(text.dropFirst())
            guard !path.isEmpty else { throw .usage("--payload @ names no file; write --payload @FILE") }
            name = "the payload in \(path)"
            payload = try CommandFile.contents(
                path,
                bytesMax: self.bytesMax + 1,
                remedy: "name the payload's file behind --payload @"
            )
        } else {
            name = "--payload"
            payload = Array(text.utf8)
        }
        guard payload.count <= self.bytesMax else {
            throw .failed("\(name) is longer than \(self.bytesMax) bytes; send less")
        }
        if let fault = self.fault(payload) {
            throw .usage("\(name) \(fault); nothing was sent\nwrite a JSON object, such as \(self.silent)")
        }
        return payload
    }

    /// Returns the reason why the bytes are not a payload, as a clause; nil for a payload.
    package static func fault(_ payload: [UInt8]) -> String? {
        if let fault = JSONSyntax.fault(in: payload) {
            return fault.isCutShort ? "ends too early, \(fault.what): it was cut short" : "is not JSON: \(fault.what)"
        }
        // Valid JSON is an object if it begins with a brace.
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        return payload.first { !isSpace($0) } == UInt8(ascii: "{") ? nil : "is JSON, but no object"
    }
}

/// A provider token as APNs requires it: a JSON web token signed with ES256.
package struct ProviderToken: Hashable, Sendable {
    package typealias Sign = @Sendable (_ message: [UInt8], _ keyFile: String) throws -> [UInt8]

    private let keyFile: String
    private let team: String
    private let keyID: String

    /// Reads `--provider-key`, `--team` and `--key-id`.
    ///
    /// - Returns: nil if none of these options is given.
    /// - Throws: `badUsage` if only some of these options are given. Also if `--token` is given, because it sets the
    ///   same header.
    package init?(_ parsed: ParsedCommand) throws(CommandFailure) {
        let options = [("--provider-key", "FILE.p8"), ("--team", "TEAM"), ("--key-id", "ID")]
        let given = options.filter { parsed.isSet($0.0) }
        if given.isEmpty { return nil }
        if let (name, placeholder) = options.first(where: { !parsed.isSet($0.0) }) {
            throw .usage("\(name) is missing with \(given[0].0); write \(name) \(placeholder)")
        }
        if parsed.isSet("--token") {
            throw .usage("--token and --provider-key both say who sends the push; leave one out")
        }
        self.keyFile = parsed.text("--provider-key") ?? ""
        self.team = parsed.text("--team") ?? ""
        self.keyID = parsed.text("--key-id") ?? ""
    }

    /// Returns the value of the `authorization` header.
    ///
    /// - Parameters:
    ///   - now: the UNIX time in seconds. The token is valid for an hour from this time.
    ///   - sign: signs a message with the key in a file.
    package func header(
        now: Int,
        sign: (_ message: [UInt8], _ keyFile: String) throws -> [UInt8]
    ) throws(CommandFailure) -> String {
        let head = "{\"alg\":\"ES256\",\"kid\":\(JSONText.quoted(self.keyID))}"
        let claims = "{\"iss\":\(JSONText.quoted(self.team)),\"iat\":\(now)}"
        let message = "\(Base64.urlText(Array(head.utf8))).\(Base64.urlText(Array(claims.utf8)))"
        do {
            return "bearer \(message).\(Base64.urlText(try sign(Array(message.utf8), self.keyFile)))"
        } catch {
            throw .failed("--provider-key: \(error)")
        }
    }
}

/// Follows one push in the gateway's delivery log until it ends, and prints each step once.
struct PushFollower {
    /// The first and the longest wait between two requests, in milliseconds.
    private static let pauses = (first: 50, last: 1000)
    /// The limits for an answer's timeout, in milliseconds. Within them, the timeout is the remaining time of the
    /// command.
    private static let answerTimes: (first: Int64, last: Int64) = (1000, 30_000)

    let location: GatewayLocation
    /// The device token with which the log is queried.
    let device: String
    let timeoutSeconds: Int

    /// Waits until the push has ended. If the push was coalesced, follows the push with which it was merged.
    ///
    /// - Returns: true if the push was completed.
    /// - Throws: `CommandFailure` if the push has not ended in time or the log cannot be read.
    func follow(_ apnsID: String) throws(CommandFailure) -> Bool {
        let client = try self.location.client()
        let deadline = SystemClock.monotonic + Int64(self.timeoutSeconds) * 1000
        var history = PushHistoryText(apnsID)
        var pause = Self.pauses.first
        var hasAnswered = false
        while true {
            let path = "/v1/pushes/\(URLPath.component(history.apnsID))?device=\(URLPath.component(self.device))"
            var request = self.location.request("GET", path)
            let time = max(Self.answerTimes.first, deadline - SystemClock.monotonic)
            request.timeoutMilliseconds = Int(min(Self.answerTimes.last, time))
            let result = Result { () throws(HTTPClientError) in try client.perform(request) }
            if hasAnswered, Self.isPassing(result), SystemClock.monotonic < deadline {
                _ = client.poll(timeoutMilliseconds: Self.pauses.last)
                continue
            }
            let response: HTTPResponse
            do throws(HTTPClientError) { response = try result.get() } catch { throw self.location.failure(error) }
            hasAnswered = true
            guard response.status != 404 || !response.text.contains("\"BadPath\"") else {
                throw .failed("\(self.location.url) has no delivery log; name the admin listener: --admin")
            }
            let answer = try GatewayAnswer.object(response)
            for line in history.newLines(answer) {
                Console.out(line + "\n")
                pause = Self.pauses.first
            }
            switch answer["state"]?.text {
            case "completed": return true
            case "discarded", "noWake": return false
            case "coalesced":
                guard let heir = answer["into"]?.text else { return false }
                history = PushHistoryText(heir)
            default: break
            }
            let left = deadline - SystemClock.monotonic
            guard left > 0 else {
                let state = answer["state"]?.text ?? "unknown"
                throw .failed(
                    "push \(history.apnsID) is \(state) after \(self.timeoutSeconds) s; wait longer with --timeout "
                        + "DURATION, and see why with `wakegate stats --device \(ShellText.quoted(self.device))`"
                )
            }
            // No request is in flight, so this call returns only after the pause.
            _ = client.poll(timeoutMilliseconds: Int(min(Int64(pause), left)))
            pause = min(pause * 2, Self.pauses.last)
        }
    }

    /// Returns true if the gateway may answer later. The push is stored.
    private static func isPassing(_ result: Result<HTTPResponse, HTTPClientError>) -> Bool {
        switch result {
        case .success(let response): response.isPassing
        case .failure(let error): error.isPassing
        }
    }
}

/// Formats the steps of one push, one line for each.
package struct PushHistoryText {
    package let apnsID: String
    private var shown = 0

    package init(_ apnsID: String) {
        self.apnsID = apnsID
    }

    /// Returns the lines of new steps, such as `2026-11-21T07:20:00Z result newData`.
    ///
    /// Omits the steps `received` and `absorbed`, because the answer to the push has already reported them.
    ///
    /// - Parameter answer: the answer of `/v1/pushes/<apns-id>`.
    package mutating func newLines(_ answer: JSONValue) -> [String] {
        let events = answer["events"]?.elements ?? []
        defer { self.shown = max(self.shown, events.count) }
        return events.dropFirst(self.shown).compactMap { self.line($0) }
    }

    private func line(_ event: JSONValue) -> String? {
        guard let name = event["event"]?.text, name != "received", name != "absorbed" else { return nil }
        var parts = [event["at"]?.number.map { TimeText.instant($0) } ?? "-", name]
        if let other = event["other"]?.text { parts.append("into \(other)") }
        if let detail = event["detail"]?.text {
            parts[1] += name == "result" ? "" : ","
            parts.append(EventText.detail(detail))
        }
        return TerminalText.sanitized(parts.joined(separator: " "))
    }
}
