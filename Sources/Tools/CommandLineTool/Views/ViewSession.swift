import Foundation
import Glibc
import HTTPClient
import Platform
import Text

/// `wakegate stats --watch`: a view that stays until its reader has seen enough.
struct WatchSession {
    private let subject: WatchSubject
    private let connection: WatchConnection
    private var model: WatchModel
    private let isJSON: Bool
    private let isColoured: Bool
    private var wasLost = false

    init(_ subject: WatchSubject, _ location: GatewayLocation, isJSON: Bool) throws(CommandFailure) {
        self.subject = subject
        self.connection = try WatchConnection(subject, location)
        let place = location.url.replacing("http://", with: "")
        let title: String
        switch subject {
        case .gateway: title = place
        case .topic(let topic): title = "\(place)  topic \(topic)"
        case .device: title = place
        }
        self.model = WatchModel(title: title)
        self.isJSON = isJSON
        // https://no-color.org: set to anything but nothing.
        self.isColoured = (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty
    }

    /// Watches until SIGINT, SIGTERM or a key ends it.
    ///
    /// - Returns: the exit status.
    /// - Throws: when the gateway refuses what is asked, or was never there.
    mutating func run() throws(CommandFailure) -> Int32 {
        guard let signals = SignalPipe.open([SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP]) else {
            throw CommandFailure(.failed, "signals cannot be watched; close some files and try again")
        }
        guard Console.isTerminal, !self.isJSON else { return try self.runInLines(signals) }
        // Whether there is anything to watch is said on the ordinary screen.
        var news = try self.firstNews(signals)
        guard !news.isEmpty else { return 0 }
        var terminal = Terminal()
        let descriptors = terminal.hasKeys ? [signals, STDIN_FILENO] : [signals]
        while true {
            for item in news { self.take(item) }
            self.draw(terminal)
            news = try self.connection.next(descriptors)
            for signal in SignalPipe.read(signals) {
                switch signal {
                case SIGWINCH: break
                case SIGTSTP: terminal.suspend()
                default: return 0
                }
            }
            for key in terminal.keys() where key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") { return 0 }
        }
    }

    /// Waits for the first event; none when a signal came before.
    private func firstNews(_ signals: Int32) throws(CommandFailure) -> [WatchConnection.News] {
        var news: [WatchConnection.News] = []
        while true {
            news += try self.connection.next([signals])
            if SignalPipe.read(signals).contains(where: { $0 != SIGWINCH }) { return [] }
            for case .event in news { return news }
        }
    }

    private mutating func take(_ news: WatchConnection.News) {
        switch news {
        case .past(let answer): self.model.past(answer)
        case .event(let event, _): self.model.take(self.event(event))
        case .lost(let cause): self.model.lost("The gateway does not answer, and is asked again: \(cause)")
        }
    }

    /// What an answer says, in the form of an event of the live stream.
    private func event(_ answer: JSONValue) -> JSONValue {
        switch self.subject {
        case .gateway, .device: answer
        case .topic:
            .object([
                JSONMember(name: "at", value: .number(JSONNumber(Self.wallMilliseconds))),
                JSONMember(name: "stats", value: answer),
            ])
        }
    }

    private static var wallMilliseconds: Double { Double(SystemClock.wall) }

    private func draw(_ terminal: borrowing Terminal) {
        let size = terminal.size
        terminal.show(self.lines(size).map { $0.text(width: size.width, isColoured: self.isColoured) })
    }

    private func lines(_ size: Terminal.Size) -> [StyledLine] {
        guard case .device = self.subject else { return WatchView(self.model, size: size).lines }
        let text = self.model.event.map { ExplainText.text($0) } ?? ""
        var lines = WrappedText.lines(text, width: size.width).map { StyledLine($0) }
        if let trouble = self.model.trouble { lines.insert(StyledLine(trouble, .bad), at: 0) }
        return Array(lines.prefix(max(0, size.height - 1))) + [StyledLine("q quits", .faint)]
    }

    // MARK: Lines

    /// Writes a line a second where there is no terminal, or what the gateway says as it is.
    private mutating func runInLines(_ signals: Int32) throws(CommandFailure) -> Int32 {
        while true {
            for news in try self.connection.next([signals]) {
                self.take(news)
                switch news {
                case .past: break
                case .event(_, let text):
                    let line = self.isJSON ? "\(text)\n" : self.lineOfEvent
                    guard Console.out(line, watching: signals, until: Self.endsLines) else { return 0 }
                    self.wasLost = false
                case .lost(let cause):
                    if !self.wasLost { Console.error("the gateway does not answer, and is asked again: \(cause)") }
                    self.wasLost = true
                }
            }
            if SignalPipe.read(signals).contains(where: Self.endsLines) { return 0 }
        }
    }

    /// A terminal's size is nothing to lines; everything else ends them.
    private static func endsLines(_ signal: Int32) -> Bool { signal != SIGWINCH }

    private var lineOfEvent: String {
        guard case .device = self.subject else {
            return "\(WatchView(self.model, size: Terminal.Size(width: 0, height: 0)).line)\n"
        }
        return self.model.event.map { "\(ExplainText.text($0))\n" } ?? ""
    }
}

/// What is watched: a gateway, one of its topics, or one device.
enum WatchSubject {
    case gateway
    case topic(String)
    case device(String)

    /// The path that is asked again and again; nil for the gateway, which tells by itself.
    var path: String? {
        switch self {
        case .gateway: nil
        case .topic(let topic): "/v1/stats/topics/\(URLPath.component(topic))"
        case .device(let token): "/v1/devices/\(URLPath.component(token))"
        }
    }
}
