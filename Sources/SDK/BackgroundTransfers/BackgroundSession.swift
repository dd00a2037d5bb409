public import FoundationEssentials
import HTTPClient
import Synchronization
import Wire

/// File transfers that continue after the end of the program: the counterpart of a background `URLSession` on iOS.
///
/// The transfers agent on this machine, `wakegate transfers`, performs the transfers. They continue while the program
/// sleeps, is killed or restarts. When all transfers of the session have ended, the agent asks a gateway to wake the
/// program's device.
///
/// ```swift
/// let session = try BackgroundSession("com.example.app.downloads")
/// try await session.download(from: "https://example.com/film.mp4", to: "/srv/films/film.mp4")
/// ```
///
/// All programs of a user that open a session with the same identifier share it. Creating the object sends nothing; the
/// first request opens the session. Requests wait a few seconds for an agent that is restarting.
public final class BackgroundSession: Sendable {
    /// The identifier.
    public let identifier: String

    package let calls: SessionCalls
    private let watch: TransferWatch
    private let earlier: EarlierDownloads

    /// Creates an object for the session with this identifier. The first request creates the session if it does not
    /// exist.
    ///
    /// - Parameters:
    ///   - identifier: 1 to 255 letters, digits, periods, hyphens and underscores.
    ///   - configuration: the settings that are sent to the agent; by default none.
    ///   - agent: the address of the agent, `unix:/PATH`. The default is the variable `WAKEGATE_TRANSFERS`, then
    ///     `wakegate/transfers.sock` in `XDG_RUNTIME_DIR`, then `/run/wakegate-transfers/USER/transfers.sock`.
    /// - Throws: ``BackgroundTransferError``: `badArgument`, or `unavailable` if the machine cannot start a thread.
    public convenience init(
        _ identifier: String,
        _ configuration: BackgroundSessionConfiguration = BackgroundSessionConfiguration(),
        agent: String? = nil
    ) throws(BackgroundTransferError) {
        try self.init(identifier, configuration, agent: agent, triesMax: 6)
    }

    /// Creates an object that tries each request at most `triesMax` times. It waits between tries, because the agent
    /// may be restarting.
    package init(
        _ identifier: String,
        _ configuration: BackgroundSessionConfiguration,
        agent: String?,
        triesMax: Int
    ) throws(BackgroundTransferError) {
        guard Self.isIdentifier(identifier) else {
            throw BackgroundTransferError(
                .badArgument,
                "the session is \"\(identifier)\"; write 1 to 255 letters, digits, periods, hyphens and underscores"
            )
        }
        self.identifier = identifier
        let caller = try AgentCaller(AgentLocation(agent), triesMax: triesMax)
        self.calls = SessionCalls(identifier, caller, settings: configuration.body)
        self.watch = TransferWatch(self.calls)
        self.earlier = EarlierDownloads()
    }

    private static func isIdentifier(_ text: String) -> Bool {
        1...255 ~= text.utf8.count && text != "." && text != ".."
            && text.utf8.allSatisfy { $0.isLetterOrDigit(or: ".-_") }
    }

    /// The events of the session.
    ///
    /// The sequence begins with the current state: the progress of running transfers, the failed transfers, the
    /// finished uploads, and the finished downloads whose files are still available. It then delivers the end of each
    /// transfer once, even if the agent restarts in between. ``BackgroundSessionEvent/idle`` follows whenever all
    /// transfers have ended. While a program reads the events, the device is not woken.
    ///
    /// ```swift
    /// for try await event in session.events {
    ///     switch event {
    ///     case .progress(let progress): show(progress.fraction ?? 0)
    ///     case .finished(let transfer): try await session.take(transfer.id, to: "/srv/films/\(transfer.id)")
    ///     case .failed(let transfer): log("\(transfer.url): \(transfer.failure?.message ?? "")")
    ///     case .idle: return
    ///     default: break
    ///     }
    /// }
    /// ```
    public var events: BackgroundSessionEvents { BackgroundSessionEvents(calls: self.calls) }

    /// The events of the session, which start with every ended transfer. The reader waits for an agent that is not
    /// running.
    package var allEvents: BackgroundSessionEvents { BackgroundSessionEvents(calls: self.calls, tellsAll: true) }
}

// MARK: - Transfers

extension BackgroundSession {
    /// Adds a transfer, which continues even if this program ends.
    ///
    /// - Parameter request: the transfer.
    /// - Returns: the identifier of the transfer, after the agent has stored it durably.
    /// - Throws: ``BackgroundTransferError``. After `interrupted`, list the transfers to find out whether the agent has
    ///   added the transfer.
    ///
    /// ```swift
    /// let id = try await session.add(.upload("/srv/log.gz", to: "https://example.com/logs/1"))
    /// ```
    @discardableResult
    public func add(_ request: BackgroundTransferRequest) async throws(BackgroundTransferError) -> BackgroundTransferID
    {
        let answer = try await self.calls.answer("POST", "/transfers", request.body)
        guard let id = answer["transfer"]?.text.flatMap({ BackgroundTransferID($0) }) else {
            throw self.calls.caller.unreadable
        }
        return id
    }

    /// Adds a download, which starts immediately. A download of `URLSession` starts only after `resume()`.
    ///
    /// - Parameter url: the URL of the file.
    /// - Returns: the identifier of the transfer, after the agent has stored it durably.
    /// - Throws: ``BackgroundTransferError``, as ``add(_:)`` does.
    ///
    /// ```swift
    /// let id = try await session.downloadTask(with: url)
    /// ```
    @discardableResult
    public func downloadTask(with url: URL) async throws(BackgroundTransferError) -> BackgroundTransferID {
        try await self.add(.download(url.absoluteString))
    }

    /// Returns the session's transfers in the order in which they were added.
    ///
    /// - Parameter state: the state to filter by; nil for all transfers.
    /// - Returns: the current state of the transfers.
    /// - Throws: ``BackgroundTransferError``.
    public func transfers(
        in state: BackgroundTransfer.State? = nil
    ) async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        try await self.calls.transfers(in: state)
    }

    /// Returns the finished downloads whose files were not moved with ``take(_:to:replacing:)``, in the order in which
    /// they were added. The handler of a wake calls this method.
    ///
    /// - Returns: the downloads.
    /// - Throws: ``BackgroundTransferError``.
    ///
    /// ```swift
    /// for transfer in try await session.finishedDownloads() {
    ///     try await session.take(transfer.id, to: transfer.note ?? "/srv/films/\(transfer.id)")
    /// }
    /// ```
    public func finishedDownloads() async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        try await self.calls.transfers(in: .finished).filter { $0.kind == .download && !$0.isTaken }
    }

    /// Returns a transfer.
    ///
    /// - Parameter id: the identifier of the transfer.
    /// - Returns: the current state of the transfer.
    /// - Throws: ``BackgroundTransferError``.
    public func transfer(_ id: BackgroundTransferID) async throws(BackgroundTransferError) -> BackgroundTransfer {
        try await self.calls.transfer(id)
    }

    /// Waits until a transfer has ended. Cancelling the task that waits does not cancel the transfer.
    ///
    /// While a task waits, it reads the session's events, so the device is not woken. If other transfers may have ended
    /// in that time, call ``finishedDownloads()`` afterwards.
    ///
    /// - Parameter id: the identifier of the transfer.
    /// - Returns: the finished transfer.
    /// - Throws: ``BackgroundTransferError``: `transferFailed`, `transferCancelled`, and `noAgent` if the agent is
    ///   unreachable for a minute.
    @discardableResult
    public func wait(for id: BackgroundTransferID) async throws(BackgroundTransferError) -> BackgroundTransfer {
        let found = try await self.calls.transfer(id)
        let transfer = found.state.isEnd ? found : try await self.watch.end(of: id)
        switch transfer.state {
        case .failed:
            let reason = transfer.failure.map { "\($0)" } ?? "the agent does not say why"
            throw BackgroundTransferError(
                .transferFailed,
                "the transfer of \(transfer.url) has failed: \(reason)",
                transfer: transfer
            )
        case .cancelled:
            throw BackgroundTransferError(
                .transferCancelled,
                "the transfer of \(transfer.url) was cancelled; add it again",
                transfer: transfer
            )
        case .finished, .waiting, .running: return transfer
        }
    }

    /// Moves the file of a finished download to `path`. If the move fails, `path` is unchanged. The agent deletes a
    /// file that is not moved within a week.
    ///
    /// - Parameters:
    ///   - id: the identifier of the download.
    ///   - path: the destination; a relative path is relative to the working directory.
    ///   - replacing: true to replace an existing file; otherwise an existing file is an error.
    /// - Returns: the transfer.
    /// - Throws: ``BackgroundTransferError``: `notFinished`, `alreadyTaken`, `fileExists`, `badPath`, `noSpace`.
    @discardableResult
    public func take(
        _ id: BackgroundTransferID,
        to path: String,
        replacing: Bool = false
    ) async throws(BackgroundTransferError) -> BackgroundTransfer {
        let body = JSONWriter.object { json in
            json.member("to", AbsolutePath.of(path))
            if replacing { json.member("replace", true) }
        }
        let rest = "/transfers/\(id)/take"
        do throws(BackgroundTransferError) {
            return try self.calls.transfer(try await self.calls.answer("POST", rest, body, hasNoTimeout: true))
        } catch {
            guard error.code == .interrupted || error.code == .timedOut else { throw error }
        }
        // The agent ended during the request. If it has not moved the file, a second request does.
        let transfer = try await self.calls.transfer(id)
        guard !transfer.isTaken else { return transfer }
        return try self.calls.transfer(try await self.calls.answer("POST", rest, body, hasNoTimeout: true))
    }

    /// Cancels a transfer. If it is a finished download, deletes its file unless ``take(_:to:replacing:)`` has moved
    /// the file.
    ///
    /// - Parameters:
    ///   - id: the identifier of the transfer.
    ///   - keep: true to keep the received bytes for a later download of the same URL.
    /// - Throws: ``BackgroundTransferError``.
    public func cancel(_ id: BackgroundTransferID, keep: Bool = false) async throws(BackgroundTransferError) {
        _ = try await self.calls.answer("DELETE", "/transfers/\(id)\(keep ? "?keep=1" : "")")
    }

    /// Removes the session, cancels its running transfers, and deletes the files that ``take(_:to:replacing:)`` has not
    /// moved.
    ///
    /// - Throws: ``BackgroundTransferError``.
    public func remove() async throws(BackgroundTransferError) {
        do throws(BackgroundTransferError) {
            _ = try await self.calls.caller.answer("DELETE", self.calls.path)
        } catch {
            guard error.code == .unknownSession else { throw error }
        }
    }
}

// MARK: - Complete transfers

extension BackgroundSession {
    /// Downloads a file: adds the transfer, waits for its end, and moves the file to `path`.
    ///
    /// The transfer continues if the program ends in the meantime. The transfer's note is `path`. In the next run, the
    /// same call finds the transfer by its URL and note. A program that is woken at the end of the transfer reads the
    /// path from the note.
    ///
    /// - Parameters:
    ///   - url: the URL of the file.
    ///   - path: the destination; a relative path is relative to the working directory.
    ///   - headers: header fields to send.
    ///   - sha256: the expected SHA-256 of the file, in hexadecimal digits.
    ///   - replacing: true to replace an existing file; otherwise an existing file is an error.
    /// - Returns: the transfer.
    /// - Throws: ``BackgroundTransferError``, as ``add(_:)``, ``wait(for:)`` and ``take(_:to:replacing:)`` do.
    ///
    /// ```swift
    /// try await session.download(from: "https://example.com/film.mp4", to: "/srv/films/film.mp4")
    /// ```
    @discardableResult
    public func download(
        from url: String,
        to path: String,
        headers: [String: String] = [:],
        sha256: String? = nil,
        replacing: Bool = false
    ) async throws(BackgroundTransferError) -> BackgroundTransfer {
        var request = BackgroundTransferRequest.download(url)
        request.headers = headers
        request.sha256 = sha256
        request.note = AbsolutePath.of(path)
        let id: BackgroundTransferID
        if let earlier = try await self.earlier.take(request, self) {
            id = earlier
        } else {
            id = try await self.add(request)
        }
        try await self.wait(for: id)
        return try await self.take(id, to: path, replacing: replacing)
    }

    /// Uploads a file: adds the transfer and waits for its end. The transfer continues if the program ends in the
    /// meantime.
    ///
    /// - Parameters:
    ///   - file: the file's path.
    ///   - url: the destination URL.
    ///   - method: the HTTP method.
    ///   - headers: header fields to send.
    /// - Returns: the transfer.
    /// - Throws: ``BackgroundTransferError``, as ``add(_:)`` and ``wait(for:)`` do.
    ///
    /// ```swift
    /// try await session.upload("/srv/log.gz", to: "https://example.com/logs/1", headers: ["authorization": secret])
    /// ```
    @discardableResult
    public func upload(
        _ file: String,
        to url: String,
        method: String = "PUT",
        headers: [String: String] = [:]
    ) async throws(BackgroundTransferError) -> BackgroundTransfer {
        var request = BackgroundTransferRequest.upload(file, to: url)
        request.method = method
        request.headers = headers
        return try await self.wait(for: try await self.add(request))
    }
}

/// The downloads of earlier runs that are unfinished, or whose files `take` has not moved. A new download with the same
/// URL and note continues such a download. The list is requested when the first download of this run begins.
private final class EarlierDownloads: Sendable {
    private struct Key: Hashable {
        let url: String
        let note: String
    }

    private let found = Mutex<[Key: BackgroundTransferID]?>(nil)

    func take(
        _ request: BackgroundTransferRequest,
        _ session: BackgroundSession
    ) async throws(BackgroundTransferError) -> BackgroundTransferID? {
        // The agent lists URLs without credentials.
        let key = Key(url: HTTPURL.withoutCredentials(request.url), note: request.note ?? "")
        if self.found.withLock({ $0 == nil }) {
            var earlier: [Key: BackgroundTransferID] = [:]
            for transfer in try await session.transfers() where Self.goesOn(transfer) {
                earlier[Key(url: transfer.url, note: transfer.note ?? "")] = transfer.id
            }
            let listed = earlier
            self.found.withLock { found in
                // If several callers read the list concurrently, the first one sets it.
                if found == nil { found = listed }
            }
        }
        guard let id = self.found.withLock({ $0?.removeValue(forKey: key) }) else { return nil }
        // The program may have taken or cancelled the transfer after the list was requested.
        do throws(BackgroundTransferError) {
            let transfer = try await session.transfer(id)
            return Self.goesOn(transfer) ? id : nil
        } catch {
            guard error.code == .unknownTransfer else { throw error }
            return nil
        }
    }

    private static func goesOn(_ transfer: BackgroundTransfer) -> Bool {
        guard transfer.kind == .download, !transfer.isTaken else { return false }
        return transfer.state == .waiting || transfer.state == .running || transfer.state == .finished
    }
}

/// The settings of a session. Nil leaves a setting unchanged; a new session has the agent's defaults.
///
/// ```swift
/// var configuration = BackgroundSessionConfiguration()
/// configuration.wakes(device: token, topic: "com.example.app")
/// configuration.isDiscretionary = true
/// let session = try BackgroundSession("com.example.app.downloads", configuration)
/// ```
public struct BackgroundSessionConfiguration: Hashable, Sendable {
    /// The token of the device that is woken when all transfers have ended, in hexadecimal digits.
    public var device: String?
    /// The topic of the device.
    public var topic: String?
    /// True if transfers wait for external power, the end of low power mode, a cool machine, and a network that is
    /// neither metered nor in data saving mode. The default is false.
    public var isDiscretionary: Bool?
    /// True if the device is woken when all transfers have ended and no program reads ``BackgroundSession/events``. The
    /// default is true. Requires `device` and `topic`.
    public var sendsLaunchEvents: Bool?
    /// True if transfers may use a metered network. The default is true.
    public var allowsMetered: Bool?
    /// True if transfers may use a network with data saving, as in Low Data Mode on iOS. The default is true.
    public var allowsConstrained: Bool?
    /// True if transfers continue after the app was force-quit on ``device``. The default is false: transfers wait
    /// until the app is used again. iOS cancels them instead.
    public var continuesAfterForceQuit: Bool?
    /// The maximum time without a byte from the server. After it, the transfer is retried. The default is one minute.
    public var requestTimeout: Duration?
    /// The time after which an unfinished transfer fails. The default is seven days.
    public var resourceTimeout: Duration?
    /// The number of concurrent connections to one server. The default is six.
    public var connectionsPerHost: Int?
    /// True if an upload may finish early: the server answers with success before it has read the whole file. By
    /// default such an upload fails with ``BackgroundTransferFailure/Reason/serverStoppedReading``.
    public var acceptsEarlyAnswers: Bool?

    /// Creates an empty configuration. It leaves the settings of an existing session unchanged.
    public init() {}

    /// Sets the device that is woken when all transfers have ended.
    ///
    /// - Parameters:
    ///   - device: the device's token, in hexadecimal digits.
    ///   - topic: the device's topic.
    public mutating func wakes(device: String, topic: String) {
        self.device = device
        self.topic = topic
        self.sendsLaunchEvents = true
    }

    /// The request body that is sent to the agent.
    package var body: [UInt8] {
        JSONWriter.object { json in
            json.member("device", ifPresent: self.device)
            json.member("topic", ifPresent: self.topic)
            json.member("discretionary", ifPresent: self.isDiscretionary)
            json.member("sendsLaunchEvents", ifPresent: self.sendsLaunchEvents)
            json.member("allowsMetered", ifPresent: self.allowsMetered)
            json.member("allowsConstrained", ifPresent: self.allowsConstrained)
            json.member("continuesAfterForceQuit", ifPresent: self.continuesAfterForceQuit)
            json.member("acceptsEarlyAnswers", ifPresent: self.acceptsEarlyAnswers)
            json.member("requestTimeout", ifPresent: self.requestTimeout)
            json.member("resourceTimeout", ifPresent: self.resourceTimeout)
            json.member("connectionsPerHost", ifPresent: self.connectionsPerHost.map { Int64($0) })
        }
    }
}
