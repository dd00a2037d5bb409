import HTTPClient
import Platform
package import Wire

/// Asks the agent, and waits for its answer.
package struct AgentCaller: Sendable {
    package let location: AgentLocation
    let thread: HTTPThread
    /// How often a request is tried that does not reach the agent, or finds it ending.
    private let triesMax: Int

    /// The longest answer, in bytes: a page of a list has a few hundred thousand.
    private static let bodyBytesMax = 64 << 20
    /// How long the agent may take for an answer, in milliseconds.
    private static let timeoutMilliseconds = 30_000

    /// - Parameters:
    ///   - location: where the agent listens.
    ///   - triesMax: how often a request is tried; those in between wait for an agent that starts again.
    /// - Throws: `unavailable` when the machine has no thread for it.
    package init(_ location: AgentLocation, triesMax: Int = 6) throws(BackgroundTransferError) {
        self.location = location
        self.triesMax = triesMax
        do throws(HTTPClientError) {
            self.thread = try HTTPThread.shared()
        } catch {
            throw BackgroundTransferError(.unavailable, "\(error)")
        }
    }

    /// A request to a path of the agent.
    func request(_ method: String, _ path: String, body: [UInt8]? = nil) -> HTTPRequest {
        var settings = HTTPClientSettings()
        settings.socketPath = self.location.path
        settings.bodyBytesMax = Self.bodyBytesMax
        var request = HTTPRequest(
            method,
            "http://localhost\(path)",
            headers: body == nil ? [] : [("content-type", "application/json")],
            body: body,
            timeoutMilliseconds: Self.timeoutMilliseconds
        )
        request.settings = settings
        // libcurl sends what found a connection closed once more over another, and not everything counts once.
        request.isFresh = method == "POST"
        return request
    }

    /// Asks until there is an answer, a few times, and takes a good one alone.
    ///
    /// - Parameters:
    ///   - method: of the request.
    ///   - path: of the request, with its query.
    ///   - body: what it sends, in JSON.
    ///   - countsOnce: whether it comes to the same when a request arrives twice; by default for all but POST.
    ///   - isUnhurried: whether the answer may take as long as it takes.
    /// - Returns: the answer, which is a JSON object, or null where the agent answers nothing.
    package func answer(
        _ method: String,
        _ path: String,
        _ body: [UInt8]? = nil,
        countsOnce: Bool? = nil,
        isUnhurried: Bool = false
    ) async throws(BackgroundTransferError) -> JSONValue {
        try self.value(
            try await self.response(method, path, body, countsOnce: countsOnce, isUnhurried: isUnhurried)
        )
    }

    /// A good answer as the agent wrote it.
    package func text(_ method: String, _ path: String) async throws(BackgroundTransferError) -> String {
        try await self.response(method, path, nil, countsOnce: nil, isUnhurried: false).text
    }

    private func response(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        countsOnce: Bool?,
        isUnhurried: Bool
    ) async throws(BackgroundTransferError) -> HTTPResponse {
        var request = self.request(method, path, body: body)
        if isUnhurried { request.timeoutMilliseconds = nil }
        let mayArriveTwice = countsOnce ?? (method != "POST")
        var backoff = Backoff(firstMilliseconds: 100, lastMilliseconds: 2000)
        var generator = RandomBits()
        var tries = 0
        while true {
            tries += 1
            let fault: BackgroundTransferError
            let mayRepeat: Bool
            switch await self.outcome(request) {
            case .success(let response):
                guard !response.isSuccess else { return response }
                (fault, mayRepeat) = (Self.refusal(response), true)
            case .failure(let error):
                (fault, mayRepeat) = (self.error(error), mayArriveTwice || !error.mayHaveArrived)
            }
            guard mayRepeat, fault.isPassing, tries < self.triesMax, !Task.isCancelled else { throw fault }
            request.isFresh = true
            await self.thread.wait(milliseconds: Int64(backoff.failed(using: &generator)))
        }
    }

    private func outcome(_ request: HTTPRequest) async -> Result<HTTPResponse, HTTPClientError> {
        do throws(HTTPClientError) {
            return .success(try await self.thread.perform(request))
        } catch {
            return .failure(error)
        }
    }
}

// MARK: - Answers

extension AgentCaller {
    private func value(_ response: HTTPResponse) throws(BackgroundTransferError) -> JSONValue {
        if response.body.isEmpty { return .null }
        guard let value = JSONValue(object: response.body) else { throw self.unreadable }
        return value
    }

    /// The agent's answer is none that this library knows.
    var unreadable: BackgroundTransferError {
        BackgroundTransferError(
            .badAnswer,
            "the answer of \(self.location.path) cannot be read; see whether `wakegate transfers` listens there, and "
                + "its version"
        )
    }

    /// Why there was no answer.
    func error(_ error: HTTPClientError) -> BackgroundTransferError {
        switch error.code {
        case .unreachable where error.detail == "Permission denied":
            BackgroundTransferError(
                .notPermitted,
                "\(self.location.path) is another user's; start an agent of your own with "
                    + "`wakegate transfers`, and name its socket in \(AgentLocation.variable)"
            )
        case .unreachable: self.absence(error)
        case .timedOut:
            BackgroundTransferError(
                .timedOut,
                "the agent at \(self.location.path) did not answer in time; see its log",
                isPassing: true
            )
        case .broken, .tooLarge, .headTooLarge:
            BackgroundTransferError(
                error.mayHaveArrived ? .interrupted : .noAgent,
                "the agent at \(self.location.path) ended the exchange (\(error)); list the session's transfers to "
                    + "see what it did",
                isPassing: true
            )
        case .badRequest, .badCredentials, .untrusted, .refusedAddress:
            BackgroundTransferError(.badArgument, "\(error); see the agent's address")
        case .unavailable: BackgroundTransferError(.unavailable, "\(error)")
        case .cancelled: .taskCancelled
        }
    }

    private func absence(_ error: HTTPClientError) -> BackgroundTransferError {
        let reason = error.detail.isEmpty ? "\(error)" : error.detail
        let others = self.location.others.isEmpty ? "" : ", nor at \(self.location.others.joined(separator: ", "))"
        return BackgroundTransferError(
            .noAgent,
            "no transfers agent listens at \(self.location.path)\(others) (\(reason)); start one with "
                + "`systemctl start wakegate-transfers@USER`, or `wakegate transfers --listen "
                + "unix:\(self.location.path)`; or name another in \(AgentLocation.variable)",
            isPassing: true
        )
    }

    /// What an answer that is an error says.
    static func refusal(_ response: HTTPResponse) -> BackgroundTransferError {
        let isPassing = response.status == 503
        guard let (reason, words) = response.refusal else {
            return BackgroundTransferError(
                .badAnswer,
                "the answer is \(response.status) without a reason; see whether a transfers agent listens there",
                isPassing: isPassing
            )
        }
        return BackgroundTransferError(
            BackgroundTransferError.Code(reason: reason, status: response.status),
            "the agent answered \(words)",
            isPassing: isPassing
        )
    }
}

/// Where the agent of this user listens.
package struct AgentLocation: Hashable, Sendable {
    /// The variable that names it.
    package static let variable = "WAKEGATE_TRANSFERS"

    /// The path of its socket.
    package let path: String
    /// Where an agent could be besides, when nobody said where it is and none of these is there.
    package let others: [String]

    /// - Parameters:
    ///   - address: `unix:/PATH` or a path, as somebody named it; nil to look where an agent is by default.
    ///   - variables: the environment.
    ///   - user: the name of the user; nil when the system has none for it.
    ///   - exists: whether something is at a path.
    /// - Throws: `badArgument`.
    package init(
        _ address: String?,
        variables: (String) -> String? = ProcessFigures.variable,
        user: String? = ProcessFigures.userName,
        exists: (String) -> Bool = FileSystem.exists
    ) throws(BackgroundTransferError) {
        if let address {
            self.path = try Self.path(address, "the agent")
            self.others = []
            return
        }
        if let address = variables(Self.variable), !address.isEmpty {
            self.path = try Self.path(address, Self.variable)
            self.others = []
            return
        }
        var candidates: [String] = []
        if let folder = variables("XDG_RUNTIME_DIR"), folder.hasPrefix("/") {
            candidates.append("\(folder)/wakegate/transfers.sock")
        }
        if let user { candidates.append("/run/wakegate-transfers/\(user)/transfers.sock") }
        guard let first = candidates.first else {
            throw BackgroundTransferError(
                .badArgument,
                "this user has neither a name nor XDG_RUNTIME_DIR; name the agent's socket in \(Self.variable)"
            )
        }
        let found = candidates.first(where: exists)
        self.path = found ?? first
        self.others = found == nil ? Array(candidates.dropFirst()) : []
    }

    /// The longest path of a socket, in bytes: Linux has room for 108 with the byte behind it.
    package static let pathBytesMax = 107

    private static func path(_ address: String, _ name: String) throws(BackgroundTransferError) -> String {
        let path = address.hasPrefix("unix:") ? String(address.dropFirst("unix:".count)) : address
        guard !path.isEmpty, !path.contains("\0"), !path.contains("://") else {
            throw BackgroundTransferError(
                .badArgument,
                "\(name) is \"\(address)\"; write unix:/PATH, the path of its socket"
            )
        }
        guard path.utf8.count <= Self.pathBytesMax else {
            throw BackgroundTransferError(
                .badArgument,
                "\(name) has a path of \(path.utf8.count) bytes; a socket's has \(Self.pathBytesMax) at most"
            )
        }
        return path
    }
}
