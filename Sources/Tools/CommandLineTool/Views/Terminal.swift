import FoundationEssentials
import Glibc
import Platform
import Wire

/// The terminal of a view that a person keeps open: a screen of its own, which gives back what was there before.
///
/// It is process-wide state: there is one terminal, and one view on it.
package struct Terminal: ~Copyable {
    /// Columns and rows.
    package struct Size: Hashable, Sendable {
        package let width: Int
        package let height: Int

        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    /// How standard input was set up before; nil when it is no terminal.
    private var before: termios?

    /// Shows an empty screen. Keys come at once from now on, and are not shown.
    package init() {
        self.enter()
    }

    deinit {
        self.leave()
    }

    /// The size of the screen now.
    package var size: Size { Self.currentSize }

    /// The size that the terminal of standard output has now.
    static var currentSize: Size { Self.size(of: STDOUT_FILENO) }

    /// The size that a descriptor's terminal has now; what most have where it is none.
    static func size(of descriptor: Int32) -> Size {
        var window = winsize()
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return Size(width: 80, height: 24)
        }
        return Size(width: Int(window.ws_col), height: Int(window.ws_row))
    }

    /// Shows these lines from the top, each cut to the screen's width already, and nothing else.
    package func show(_ lines: [String]) {
        // In place and in one write: a screen that is cleared first flickers.
        let rows = lines.map { "\($0)\u{1B}[K" }.joined(separator: "\r\n")
        Console.draw("\u{1B}[H\(rows)\u{1B}[J")
    }

    /// Gives the terminal back and stops the program, as Control-Z does; goes on when the shell says so.
    package mutating func suspend() {
        self.leave()
        kill(getpid(), SIGSTOP)
        self.enter()
    }

    /// The keys that were pressed since the last call; empty when standard input is no terminal.
    package func keys() -> [UInt8] {
        guard self.before != nil else { return [] }
        guard Descriptor.wait(for: STDIN_FILENO, .readable, milliseconds: 0) else { return [] }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = (try? Descriptor.read(STDIN_FILENO, into: &bytes)) ?? 0
        return Array(bytes.prefix(count))
    }

    /// Whether keys can be pressed.
    package var hasKeys: Bool { self.before != nil }

    private mutating func enter() {
        var settings = termios()
        if unsafe tcgetattr(STDIN_FILENO, &settings) == 0 {
            self.before = settings
            settings.c_lflag &= ~UInt32(ICANON | ECHO)
            unsafe tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        }
        // The alternate screen, without a cursor and without wrapping lines.
        Console.draw("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[H\u{1B}[2J")
    }

    private func leave() {
        Console.draw("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
        if var before = self.before { unsafe tcsetattr(STDIN_FILENO, TCSANOW, &before) }
    }
}

/// One line of a terminal view, in parts of different looks.
package struct StyledLine: Sendable {
    /// How a part looks.
    package enum Style: String, Sendable {
        case plain = ""
        case strong = "1"
        case faint = "2"
        case good = "32"
        case warning = "33"
        case bad = "31"
        case first = "36"
        case second = "32;1"
    }

    private var parts: [(text: String, style: Style)] = []

    package init() {}

    package init(_ text: String, _ style: Style = .plain) {
        self.append(text, style)
    }

    /// Adds text at the end; what a terminal would obey in it is shown as a question mark.
    package mutating func append(_ text: String, _ style: Style = .plain) {
        self.parts.append((TerminalText.harmless(text), style))
    }

    /// Adds another line's parts at the end.
    package mutating func append(_ line: StyledLine) { self.parts += line.parts }

    /// Adds text in a column of so many characters, at its left or right end, and a space.
    package mutating func append(column text: String, _ width: Int, _ style: Style = .plain, isNumber: Bool = false) {
        let harmless = TerminalText.harmless(text)
        let shown = harmless.count > width ? harmless.prefix(max(0, width - 1)) + "…" : Substring(harmless)
        let gap = String(repeating: " ", count: max(0, width - shown.count))
        self.parts.append((isNumber ? "\(gap)\(shown) " : "\(shown)\(gap) ", style))
    }

    /// The number of characters.
    package var count: Int { self.parts.reduce(0) { $0 + $1.text.count } }

    /// The line for a terminal, cut to `width` characters.
    package func text(width: Int, isColoured: Bool) -> String {
        var left = width
        var line = ""
        for part in self.parts where left > 0 {
            let shown = part.text.prefix(left)
            left -= shown.count
            let isStyled = isColoured && part.style != .plain
            line += isStyled ? "\u{1B}[\(part.style.rawValue)m\(shown)\u{1B}[0m" : "\(shown)"
        }
        return line
    }
}

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
