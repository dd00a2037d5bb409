package import BackgroundTransfers
import FoundationEssentials
import HTTPClient
import Platform
import Wire

/// `wakegate transfer`.
package enum TransferCommands {
    static func add(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let request = try self.request(parsed, now: SystemClock.wall)
        let agent = try TransferClient(parsed)
        let id = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await agent.session.add(request)
        }
        if parsed.isSet("--json") { Console.out(json: "{\"transfer\":\"\(id)\"}") } else { Console.out("\(id)\n") }
        guard parsed.isSet("--wait") || parsed.isSet("--to") else { return 0 }
        let status = try await self.wait(parsed, agent, [id])
        guard status == 0, let path = parsed.text("--to") else { return status }
        try await self.take(agent, id, to: path, parsed)
        return 0
    }

    /// Returns the transfer that a command line describes.
    ///
    /// - Throws: `badUsage` if the options or their values are invalid.
    package static func request(
        _ parsed: ParsedCommand,
        now: Int64
    ) throws(CommandFailure) -> BackgroundTransferRequest {
        let url = parsed.arguments[1]
        guard HTTPURL(url) != nil else {
            throw .usage("URL is \"\(url)\"; write the whole of it, beginning with http:// or https://")
        }
        let file = parsed.text("--upload")
        if file != nil, let option = ["--to", "--sha256"].first(where: { parsed.isSet($0) }) {
            throw .usage("\(option) is for a download, and --upload makes it an upload; leave one of them out")
        }
        if parsed.isSet("--replace"), !parsed.isSet("--to") {
            throw .usage("--replace is for the file of --to PATH; say where the file goes, or leave it out")
        }
        var request = file.map { BackgroundTransferRequest.upload($0, to: url) } ?? .download(url)
        request.method = parsed.text("--method")
        for field in parsed.all("--header") { try self.addHeader(field, to: &request) }
        if let moment = parsed.text("--earliest-begin") {
            let milliseconds = try TaskMoment.milliseconds(moment, now: now)
            request.earliestBegin = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
        }
        if let sum = parsed.text("--sha256") {
            guard sum.utf8.count == 64, sum.utf8.allSatisfy({ $0.hexDigitValue != nil }) else {
                throw .usage("--sha256 is \"\(sum)\"; write 64 hexadecimal digits, as sha256sum prints them")
            }
            request.sha256 = sum.lowercased()
        }
        request.bytesMax = parsed.integer("--bytes-max").map { Int64($0) }
        request.note = parsed.text("--note")
        return request
    }

    private static let headerFileBytesMax = 65_536

    /// Adds a header field `NAME: VALUE`, or each line of the file that `@FILE` names. Header fields in a file are not
    /// visible in the output of `ps`.
    private static func addHeader(
        _ field: String,
        to request: inout BackgroundTransferRequest
    ) throws(CommandFailure) {
        guard !field.hasPrefix("@") else {
            let path = String(field.dropFirst())
            let remedy = "name the file with the header fields, one a line"
            let bytes = try CommandFile.contents(path, bytesMax: self.headerFileBytesMax, remedy: remedy)
            for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
                try self.addHeader(String(line.drop { $0 == "@" }), to: &request)
            }
            return
        }
        let parts = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(where: \.isWhitespace) else {
            throw .usage("--header is not \"NAME: VALUE\"; write it like that, or @FILE for a file with such lines")
        }
        request.headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
    }

    static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let state = parsed.text("--state").flatMap { BackgroundTransfer.State(rawValue: $0) }
        let agent = try TransferClient(parsed)
        let isJSON = parsed.isSet("--json")
        let transfers = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await agent.session.calls.transfers(in: state) { page in if isJSON { Console.out(json: page) } }
        }
        if !isJSON { Console.out(TransferText.list(transfers)) }
        return 0
    }

    static func wait(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let named = try parsed.arguments.dropFirst().map(TransferClient.transfer)
        return try await self.wait(parsed, TransferClient(parsed), named.isEmpty ? nil : Set(named))
    }

    /// - Returns: the exit status: 0 if all transfers finished.
    private static func wait(
        _ parsed: ParsedCommand,
        _ agent: TransferClient,
        _ wanted: Set<BackgroundTransferID>?
    ) async throws(CommandFailure) -> Int32 {
        let display = TransferWaiting.Display(parsed)
        let waiting = TransferWaiting(agent.session, wanted, display)
        let ended = try await TransferClient.call { () throws(BackgroundTransferError) in try await waiting.run() }
        let unfinished = ended.filter { $0.state != .finished }
        if display != .json {
            for transfer in ended where wanted != nil || transfer.state != .finished {
                Console.error("wakegate: \(TerminalText.sanitized(TransferText.ended(transfer)))")
            }
        }
        return unfinished.isEmpty ? 0 : CommandFailure.Status.failed.rawValue
    }

    static func cancel(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let isAll = parsed.isSet("--all")
        guard isAll == (parsed.arguments.count == 1) else {
            throw .usage(
                isAll
                    ? "a TRANSFER and --all were both given; give one of them"
                    : "TRANSFER is missing; name the transfer, or write --all for every one that has not ended"
            )
        }
        let named = try parsed.arguments.dropFirst().map(TransferClient.transfer)
        let agent = try TransferClient(parsed)
        let keeps = parsed.isSet("--keep")
        let count = try await TransferClient.call { () throws(BackgroundTransferError) in
            let meant = isAll ? try await agent.session.transfers().filter { !$0.state.isEnd }.map(\.id) : named
            for id in meant { try await agent.session.cancel(id, keep: keeps) }
            return meant.count
        }
        Console.error("wakegate: \(count == 1 ? "the transfer is" : "\(count) transfers are") cancelled")
        return 0
    }

    static func take(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let words = parsed.arguments.dropFirst()
        if parsed.isSet("--noted") {
            guard words.isEmpty else {
                throw .usage("--noted takes what has finished to the places of the notes; leave \(words[1]) out")
            }
            return try await self.takeNoted(TransferClient(parsed), parsed)
        }
        guard words.count == 2 else {
            throw .usage("name a TRANSFER and the PATH where its file goes; or write --noted for the notes' places")
        }
        let id = try TransferClient.transfer(words[1])
        try await self.take(TransferClient(parsed), id, to: words[2], parsed)
        return 0
    }

    /// Moves every finished download to the path that its note contains.
    ///
    /// - Returns: the exit status: 0 if all downloads were moved.
    private static func takeNoted(
        _ agent: TransferClient,
        _ parsed: ParsedCommand
    ) async throws(CommandFailure) -> Int32 {
        let finished = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await agent.session.finishedDownloads()
        }
        var leftCount = 0
        for transfer in finished {
            do throws(CommandFailure) {
                guard let place = transfer.note, !place.isEmpty else {
                    throw .failed("its note names no place; take it to one by its name")
                }
                try await self.take(agent, transfer.id, to: place, parsed)
            } catch {
                guard error.status == .failed else { throw error }
                Console.error("wakegate: \(transfer.id): \(error.message)")
                leftCount += 1
            }
        }
        return leftCount == 0 ? 0 : CommandFailure.Status.failed.rawValue
    }

    private static func take(
        _ agent: TransferClient,
        _ id: BackgroundTransferID,
        to path: String,
        _ parsed: ParsedCommand
    ) async throws(CommandFailure) {
        let isReplacing = parsed.isSet("--replace")
        let transfer = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await agent.session.take(id, to: path, replacing: isReplacing)
        }
        Console.error("wakegate: \(path) is there, \(ByteText.text(transfer.bytes))")
    }
}

/// `wakegate transfer session`.
package enum TransferSessionCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let configuration = self.configuration(parsed)
        guard !parsed.arguments.isEmpty else {
            guard !parsed.isSet("--remove"), configuration == BackgroundSessionConfiguration() else {
                throw .usage("SESSION is missing; name the session that is meant")
            }
            return try await self.list(parsed)
        }
        if parsed.isSet("--remove") {
            let agent = try TransferClient(parsed)
            try await TransferClient.call { () throws(BackgroundTransferError) in try await agent.session.remove() }
            Console.error("wakegate: the session is removed")
            return 0
        }
        let agent = try TransferClient(parsed, configuration)
        let answer = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await agent.session.calls.text("GET", "")
        }
        return parsed.show(json: answer, TransferText.session(self.object(answer)))
    }

    private static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let address = parsed.text("--agent")
        let answer = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await AgentCaller(AgentLocation(address), triesMax: 1).text("GET", "/v1/sessions")
        }
        return parsed.show(json: answer, TransferText.sessions(self.object(answer)["sessions"]?.elements ?? []))
    }

    private static func object(_ text: String) -> JSONValue { (try? JSONReader.read(text)) ?? .null }

    /// Returns the settings of a session from the command line.
    package static func configuration(_ parsed: ParsedCommand) -> BackgroundSessionConfiguration {
        let flag = { (option: String) in parsed.text(option).map { $0 == "yes" } }
        var configuration = BackgroundSessionConfiguration()
        configuration.device = parsed.text("--device")
        configuration.topic = parsed.text("--topic")
        configuration.isDiscretionary = flag("--discretionary")
        configuration.sendsLaunchEvents = flag("--launch-events")
        configuration.allowsMetered = flag("--metered")
        configuration.allowsConstrained = flag("--constrained")
        configuration.continuesAfterForceQuit = flag("--after-force-quit")
        configuration.acceptsEarlyAnswers = flag("--early-answers")
        configuration.requestTimeout = parsed.seconds("--request-timeout").map { .seconds($0) }
        configuration.resourceTimeout = parsed.seconds("--resource-timeout").map { .seconds($0) }
        configuration.connectionsPerHost = parsed.integer("--connections")
        return configuration
    }
}

/// A client of the agent and session that a command line names.
struct TransferClient {
    let session: BackgroundSession

    /// - Throws: `CommandFailure` if the session's identifier or the agent's address is invalid.
    init(
        _ parsed: ParsedCommand,
        _ configuration: BackgroundSessionConfiguration = BackgroundSessionConfiguration()
    ) throws(CommandFailure) {
        do throws(BackgroundTransferError) {
            self.session = try BackgroundSession(
                parsed.arguments[0],
                configuration,
                agent: parsed.text("--agent"),
                triesMax: 1
            )
        } catch {
            throw Self.failure(error)
        }
    }

    /// Parses an argument as the identifier of a transfer.
    static func transfer(_ text: String) throws(CommandFailure) -> BackgroundTransferID {
        guard let id = BackgroundTransferID(text) else {
            throw .usage(
                "TRANSFER is \"\(text)\"; write the 32 hexadecimal digits that `wakegate transfer list SESSION` shows"
            )
        }
        return id
    }

    /// Converts an error of the library to a failure of the command.
    static func failure(_ error: BackgroundTransferError) -> CommandFailure {
        let status: CommandFailure.Status =
            switch error.code {
            case .noAgent: .noService
            case .notPermitted: .refusedCredential
            case .badArgument: .badUsage
            default: .failed
            }
        return CommandFailure(status, error.message)
    }

    /// Runs `body` and converts its error to a failure of the command.
    static func call<Value: Sendable>(
        _ body: () async throws(BackgroundTransferError) -> Value
    ) async throws(CommandFailure) -> Value {
        do throws(BackgroundTransferError) {
            return try await body()
        } catch {
            throw self.failure(error)
        }
    }
}
