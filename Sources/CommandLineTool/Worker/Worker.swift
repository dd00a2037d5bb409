import Glibc
import HTTPClient
import LinuxConditions

/// A subscription to the wakes of a topic, and the commands that handle them; one thread, one place to wait.
final class Worker {
    /// What a worker is asked to do.
    struct Settings {
        /// The path of the subscription.
        var path: String
        /// At most so many commands at once.
        var slots: Int
        var command: [String]
        /// Whether the commands' output gets the wake's id on each line, or goes where ours goes as it is.
        var isOutputLogged: Bool
        /// Devices whose conditions are those of this machine.
        var reportedDevices: [String]
        /// Below which folder the state of the machine is read.
        var systemRoot: String
    }

    /// A command that runs.
    struct Job {
        var process: CommandProcess
        let wake: String
        /// One for each of `CommandProcess.outputEnds`.
        var lines: [OutputLines]
        /// When SIGKILL is due, once the command was told to stop.
        var killAt: Int64?
    }

    /// A result that the gateway has not acknowledged.
    struct Report {
        let wake: String
        let result: WakeResult
        var backoff = Backoff()
        /// When to send it; nil while it is on its way.
        var sendAt: Int64? = 0
    }

    static let killDelayMilliseconds: Int64 = 2000
    /// Silence after which the stream is given up: three keep-alives are missing.
    private static let silenceMilliseconds: Int64 = 50_000
    /// How long results are tried to be delivered after everything has ended.
    private static let farewellMilliseconds: Int64 = 10_000
    /// How long our own output may take at the end.
    private static let outputMilliseconds: Int64 = 2000

    let location: GatewayLocation
    let settings: Settings
    let client: HTTPClient
    let commandGuard: CommandGuard
    private let signals: Int32
    private var generator = SystemRandomNumberGenerator()

    private var stream: HTTPRequestID?
    private var parser = ServerSentEventParser()
    private var head: HTTPResponse?
    private var refusal: [UInt8] = []
    private var heardAt: Int64 = 0
    private var backoff = Backoff()
    private var subscribeAt: Int64? = 0

    var jobs: [Int32: Job] = [:]
    /// Wakes for which there is no slot yet: commands of an earlier stream may still be ending.
    var waiting: [WakeEvent] = []
    private var reports: [Report] = []
    private var sending: [HTTPRequestID: String] = [:]
    private var stopAt: Int64?
    /// When the last command ended.
    var lastEndAt: Int64 = 0
    /// The request for no more wakes, while it is on its way.
    private var drain: HTTPRequestID?

    /// Our standard output and error, as the commands' outputs go to them.
    var logs = [OutputLog(STDOUT_FILENO), OutputLog(STDERR_FILENO)]
    var buffer = [UInt8](repeating: 0, count: 65_536)
    private var conditions: ConditionsDuty?

    init(location: GatewayLocation, settings: Settings) throws(CommandFailure) {
        self.location = location
        self.settings = settings
        // Before there is anything that it should not inherit.
        self.commandGuard = try CommandGuard()
        self.client = try location.client()
        guard let signals = SignalPipe.open([SIGCHLD, SIGTERM, SIGINT]) else {
            throw CommandFailure(.failed, "no pipe can be made: \(StateFolder.reason(errno))")
        }
        self.signals = signals
        if !settings.reportedDevices.isEmpty {
            self.conditions = ConditionsDuty(devices: settings.reportedDevices, root: settings.systemRoot)
        }
    }

    /// Handles wakes until a signal says to stop, or the gateway refuses the subscription.
    func run() throws(CommandFailure) -> Int32 {
        defer { self.writeLogs() }
        while true {
            let now = Monotonic.milliseconds
            if let stopAt = self.stopAt, self.jobs.isEmpty, self.waiting.isEmpty {
                let isDone = self.reports.isEmpty && self.drain == nil
                // A result that cannot be delivered is the gateway's loss, and it retries the push.
                if isDone || now > max(stopAt, self.lastEndAt) + Self.farewellMilliseconds { return 0 }
            }
            try self.act(now)
            let events = self.client.poll(timeoutMilliseconds: self.wait(now), descriptors: self.descriptors)
            for event in events { try self.take(event) }
            for signal in SignalPipe.read(self.signals) where signal != SIGCHLD { try self.stopRequested() }
            for pid in self.jobs.keys { self.exchange(with: pid) }
            while let pid = CommandProcess.ended() { try self.childEnded(pid) }
            for index in self.logs.indices { self.logs[index].write() }
        }
    }

    /// Whether wakes are taken: not after we were asked to stop, but for those that the gateway sent before it knew.
    var takesWakes: Bool { self.stopAt == nil || self.drain != nil }

    /// Writes a line of our own to standard error.
    func log(_ line: String) { self.logs[1].appendOwn("wakegate: \(line)") }

    private var descriptors: [PollDescriptor] {
        var descriptors = [PollDescriptor(self.signals, .readable)]
        for job in self.jobs.values {
            if let input = job.process.input { descriptors.append(PollDescriptor(input, .writable)) }
            for end in CommandProcess.outputEnds {
                if let output = job.process[keyPath: end] { descriptors.append(PollDescriptor(output, .readable)) }
            }
        }
        for log in self.logs where !log.queue.isEmpty { descriptors.append(PollDescriptor(log.descriptor, .writable)) }
        descriptors += self.conditions?.descriptors.map { PollDescriptor($0, .readable) } ?? []
        return descriptors
    }

    /// Milliseconds until the next thing that time alone brings.
    private func wait(_ now: Int64) -> Int {
        var next = now + 5000
        for time in self.jobs.values.compactMap(\.killAt) { next = min(next, time) }
        for time in self.reports.compactMap(\.sendAt) { next = min(next, time) }
        if let subscribeAt = self.subscribeAt { next = min(next, subscribeAt) }
        if self.stream != nil { next = min(next, self.heardAt + Self.silenceMilliseconds) }
        if let conditions = self.conditions { next = min(next, conditions.nextAt) }
        return Int(max(0, next - now))
    }

    /// Writes what is left of our output, for as long as somebody reads it.
    private func writeLogs() {
        let limit = Monotonic.milliseconds + Self.outputMilliseconds
        for index in self.logs.indices {
            self.logs[index].write()
            while !self.logs[index].queue.isEmpty, Monotonic.milliseconds < limit {
                let output = PollDescriptor(self.logs[index].descriptor, .writable)
                _ = self.client.poll(timeoutMilliseconds: 100, descriptors: [output])
                self.logs[index].write()
            }
        }
    }
}

// MARK: - Time

extension Worker {
    private func act(_ now: Int64) throws(CommandFailure) {
        for (pid, job) in self.jobs {
            guard let killAt = job.killAt, killAt <= now else { continue }
            job.process.signal(SIGKILL)
            self.jobs[pid]?.killAt = nil
        }
        if let stream = self.stream, now >= self.heardAt + Self.silenceMilliseconds {
            self.client.cancel(stream)
            self.streamEnded("the gateway has been silent for \(Self.silenceMilliseconds / 1000) s")
        }
        if let subscribeAt = self.subscribeAt, subscribeAt <= now, self.stopAt == nil { try self.subscribe(now) }
        for index in self.reports.indices {
            guard let sendAt = self.reports[index].sendAt, sendAt <= now else { continue }
            let report = self.reports[index]
            let body = Array("{\"result\":\"\(report.result.rawValue)\"}".utf8)
            let request = self.location.request("POST", "/v1/wakes/\(URLPath.component(report.wake))", body: body)
            self.sending[try self.start(request)] = report.wake
            self.reports[index].sendAt = nil
        }
        try self.reportConditions(now)
    }

    private func subscribe(_ now: Int64) throws(CommandFailure) {
        var request = self.location.request("GET", self.settings.path)
        request.headers.append(("accept", "text/event-stream"))
        request.timeoutMilliseconds = nil
        request.isStreaming = true
        self.parser = ServerSentEventParser()
        self.head = nil
        self.refusal = []
        self.heardAt = now
        self.subscribeAt = nil
        self.stream = try self.start(request)
    }

    private func start(_ request: HTTPRequest) throws(CommandFailure) -> HTTPRequestID {
        do throws(HTTPClientError) {
            return try self.client.start(request)
        } catch {
            throw self.location.failure(error)
        }
    }

    private func stopRequested() throws(CommandFailure) {
        if self.stopAt != nil {
            // Asked twice: the commands are asked, too.
            for pid in self.jobs.keys { self.stop(pid) }
            return
        }
        self.stopAt = Monotonic.milliseconds
        self.subscribeAt = nil
        self.conditions = nil
        if self.stream != nil, let name = self.head?.header("wakegate-stream") {
            let path = "/v1/streams/\(URLPath.component(name))/drain"
            self.drain = try self.start(self.location.request("POST", path, body: []))
        } else {
            self.waiting.removeAll()
        }
        self.log("stopping; \(self.jobs.count) running commands may end")
    }
}

// MARK: - The gateway

extension Worker {
    private func take(_ event: HTTPEvent) throws(CommandFailure) {
        switch event {
        case .head(let id, let response):
            guard id == self.stream else { return }
            self.head = response
            self.heardAt = Monotonic.milliseconds
            guard response.status == 200 else { return }
            self.backoff.succeeded()
            self.conditions?.connected(now: self.heardAt)
            self.log("subscribed at \(self.location.url)")
        case .body(let id, let bytes):
            guard id == self.stream else { return }
            self.heardAt = Monotonic.milliseconds
            try self.received(bytes, id)
        case .ended(let id, let result):
            if id == self.stream { return try self.streamEnded(result) }
            if id == self.drain {
                self.drain = nil
                return
            }
            if let wake = self.sending.removeValue(forKey: id) { return self.reportEnded(wake, result) }
            let now = Monotonic.milliseconds
            if let refusal = self.conditions?.requestEnded(id, result, now: now) { self.log(refusal) }
        }
    }

    private func received(_ bytes: [UInt8], _ id: HTTPRequestID) throws(CommandFailure) {
        guard self.head?.status == 200 else {
            // An error's body is short; a longer one is cut.
            self.refusal += bytes.prefix(max(0, 1 << 16 - self.refusal.count))
            return
        }
        do throws(ServerSentEventParser.EventTooLarge) {
            for event in try self.parser.received(bytes) { self.take(event) }
        } catch {
            self.client.cancel(id)
            self.streamEnded("the gateway sent an event of more than \(error.bytesMax) bytes")
        }
    }

    private func take(_ event: ServerSentEvent) {
        switch event.name {
        case "wake":
            guard let wake = WakeEvent(event.data) else {
                return self.log("a wake that cannot be read was left alone; see the gateway's version")
            }
            self.wakeReceived(wake)
        case "expired":
            guard let wake = WakeEvent.expiredWake(event.data) else { return }
            self.wakeExpired(wake)
        default: break
        }
    }

    private func streamEnded(_ result: Result<HTTPResponse, HTTPClientError>) throws(CommandFailure) {
        switch result {
        case .success(let response):
            guard response.status != 200 else { return self.streamEnded("the gateway has ended the stream") }
            var response = response
            response.body = self.refusal
            let text = GatewayAnswer.refusal(response)
            // Another try would get the same answer, but for 429.
            guard response.status >= 500 || response.status == 429 else { throw CommandFailure(.failed, text) }
            self.streamEnded(text)
        case .failure(let error):
            switch error.code {
            case .untrusted, .badCredentials, .badRequest, .unavailable, .refusedAddress:
                throw self.location.failure(error)
            case .unreachable, .timedOut, .broken, .tooLarge, .cancelled:
                self.streamEnded(self.location.explain(error))
            }
        }
    }

    /// The stream is gone, and with it its unanswered wakes: they launch again elsewhere, so their commands stop.
    private func streamEnded(_ reason: String) {
        self.stream = nil
        self.waiting.removeAll()
        self.conditions?.disconnected()
        for pid in self.jobs.keys { self.stop(pid) }
        guard self.stopAt == nil else { return }
        let wait = self.backoff.failed(using: &self.generator)
        self.subscribeAt = Monotonic.milliseconds + Int64(wait)
        self.log("\(reason); subscribing again in \(wait) ms")
    }
}

// MARK: - Results

extension Worker {
    /// A result that is delivered as soon as it can be.
    func report(_ result: WakeResult, of wake: String) {
        self.reports.append(Report(wake: wake, result: result))
    }

    private func reportEnded(_ wake: String, _ result: Result<HTTPResponse, HTTPClientError>) {
        guard let index = self.reports.firstIndex(where: { $0.wake == wake }) else { return }
        if case .success(let response) = result, response.status < 500, response.status != 429 {
            self.reports.remove(at: index)
            // 409: the wake has ended another way, which its log line told already.
            if !response.isSuccess, response.status != 409 {
                self.log("the result of wake \(wake): \(GatewayAnswer.refusal(response))")
            }
            return
        }
        let wait = self.reports[index].backoff.failed(using: &self.generator)
        self.reports[index].sendAt = Monotonic.milliseconds + Int64(wait)
    }
}

// MARK: - Conditions

extension Worker {
    private func reportConditions(_ now: Int64) throws(CommandFailure) {
        for (device, body) in self.conditions?.due(now: now) ?? [] {
            let path = "/v1/devices/\(URLPath.component(device))/conditions"
            let request = self.location.request("PATCH", path, body: Array(body.utf8))
            self.conditions?.sent(device, as: try self.start(request))
        }
    }
}
