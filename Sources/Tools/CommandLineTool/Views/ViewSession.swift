import FoundationEssentials
import Glibc
import Platform
import Wire

/// What a view that stays shows of the answers that come.
protocol WatchedView {
    mutating func take(_ news: WatchConnection.News)

    /// At most as many as the terminal has rows.
    func lines(_ size: Terminal.Size) -> [StyledLine]

    /// What is written about the newest answer where there is no terminal: whole lines, or nothing.
    mutating func text() -> String
}

/// A view that stays until its reader has seen enough.
struct ViewSession<View: WatchedView> {
    private let connection: WatchConnection
    private var view: View
    private let isJSON: Bool
    private var wasLost = false

    /// - `isJSON`: whether each answer is written as it is.
    init(_ view: View, _ connection: WatchConnection, isJSON: Bool) {
        self.view = view
        self.connection = connection
        self.isJSON = isJSON
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
        let isColoured = Console.isColoured
        var terminal = Terminal()
        let descriptors = terminal.hasKeys ? [signals, STDIN_FILENO] : [signals]
        while true {
            for item in news { self.view.take(item) }
            let size = terminal.size
            terminal.show(self.view.lines(size).map { $0.text(width: size.width, isColoured: isColoured) })
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

    // MARK: Lines

    /// Writes lines where there is no terminal, or what the gateway says as it is.
    private mutating func runInLines(_ signals: Int32) throws(CommandFailure) -> Int32 {
        while true {
            for news in try self.connection.next([signals]) {
                self.view.take(news)
                switch news {
                case .past: break
                case .event(_, let text):
                    let lines = self.isJSON ? text : self.view.text()
                    guard Console.out(lines, isJSON: self.isJSON, watching: signals, until: endsLines) else { return 0 }
                    self.wasLost = false
                case .lost(let cause):
                    if !self.wasLost { Console.error("the gateway does not answer, and is asked again: \(cause)") }
                    self.wasLost = true
                }
            }
            if SignalPipe.read(signals).contains(where: endsLines) { return 0 }
        }
    }
}

/// A terminal's size is nothing to lines; everything else ends them.
private func endsLines(_ signal: Int32) -> Bool { signal != SIGWINCH }

extension WatchConnection.News {
    /// What a view says of a gateway that is gone.
    static func trouble(_ cause: String) -> String { "The gateway does not answer, and is asked again: \(cause)" }
}

extension Console {
    /// Whether views have colours: https://no-color.org has a variable that takes them away, set to anything but
    /// nothing.
    static var isColoured: Bool { (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty }
}
