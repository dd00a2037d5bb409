import Glibc
import HTTPClient
import Platform
package import Wire

/// The end of a task. It determines the exit status of a waiting command.
package enum TaskEnding: Hashable, Sendable {
    case success, failure, expired, cancelled, interrupted
    /// The task was replaced or dropped and did not complete. The value is the reason.
    case dropped(String)

    /// The exit status if a second Control-C ends the wait. Shells use the same value.
    package static let abandonedStatus: Int32 = 130

    package var exitStatus: Int32 {
        switch self {
        case .success: 0
        case .failure: 3
        case .expired: 4
        case .cancelled: 5
        case .interrupted: 6
        case .dropped: 7
        }
    }

    /// The ending as one word.
    package var name: String {
        if case .dropped(let reason) = self { reason } else { "\(self)" }
    }

    /// Reads the ending from a result or discard event; nil for other events.
    fileprivate init?(_ event: JSONValue) {
        guard let detail = event["detail"]?.text else { return nil }
        switch (event["event"]?.text, detail) {
        case ("result", "success"): self = .success
        case ("result", "failure"): self = .failure
        case ("result", "expired"): self = .expired
        case ("result", "cancelled"), ("discard", "cancelled"): self = .cancelled
        case ("result", "interrupted"): self = .interrupted
        case ("discard", _): self = .dropped(detail)
        default: return nil
        }
    }
}

/// Follows one request in the gateway's explanations of the device until it ends. A pure state machine.
package struct TaskWait: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case waiting(TaskStatus)
        case running(TaskStatus)
        case ended(TaskEnding)
        /// The request no longer exists, and the device's recent events do not contain its end.
        case gone
    }

    /// The tolerance for times, in milliseconds. A restarted gateway reads its clocks again, and may report slightly
    /// different times.
    private static let clockSlack = 1000.0

    private let identifier: String
    /// The submission time in the first answer that contains the request; nil before this answer. It identifies the
    /// request's events.
    private var firstSubmittedAt: Double?
    /// The submission time in the last answer that contains the request.
    private var submittedAt: Double?
    /// The registration time of the device in the same answer. If the gateway's clock steps, both times move.
    private var registeredAt: Double?
    private var wasRunning = false

    /// - Parameter identifier: the identifier of a submitted request for a continued task.
    package init(_ identifier: String) {
        self.identifier = identifier
    }

    /// Processes an answer of `/v1/devices/<token>`, and returns the state of the request.
    package mutating func take(_ device: JSONValue) -> State {
        let tasks = TaskStatus.list(device["tasks"] ?? .null, kind: "continued").filter {
            $0.key.name == self.identifier
        }
        let registeredAt = device["registeredAt"]?.number
        let clockStep = registeredAt.flatMap { now in self.registeredAt.map { now - $0 } } ?? 0
        func distance(_ task: TaskStatus, from own: Double) -> Double {
            let difference = task.key.submittedAt - own
            return min(abs(difference), abs(difference - clockStep))
        }
        // If the submission time is not known yet, the newest task is the submitted request.
        let mine =
            self.submittedAt.map { own in
                tasks.min { distance($0, from: own) < distance($1, from: own) }
                    .flatMap { distance($0, from: own) <= Self.clockSlack ? $0 : nil }
            } ?? tasks.max { $0.key.submittedAt < $1.key.submittedAt }
        if let mine {
            self.firstSubmittedAt = self.firstSubmittedAt ?? mine.key.submittedAt
            self.submittedAt = mine.key.submittedAt
            self.registeredAt = registeredAt
            self.wasRunning = mine.isRunning
            return mine.isRunning ? .running(mine) : .waiting(mine)
        }
        return self.ending(device["recent"]?.elements ?? []).map { .ended($0) } ?? .gone
    }

    /// Returns the ending of the request, according to the device's events.
    ///
    /// - Parameter events: the device's events, newest first.
    /// - Returns: the ending; nil if the events do not contain it.
    package func ending(_ events: [JSONValue]) -> TaskEnding? {
        let own = events.filter { $0["task"]?.text == self.identifier && $0["kind"]?.text == "continued" }
        func moment(_ index: Int) -> Double { own[index]["at"]?.number ?? 0 }
        let submissions = own.indices.filter { own[$0]["event"]?.text == "submit" }
        // If the submission time is unknown, the last submission counts.
        let first = self.firstSubmittedAt ?? submissions.first.map(moment) ?? 0
        let nearest = submissions.min { abs(moment($0) - first) < abs(moment($1) - first) }
        let submission = nearest.flatMap { abs(moment($0) - first) <= Self.clockSlack ? $0 : nil }
        // The events after the submission are in order, even if the gateway's clock has stepped.
        let since = submission.map { own[..<$0] } ?? own.prefix { ($0["at"]?.number ?? 0) >= self.submittedAt ?? first }
        var isRunning = submission == nil && self.wasRunning
        for event in since.reversed() {
            switch (event["event"]?.text, event["detail"]?.text) {
            case ("launch", _): isRunning = true
            case ("result", "lost"): isRunning = false
            case ("result", _) where isRunning: return TaskEnding(event)
            // While this request runs, the following events belong to later requests.
            case ("submit", _) where !isRunning: return .dropped("replaced")
            case ("discard", _) where !isRunning: return TaskEnding(event)
            default: break
            }
        }
        return nil
    }
}

/// A session of `wakegate task submit --wait`. It shows the progress of the task until the task ends. A signal cancels
/// the task.
struct TaskWaitSession {
    /// The state of the cancellation.
    private enum Cancellation {
        case unwanted
        /// The cancellation must be sent when the gateway answers again.
        case wanted
        case taken
    }

    /// The interval between two requests, in milliseconds.
    private static let interval: Int64 = 500

    private let location: GatewayLocation
    private let device: String
    private let identifier: String
    private let isJSON: Bool
    private let connection: WatchConnection
    private let signals: Int32
    private var wait: TaskWait
    private var pace = RateMeter()
    /// The last state of the task.
    private var last: TaskStatus?
    /// The last line written, if the output is not a terminal.
    private var written = ""
    private var cancellation = Cancellation.unwanted
    private var wasLost = false
    /// True if the next line must replace the displayed line.
    private var isDrawn = false

    /// - Parameters:
    ///   - location: the location of the gateway.
    ///   - device: the device token, as on the command line.
    ///   - identifier: the identifier of the task.
    ///   - isJSON: true to write only a JSON object when the task ends.
    init(
        _ location: GatewayLocation,
        device: String,
        identifier: String,
        isJSON: Bool
    ) throws(CommandFailure) {
        self.location = location
        self.device = device
        self.identifier = identifier
        self.isJSON = isJSON
        self.connection = try WatchConnection(
            .poll("/v1/devices/\(URLPath.component(device))", interval: Self.interval),
            location,
            // A failure that a retry cannot help then ends the command.
            relocate: { () throws(CommandFailure) in location },
            // The gateway has answered the submission. If it is unreachable now, the command waits for it.
            hasAnswered: true
        )
        self.signals = try WatchConnection.pipe(of: [SIGINT, SIGTERM, SIGWINCH])
        self.wait = TaskWait(identifier)
    }

    /// Waits for the end of the task.
    ///
    /// - Returns: the ending of the task; nil if a second signal arrived first.
    /// - Throws: `CommandFailure` if the gateway refuses the request, or if the task has disappeared without an event
    ///   about its end.
    mutating func run() throws(CommandFailure) -> TaskEnding? {
        defer { self.finishLine() }
        var state: TaskWait.State?
        while true {
            for news in try self.connection.next([self.signals]) {
                switch news {
                case .past, .opened: break
                case .event(_, let answer):
                    self.wasLost = false
                    state = self.wait.take(answer)
                case .lost(let cause, _):
                    if !self.wasLost { self.tell("the gateway does not answer, and is asked again: \(cause)") }
                    self.wasLost = true
                }
                if let ending = try self.ending(state) {
                    // The last progress may have been reported after the last request, so the completed state is shown.
                    if ending == .success, self.isDrawn, let last = self.last { self.draw(last.finished) }
                    return ending
                }
                self.show(state)
                if case .event = news, self.cancellation == .wanted { try self.cancel() }
            }
            for signal in SignalPipe.read(self.signals) {
                switch signal {
                case SIGINT, SIGTERM:
                    guard self.cancellation == .unwanted else { return nil }
                    self.cancellation = .wanted
                    self.tell("the task is being cancelled; once more ends this command without waiting for it")
                    try self.cancel()
                case SIGWINCH: self.show(state)
                default: break
                }
            }
        }
    }

    /// Returns the ending of the task; nil while it has not ended.
    private func ending(_ state: TaskWait.State?) throws(CommandFailure) -> TaskEnding? {
        switch state {
        case .waiting, .running, nil: return nil
        case .ended(let ending): return ending
        case .gone:
            // More recent events may have displaced the task's events from the answer, so all events of tasks are
            // requested.
            let path = "/v1/devices/\(URLPath.component(self.device))/events?kind=task"
            let answer = try self.location.answer(self.location.request("GET", path), with: self.location.client())
            let events = try GatewayAnswer.object(answer)["events"]?.elements ?? []
            guard let ending = self.wait.ending(events) else {
                throw .failed(
                    "the task waits and runs no more, and the device's events do not say how it ended; see "
                        + "`wakegate stats --device \(ShellText.quoted(self.device))`"
                )
            }
            return ending
        }
    }

    /// Requests the cancellation of the task. The session then still waits for the task's end.
    private mutating func cancel() throws(CommandFailure) {
        let path = "/v1/devices/\(URLPath.component(self.device))/tasks/\(URLPath.component(self.identifier))"
        // If the gateway is unreachable, shutting down or limiting requests, a later call repeats the request. The task
        // would otherwise run or launch again.
        let request = self.location.request("DELETE", path)
        guard let answer = try? self.location.answer(request, with: self.location.client()), !answer.isPassing
        else { return }
        try GatewayAnswer.check(answer)
        self.cancellation = .taken
    }

    // MARK: Display

    private mutating func show(_ state: TaskWait.State?) {
        guard !self.isJSON else { return }
        switch state {
        case .running(let status):
            self.last = status
            self.pace.saw(status.progress?.completed ?? 0, at: SystemClock.monotonic)
            if Console.isTerminal { self.draw(status) } else { self.write(Self.line(status)) }
        case .waiting(let status):
            self.pace = RateMeter()
            if Console.isTerminal {
                self.draw(StyledLine("\(Self.texts(status))  \(status.remark)"))
            } else {
                self.write("waiting  \(status.remark)")
            }
        case .ended, .gone, nil: break
        }
    }

    /// Returns a line such as `running  40 %  40 of 100  Exporting: film 3`.
    private static func line(_ status: TaskStatus) -> String {
        "running  \(ProgressBar.counts(status))  \(self.texts(status))"
    }

    private static func texts(_ status: TaskStatus) -> String {
        status.subtitle.isEmpty ? status.title : "\(status.title): \(status.subtitle)"
    }

    private mutating func write(_ line: String) {
        guard line != self.written else { return }
        self.written = line
        Console.out("\(TerminalText.sanitized(line))\n")
    }

    /// Draws a progress line. In a wide terminal, the texts precede the bar and occupy at most a third of the line.
    private mutating func draw(_ status: TaskStatus) {
        let width = Terminal.currentSize.width
        let room = width / 3
        var line = StyledLine()
        if room >= ProgressBar.widths.lowerBound {
            let texts = Self.texts(status)
            line.append(texts.count > room ? "\(texts.prefix(room - 1))…" : texts, .strong)
            line.append("  ")
        }
        let bar = ProgressBar.line(status, self.pace, width: width - 1 - line.count, now: SystemClock.wall)
        line.append(bar)
        self.draw(line)
    }

    /// Draws a line over the displayed line, with line wrapping disabled.
    private mutating func draw(_ line: StyledLine) {
        let width = max(1, Terminal.currentSize.width - 1)
        let text = line.text(width: width, isColoured: Console.isColoured)
        Console.draw("\(self.isDrawn ? "" : "\u{1B}[?7l")\r\(text)\u{1B}[K")
        self.isDrawn = true
    }

    /// Moves below the displayed line, which remains visible.
    private mutating func finishLine() {
        guard self.isDrawn else { return }
        self.isDrawn = false
        Console.draw("\u{1B}[?7h\r\n")
    }

    private mutating func tell(_ message: String) {
        self.finishLine()
        Console.error("wakegate: \(message)")
    }
}
