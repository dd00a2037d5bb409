public import FoundationEssentials
import Synchronization
import Wire

/// Transfers of files that go on when the program that asked for them does not: the counterpart of iOS's background
/// `URLSession`.
///
/// An agent on this machine, `wakegate transfers`, makes them. It goes on while the program sleeps, is killed or is
/// started anew, and has a gateway wake the program's device when all have ended.
///
/// ```swift
/// let session = try BackgroundSession("com.example.app.downloads")
/// try await session.download(from: "https://example.com/film.mp4", to: "/srv/films/film.mp4")
/// ```
///
/// Sessions of one identifier are the same session, in whatever program of this user. Nothing is sent before the first
/// request; requests wait a few seconds for an agent that starts again.
public final class BackgroundSession: Sendable {
    /// The identifier.
    public let identifier: String

    package let calls: SessionCalls
    private let watch: TransferWatch
    private let earlier: EarlierDownloads

    /// Makes the session of an identifier, or the one that exists.
    ///
    /// - Parameters:
    ///   - identifier: 1 to 255 letters, digits, full stops, hyphens and underscores.
    ///   - configuration: what the agent is told of it; nothing by default.
    ///   - agent: where the agent listens, `unix:/PATH`. By default the variable `WAKEGATE_TRANSFERS` says so; then it
    ///     is `wakegate/transfers.sock` in `XDG_RUNTIME_DIR`, and then `/run/wakegate-transfers/USER/transfers.sock`.
    /// - Throws: ``BackgroundTransferError``: `badArgument`, or `unavailable` when the machine has no thread for it.
    public convenience init(
        _ identifier: String,
        _ configuration: BackgroundSessionConfiguration = BackgroundSessionConfiguration(),
        agent: String? = nil
    ) throws(BackgroundTransferError) {
        try self.init(identifier, configuration, agent: agent, triesMax: 6)
    }

    /// A session whose requests are tried so often at most; those in between wait for an agent that starts again.
    package init(
        _ identifier: String,
        _ configuration: BackgroundSessionConfiguration,
        agent: String?,
        triesMax: Int
    ) throws(BackgroundTransferError) {
        guard Self.isIdentifier(identifier) else {
            throw BackgroundTransferError(
                .badArgument,
                "the session is \"\(identifier)\"; write 1 to 255 letters, digits, full stops, hyphens and underscores"
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
            && text.utf8.allSatisfy { ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || ".-_".utf8.contains($0) }
    }

    /// What happens in the session, to who reads it.
    ///
    /// It begins with what is there: how far transfers are that run, which downloads wait to be taken, and which
    /// transfers have failed. After that each end is told once, also when the agent starts anew in between, and
    /// ``BackgroundSessionEvent/idle`` whenever all have ended. While somebody reads, nobody is woken.
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

    /// What happens, beginning with every transfer that has ended; an agent that is gone from the begin is waited for.
    package var allEvents: BackgroundSessionEvents { BackgroundSessionEvents(calls: self.calls, tellsAll: true) }
}

// MARK: - Transfers

extension BackgroundSession {
    /// Adds a transfer, which goes on whatever becomes of this program.
    ///
    /// - Parameter request: the transfer.
    /// - Returns: its name, once the transfer is safe with the agent.
    /// - Throws: ``BackgroundTransferError``. After `interrupted` the agent may have it: a list tells.
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

    /// Adds a download, which runs from then on, as that of `URLSession` does after `resume()`.
    ///
    /// - Parameter url: where the file comes from.
    /// - Returns: its name, once the transfer is safe with the agent.
    /// - Throws: ``BackgroundTransferError``, as ``add(_:)`` does.
    ///
    /// ```swift
    /// let id = try await session.downloadTask(with: url)
    /// ```
    @discardableResult
    public func downloadTask(with url: URL) async throws(BackgroundTransferError) -> BackgroundTransferID {
        try await self.add(.download(url.absoluteString))
    }

    /// The session's transfers in the order in which they were added.
    ///
    /// - Parameter state: which of them; all by default.
    /// - Returns: the transfers, as they are now.
    /// - Throws: ``BackgroundTransferError``.
    public func transfers(
        in state: BackgroundTransfer.State? = nil
    ) async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        try await self.calls.transfers(in: state)
    }

    /// The session's transfers; `page` is handed each page of the list as the agent wrote it.
    package func transfers(
        in state: BackgroundTransfer.State?,
        page: (String) -> Void
    ) async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        try await self.calls.transfers(in: state, page: page)
    }

    /// The downloads that have finished and wait to be taken, in the order in which they were added: what the handler
    /// of a wake looks for.
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

    /// One transfer.
    ///
    /// - Parameter id: its name.
    /// - Returns: the transfer, as it is now.
    /// - Throws: ``BackgroundTransferError``.
    public func transfer(_ id: BackgroundTransferID) async throws(BackgroundTransferError) -> BackgroundTransfer {
        try await self.calls.transfer(id)
    }

    /// Waits until a transfer has ended. A task that waits may be cancelled; the transfer goes on.
    ///
    /// - Parameter id: its name.
    /// - Returns: the transfer, which has finished.
    /// - Throws: ``BackgroundTransferError``: `transferFailed`, `transferCancelled`, and `noAgent` when the agent is
    ///   gone for a minute.
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

    /// Moves the file of a finished download to its place, whole or not at all. What is not taken is kept for a week.
    ///
    /// - Parameters:
    ///   - id: the download's name.
    ///   - path: where the file is to go; a relative path is of the working folder.
    ///   - replacing: whether a file that is there is replaced; otherwise it is an error.
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
            return try self.calls.transfer(try await self.calls.answer("POST", rest, body, isUnhurried: true))
        } catch {
            guard error.code == .interrupted || error.code == .timedOut else { throw error }
        }
        // An agent that died meanwhile has moved the file, or will with the next request.
        let transfer = try await self.calls.transfer(id)
        guard !transfer.isTaken else { return transfer }
        return try self.calls.transfer(try await self.calls.answer("POST", rest, body, isUnhurried: true))
    }

    /// Cancels a transfer; of one that has ended the file goes that nobody took.
    ///
    /// - Parameters:
    ///   - id: its name.
    ///   - keep: whether what was received is kept for a later download of the same URL.
    /// - Throws: ``BackgroundTransferError``.
    public func cancel(_ id: BackgroundTransferID, keep: Bool = false) async throws(BackgroundTransferError) {
        _ = try await self.calls.answer("DELETE", "/transfers/\(id)\(keep ? "?keep=1" : "")")
    }

    /// Removes the session: what runs is cancelled, and files that nobody took go.
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

// MARK: - From begin to end

extension BackgroundSession {
    /// Downloads a file: adds the transfer, waits for its end, and takes the file to its place.
    ///
    /// When the program ends meanwhile the transfer goes on. The same call in the next run finds it again, by its URL
    /// and by its note, which is the file's place; and whoever is woken at its end finds the place in the note.
    ///
    /// - Parameters:
    ///   - url: where the file comes from.
    ///   - path: where it is to go; a relative path is of the working folder.
    ///   - headers: header fields to send.
    ///   - sha256: the SHA-256 that it must have, in hexadecimal digits.
    ///   - replacing: whether a file that is there is replaced; otherwise it is an error.
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

    /// Uploads a file: adds the transfer, and waits for its end. When the program ends meanwhile the transfer goes on.
    ///
    /// - Parameters:
    ///   - file: the file's path.
    ///   - url: where it goes.
    ///   - method: the method.
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

/// The downloads of earlier runs that a download of this one may go on with: each once, and only what was there when
/// the first download of this run began.
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
        let key = Key(url: request.url, note: request.note ?? "")
        if self.found.withLock({ $0 == nil }) {
            var earlier: [Key: BackgroundTransferID] = [:]
            for transfer in try await session.transfers() where Self.goesOn(transfer) {
                earlier[Key(url: transfer.url, note: transfer.note ?? "")] = transfer.id
            }
            let listed = earlier
            self.found.withLock { found in
                // The first of those who asked at once.
                if found == nil { found = listed }
            }
        }
        return self.found.withLock { $0?.removeValue(forKey: key) }
    }

    private static func goesOn(_ transfer: BackgroundTransfer) -> Bool {
        guard transfer.kind == .download, !transfer.isTaken else { return false }
        return transfer.state == .waiting || transfer.state == .running || transfer.state == .finished
    }
}

/// What an agent is told of a session. What is nil stays as it is, or as the agent has it by default.
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
    /// The topic of that device.
    public var topic: String?
    /// Whether transfers wait for external power, a cool machine, and a network that is not metered. By default not.
    public var isDiscretionary: Bool?
    /// Whether the device is woken when all transfers have ended and nobody reads ``BackgroundSession/events``. By
    /// default it is; it needs `device` and `topic`.
    public var sendsLaunchEvents: Bool?
    /// Whether transfers go over a metered network, too. By default they do.
    public var allowsMetered: Bool?
    /// True if transfers use a network on which data is to be saved, as on iOS in Low Data Mode. By default they do.
    public var allowsConstrained: Bool?
    /// True if transfers continue after the app was force-quit on ``device``. By default they wait until it is used
    /// again; iOS cancels them.
    public var continuesAfterForceQuit: Bool?
    /// How long a server may send nothing before a transfer is tried again. By default a minute.
    public var requestTimeout: Duration?
    /// How long a transfer is tried before it has failed. By default seven days.
    public var resourceTimeout: Duration?
    /// How many connections there are to one server. By default six.
    public var connectionsPerHost: Int?
    /// True if an upload is finished when the server answers with success before it has read the whole file. By default
    /// such an upload fails with ``BackgroundTransferFailure/Reason/serverStoppedReading``.
    public var acceptsEarlyAnswers: Bool?

    /// Nothing is told: a session that exists stays as it is.
    public init() {}

    /// Names who is woken when all transfers have ended.
    ///
    /// - Parameters:
    ///   - device: the device's token, in hexadecimal digits.
    ///   - topic: its topic.
    public mutating func wakes(device: String, topic: String) {
        self.device = device
        self.topic = topic
        self.sendsLaunchEvents = true
    }

    /// As the agent is sent it.
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
