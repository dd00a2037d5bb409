import Glibc
import HTTPClient
import Platform
import Wire

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
