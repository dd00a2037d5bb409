import HTTPClient
import Platform
package import Wire

/// Sends requests to the transfers agent and waits for its answers.
package struct AgentCaller: Sendable {
    package let location: AgentLocation
    let thread: HTTPThread
    /// The maximum number of tries for a request. A request is retried if the agent is not reached or is shutting down.
    private let triesMax: Int

    /// The maximum size of an answer, in bytes. A page of a list has a few hundred thousand bytes.
    private static let bodyBytesMax = 64 << 20
    /// The default timeout of an answer, in milliseconds.
    private static let timeoutMilliseconds = 30_000

    /// - Parameters:
    ///   - location: the address of the agent.
    ///   - triesMax: the maximum number of tries for a request. The caller waits between tries, because the agent may
    ///     be restarting.
    /// - Throws: `unavailable` if the machine cannot start a thread.
    package init(_ location: AgentLocation, triesMax: Int = 6) throws(BackgroundTransferError) {
        self.location = location
        self.triesMax = triesMax
        do throws(HTTPClientError) {
            self.thread = try HTTPThread.shared()
        } catch {
            throw BackgroundTransferError(.unavailable, "\(error)")
        }
    }

    /// Creates a request to a path of the agent.
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
        // If a reused connection turns out to be closed, libcurl sends the request again. That is wrong for a POST,
        // which may not be idempotent.
        request.isFresh = method == "POST"
        return request
    }

    /// Sends a request, retries it a few times after temporary errors, and returns a successful answer.
    ///
    /// - Parameters:
    ///   - method: the HTTP method.
    ///   - path: the path of the request, including its query.
    ///   - body: the request body, in JSON.
    ///   - hasNoTimeout: true to wait for the answer without a timeout.
    /// - Returns: the answer as a JSON object, or null if its body is empty.
    package func answer(
        _ method: String,
        _ path: String,
        _ body: [UInt8]? = nil,
        hasNoTimeout: Bool = false
    ) async throws(BackgroundTransferError) -> JSONValue {
        let response = try await self.response(method, path, body, hasNoTimeout: hasNoTimeout)
        if response.body.isEmpty { return .null }
        guard let value = JSONValue(object: response.body) else { throw self.unreadable }
        return value
    }

    /// Returns the body of a successful answer exactly as the agent sent it.
    package func text(_ method: String, _ path: String) async throws(BackgroundTransferError) -> String {
        try await self.response(method, path, nil, hasNoTimeout: false).text
    }

    private func response(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        hasNoTimeout: Bool
    ) async throws(BackgroundTransferError) -> HTTPResponse {
        var request = self.request(method, path, body: body)
        if hasNoTimeout { request.timeoutMilliseconds = nil }
        var backoff = Backoff(firstMilliseconds: 100, lastMilliseconds: 2000)
        var generator = RandomBits()
        var tries = 0
        while true {
            tries += 1
            let fault: BackgroundTransferError
            let mayRepeat: Bool
            do throws(HTTPClientError) {
                let response = try await self.thread.perform(request)
                guard !response.isSuccess else { return response }
                (fault, mayRepeat) = (Self.refusal(response), true)
            } catch {
                (fault, mayRepeat) = (self.error(error), method != "POST" || !error.mayHaveArrived)
            }
            guard mayRepeat, fault.isPassing, tries < self.triesMax, !Task.isCancelled else { throw fault }
            request.isFresh = true
            await self.thread.wait(milliseconds: Int64(backoff.failed(using: &generator)))
        }
    }
}

// MARK: - Answers

extension AgentCaller {
    /// The error for an answer that this library cannot read.
    var unreadable: BackgroundTransferError {
        BackgroundTransferError(
            .badAnswer,
            "the answer of \(self.location.path) cannot be read; see whether `wakegate transfers` listens there, and "
                + "its version"
        )
    }

    /// Converts a client error to an error of this library.
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

    /// Converts an error answer of the agent to an error of this library.
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

/// The address of this user's transfers agent.
package struct AgentLocation: Hashable, Sendable {
    /// The environment variable that names the agent's socket.
    package static let variable = "WAKEGATE_TRANSFERS"

    /// The path of the agent's socket.
    package let path: String
    /// The other default paths of the socket. Empty if the path was given explicitly, or if a socket exists at a
    /// default path.
    package let others: [String]

    /// - Parameters:
    ///   - address: `unix:/PATH` or a path; nil for the default.
    ///   - variables: the environment.
    ///   - user: the name of the user; nil if the system does not know it.
    ///   - exists: a function that returns true if a file exists at a path.
    /// - Throws: `badArgument`.
    package init(
        _ address: String?,
        variables: (String) -> String? = ProcessFigures.variable,
        user: String? = ProcessFigures.userName,
        exists: (String) -> Bool = FileSystem.exists
    ) throws(BackgroundTransferError) {
        if let given = address ?? variables(Self.variable), address != nil || !given.isEmpty {
            self.path = try Self.path(given, address == nil ? Self.variable : "the agent")
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

    /// The maximum length of a socket path, in bytes. Linux allows 108 bytes including the terminating null byte.
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
