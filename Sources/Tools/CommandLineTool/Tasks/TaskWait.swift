import Glibc
import HTTPClient
import Platform
package import Wire

/// How a task came to its end, for the exit status of whoever waits for it.
package enum TaskEnding: Hashable, Sendable {
    case success, failure, expired, cancelled, interrupted
    /// The task never ran to an end: another took its place, or it was dropped, for this reason.
    case dropped(String)

    /// The exit status of who did not wait for the end, after a second Control-C, as shells have it.
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

    /// One word.
    package var name: String {
        switch self {
        case .success: "success"
        case .failure: "failure"
        case .expired: "expired"
        case .cancelled: "cancelled"
        case .interrupted: "interrupted"
        case .dropped(let reason): reason
        }
    }

    /// What a result or discard says; nil for one that ends nothing.
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

/// Follows one request to its end by what the gateway explains of its device; a pure machine.
package struct TaskWait: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case waiting(TaskStatus)
        case running(TaskStatus)
        case ended(TaskEnding)
        /// The request is gone, and what happened to the device last does not say how.
        case gone
    }

    /// A gateway that starts again reads its clocks anew, and may tell a moment by so many milliseconds otherwise.
    private static let clockSlack = 1000.0

    private let identifier: String
    /// When the request was submitted by the gateway's clock as it was when the request was seen first, by which its
    /// events are known; nil before that.
    private var firstSubmittedAt: Double?
    /// The same by the clock as it was when the request was seen last.
    private var submittedAt: Double?
    /// When the device was registered, by that clock: whoever sets the clock moves both.
    private var registeredAt: Double?
    private var wasRunning = false

    /// - Parameter identifier: of a continued task's request that was submitted.
    package init(_ identifier: String) {
        self.identifier = identifier
    }

    /// Takes the answer of `/v1/devices/<token>`.
    package mutating func take(_ device: JSONValue) -> State {
        let tasks = ["running", "waiting"].flatMap { state in
            (device["tasks"]?[state]?.elements ?? []).map { TaskStatus($0, state: state) }
        }.filter { $0.key.name == self.identifier && $0.kind == "continued" }
        let registeredAt = device["registeredAt"]?.number
        let clockStep = registeredAt.flatMap { now in self.registeredAt.map { now - $0 } } ?? 0
        func distance(_ task: TaskStatus, from own: Double) -> Double {
            let difference = task.key.submittedAt - own
            return min(abs(difference), abs(difference - clockStep))
        }
        // Of two, one that runs and one that waits, the newer is the one that was submitted.
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

    /// How it ended by what happened to its device.
    ///
    /// - Parameter events: the newest first, as many as there are.
    /// - Returns: nil when they do not say so.
    package func ending(_ events: [JSONValue]) -> TaskEnding? {
        let own = events.filter { $0["task"]?.text == self.identifier && $0["kind"]?.text == "continued" }
        func moment(_ index: Int) -> Double { own[index]["at"]?.number ?? 0 }
        let submissions = own.indices.filter { own[$0]["event"]?.text == "submit" }
        // Without another word, the last submission is the one.
        let first = self.firstSubmittedAt ?? submissions.first.map(moment) ?? 0
        let nearest = submissions.min { abs(moment($0) - first) < abs(moment($1) - first) }
        let submission = nearest.flatMap { abs(moment($0) - first) <= Self.clockSlack ? $0 : nil }
        // Behind it they stand in their order, whatever the gateway's clock was set to meanwhile.
        let since = submission.map { own[..<$0] } ?? own.prefix { ($0["at"]?.number ?? 0) >= self.submittedAt ?? first }
        var isRunning = submission == nil && self.wasRunning
        for event in since.reversed() {
            switch (event["event"]?.text, event["detail"]?.text) {
            case ("launch", _): isRunning = true
            case ("result", "lost"): isRunning = false
            case ("result", _) where isRunning: return TaskEnding(event)
            // What is said of requests that wait while this one runs is said of later ones.
            case ("submit", _) where !isRunning: return .dropped("replaced")
            case ("discard", _) where !isRunning: return TaskEnding(event)
            default: break
            }
        }
        return nil
    }
}

/// `wakegate task submit --wait`: shows how far the task is until it has ended, and cancels it when it is told to stop.
struct TaskWaitSession {
    /// What has become of the wish that the task be cancelled.
    private enum Cancellation {
        case unwanted
        /// The gateway is to be told when it answers next.
        case wanted
        case taken
    }

    /// Milliseconds between two questions.
    private static let interval: Int64 = 500

    private let location: GatewayLocation
    private let device: String
    private let identifier: String
    private let isJSON: Bool
    private let connection: WatchConnection
    private let signals: Int32
    private var wait: TaskWait
    private var pace = TaskPace()
    /// How far the task was last.
    private var last: TaskStatus?
    /// What was written last where there is no terminal.
    private var written = ""
    private var cancellation = Cancellation.unwanted
    private var wasLost = false
    /// Whether a line is shown that the next one replaces.
    private var isDrawn = false

    /// - Parameters:
    ///   - location: of the gateway.
    ///   - device: the token, as the command line has it.
    ///   - identifier: of the task.
    ///   - isJSON: whether nothing but an object about the end is written.
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
            "/v1/devices/\(URLPath.component(device))",
            location,
            interval: Self.interval,
            // It is about to take the task, or has taken it.
            hasHeard: true
        )
        guard let signals = SignalPipe.open([SIGINT, SIGTERM, SIGWINCH]) else {
            throw CommandFailure(.failed, "signals cannot be watched; close some files and try again")
        }
        self.signals = signals
        self.wait = TaskWait(identifier)
    }

    /// Waits for the end.
    ///
    /// - Returns: how the task ended; nil when a second signal came before.
    /// - Throws: when the gateway refuses to say how it is, and when the task is gone without a trace.
    mutating func run() throws(CommandFailure) -> TaskEnding? {
        defer { self.finishLine() }
        var state: TaskWait.State?
        while true {
            for news in try self.connection.next([self.signals]) {
                switch news {
                case .past: break
                case .event(let answer, _):
                    self.wasLost = false
                    state = self.wait.take(answer)
                case .lost(let cause):
                    if !self.wasLost { self.tell("the gateway does not answer, and is asked again: \(cause)") }
                    self.wasLost = true
                }
                if let ending = try self.ending(state) {
                    // What was told last may have been told between two looks.
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

    /// How the task has ended; nil while it has not.
    private func ending(_ state: TaskWait.State?) throws(CommandFailure) -> TaskEnding? {
        switch state {
        case .waiting, .running, nil: return nil
        case .ended(let ending): return ending
        case .gone:
            // Much may have happened to the device since.
            let path = "/v1/devices/\(URLPath.component(self.device))/events?kind=task"
            let answer = try self.location.answer(self.location.request("GET", path), with: self.location.client())
            let events = try GatewayAnswer.object(answer)["events"]?.elements ?? []
            guard let ending = self.wait.ending(events) else {
                throw CommandFailure(
                    .failed,
                    "the task waits and runs no more, and the device's events do not say how it ended; see "
                        + "`wakegate stats --device \(ShellText.quoted(self.device))`"
                )
            }
            return ending
        }
    }

    /// Has the task cancelled, as soon as the gateway can do that; its end is waited for as before.
    private mutating func cancel() throws(CommandFailure) {
        let path = "/v1/devices/\(URLPath.component(self.device))/tasks/\(URLPath.component(self.identifier))"
        // A gateway that is gone or about to end would launch the task again when it is back, and one that is asked too
        // often has it run on.
        let request = self.location.request("DELETE", path)
        guard let answer = try? self.location.answer(request, with: self.location.client()), answer.status < 500,
            answer.status != 429
        else { return }
        try GatewayAnswer.check(answer)
        self.cancellation = .taken
    }

    // MARK: What is shown

    private mutating func show(_ state: TaskWait.State?) {
        guard !self.isJSON else { return }
        switch state {
        case .running(let status):
            self.last = status
            self.pace.saw(status.progress?.completed ?? 0, at: SystemClock.monotonic)
            if Console.isTerminal { self.draw(status) } else { self.write(Self.line(status)) }
        case .waiting(let status):
            self.pace = TaskPace()
            if Console.isTerminal {
                self.draw(StyledLine("\(Self.texts(status))  \(status.remark)"))
            } else {
                self.write("waiting  \(status.remark)")
            }
        case .ended, .gone, nil: break
        }
    }

    /// Such as `running  40 %  40 of 100  Exporting: film 3`.
    private static func line(_ status: TaskStatus) -> String {
        "running  \(ProgressBar.counts(status))  \(self.texts(status))"
    }

    private static func texts(_ status: TaskStatus) -> String {
        status.subtitle.isEmpty ? status.title : "\(status.title): \(status.subtitle)"
    }

    private mutating func write(_ line: String) {
        guard line != self.written else { return }
        self.written = line
        Console.out("\(TerminalText.harmless(line))\n")
    }

    /// Where there is room, the texts stand before the bar, and take a third of the line at most.
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

    /// In place of the line that is shown. Lines do not wrap meanwhile, so that it stays one.
    private mutating func draw(_ line: StyledLine) {
        let width = max(1, Terminal.currentSize.width - 1)
        let text = line.text(width: width, isColoured: Console.isColoured)
        Console.draw("\(self.isDrawn ? "" : "\u{1B}[?7l")\r\(text)\u{1B}[K")
        self.isDrawn = true
    }

    /// What stands on the line stays there.
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
