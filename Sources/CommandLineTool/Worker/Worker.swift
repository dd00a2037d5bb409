import Glibc
import HTTPClient

/// A subscription to the wakes of a topic, and the commands that handle them; one thread, one place to wait.
final class Worker {
    /// A command that runs.
    private struct Job {
        var child: ChildProcess
        let wake: String
        /// When SIGKILL is due, once the command was told to stop.
        var killAt: Int64?
    }

    /// A result that the gateway has not acknowledged.
    private struct Report {
        let wake: String
        let result: WakeResult
        var backoff = Backoff()
        /// When to send it; nil while it is on its way.
        var sendAt: Int64? = 0
    }

    private static let killDelayMilliseconds: Int64 = 2000
    /// Silence after which the stream is given up: three keep-alives are missing.
    private static let silenceMilliseconds: Int64 = 50_000
    /// How long results are tried to be delivered after everything has ended.
    private static let farewellMilliseconds: Int64 = 10_000

    private let location: GatewayLocation
    private let path: String
    private let slots: Int
    private let command: [String]
    private let client: HTTPClient
    private let signals: Int32
    private var generator = SystemRandomNumberGenerator()

    private var stream: HTTPRequestID?
    private var parser = ServerSentEventParser()
    private var head: HTTPResponse?
    private var refusal: [UInt8] = []
    private var heardAt: Int64 = 0
    private var backoff = Backoff()
    private var subscribeAt: Int64? = 0

    private var jobs: [Int32: Job] = [:]
    private var reports: [Report] = []
    private var sending: [HTTPRequestID: String] = [:]
    private var stopAt: Int64?

    init(location: GatewayLocation, path: String, slots: Int, command: [String]) throws(CommandFailure) {
        self.location = location
        self.path = path
        self.slots = slots
        self.command = command
        self.client = try location.client()
        guard let signals = SignalPipe.open([SIGCHLD, SIGTERM, SIGINT]) else {
            throw CommandFailure(.failed, "no pipe can be made: \(StateFolder.reason(errno))")
        }
        self.signals = signals
    }

    /// Handles wakes until a signal says to stop.
    func run() throws(CommandFailure) -> Int32 {
        while true {
            let now = Monotonic.milliseconds
            if let stopAt = self.stopAt, self.jobs.isEmpty {
                // A result that cannot be delivered is the gateway's loss, and it retries the push.
                if self.reports.isEmpty || now > stopAt + Self.farewellMilliseconds { return 0 }
            }
            try self.act(now)
            let events = self.client.poll(timeoutMilliseconds: self.wait(now), descriptors: self.descriptors)
            for event in events { try self.take(event) }
            for signal in SignalPipe.read(self.signals) where signal != SIGCHLD { self.stopRequested() }
            for (pid, exitStatus) in ChildProcess.ended() { self.childEnded(pid, exitStatus: exitStatus) }
            for pid in self.jobs.keys { self.jobs[pid]?.child.writeInput() }
        }
    }

    private var descriptors: [PollDescriptor] {
        [PollDescriptor(self.signals, .readable)]
            + self.jobs.values.compactMap { job in job.child.input.map { PollDescriptor($0, .writable) } }
    }

    /// Milliseconds until the next thing that time alone brings.
    private func wait(_ now: Int64) -> Int {
        var next = now + 5000
        for time in self.jobs.values.compactMap(\.killAt) { next = min(next, time) }
        for time in self.reports.compactMap(\.sendAt) { next = min(next, time) }
        if let subscribeAt = self.subscribeAt { next = min(next, subscribeAt) }
        if self.stream != nil { next = min(next, self.heardAt + Self.silenceMilliseconds) }
        return Int(max(0, next - now))
    }
}

// MARK: - Time

extension Worker {
    private func act(_ now: Int64) throws(CommandFailure) {
        for (pid, job) in self.jobs {
            guard let killAt = job.killAt, killAt <= now else { continue }
            job.child.signal(SIGKILL)
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
    }

    private func subscribe(_ now: Int64) throws(CommandFailure) {
        var request = self.location.request("GET", self.path)
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

    private func stopRequested() {
        if self.stopAt != nil {
            // Asked twice: the commands are asked, too.
            for pid in self.jobs.keys { self.stop(pid) }
            return
        }
        self.stopAt = Monotonic.milliseconds
        self.subscribeAt = nil
        Console.error("wakegate: stopping; \(self.jobs.count) running commands may end")
    }

    /// SIGTERM now, SIGKILL after a while.
    private func stop(_ pid: Int32) {
        guard let job = self.jobs[pid], job.killAt == nil else { return }
        job.child.signal(SIGTERM)
        self.jobs[pid]?.killAt = Monotonic.milliseconds + Self.killDelayMilliseconds
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
            Console.error("wakegate: subscribed at \(self.location.url)")
        case .body(let id, let bytes):
            guard id == self.stream else { return }
            self.heardAt = Monotonic.milliseconds
            try self.received(bytes, id)
        case .ended(let id, let result):
            if id == self.stream { return try self.streamEnded(result) }
            if let wake = self.sending.removeValue(forKey: id) { self.reportEnded(wake, result) }
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
                return Console.error("wakegate: a wake that cannot be read was left alone; see the gateway's version")
            }
            self.wakeReceived(wake)
        case "expired":
            guard let wake = WakeEvent.expiredWake(event.data) else { return }
            for (pid, job) in self.jobs where job.wake == wake {
                Console.error("wakegate: wake \(wake) has expired; its command is told to stop")
                self.stop(pid)
            }
        default: break
        }
    }

    private func wakeReceived(_ wake: WakeEvent) {
        // Wakes that are not started end as lost with the stream, and launch elsewhere.
        guard self.stopAt == nil else { return }
        guard let child = ChildProcess(self.command, environment: wake.environment, input: wake.payload) else {
            Console.error("wakegate: \(self.command[0]) cannot be started: \(StateFolder.reason(errno))")
            return self.reports.append(Report(wake: wake.wake, result: .failed))
        }
        self.jobs[child.pid] = Job(child: child, wake: wake.wake)
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
        for pid in self.jobs.keys { self.stop(pid) }
        guard self.stopAt == nil else { return }
        let wait = self.backoff.failed(using: &self.generator)
        self.subscribeAt = Monotonic.milliseconds + Int64(wait)
        Console.error("wakegate: \(reason); subscribing again in \(wait) ms")
    }
}

// MARK: - Results

extension Worker {
    private func childEnded(_ pid: Int32, exitStatus: Int32?) {
        guard var job = self.jobs.removeValue(forKey: pid) else { return }
        // What the command left running in its group has no wake to work for.
        job.child.signal(SIGKILL)
        job.child.closeInput()
        let result = WakeResult(exitStatus: exitStatus)
        if result == .failed {
            let how = exitStatus.map { "exit status \($0)" } ?? "a signal"
            Console.error("wakegate: the command of wake \(job.wake) ended with \(how)")
        }
        self.reports.append(Report(wake: job.wake, result: result))
    }

    private func reportEnded(_ wake: String, _ result: Result<HTTPResponse, HTTPClientError>) {
        guard let index = self.reports.firstIndex(where: { $0.wake == wake }) else { return }
        if case .success(let response) = result, response.status < 500, response.status != 429 {
            self.reports.remove(at: index)
            // 409: the wake has ended another way, which its log line told already.
            if !response.isSuccess, response.status != 409 {
                Console.error("wakegate: the result of wake \(wake): \(GatewayAnswer.refusal(response))")
            }
            return
        }
        let wait = self.reports[index].backoff.failed(using: &self.generator)
        self.reports[index].sendAt = Monotonic.milliseconds + Int64(wait)
    }
}
