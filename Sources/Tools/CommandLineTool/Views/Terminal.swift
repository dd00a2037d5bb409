import FoundationEssentials
import Glibc
import HTTPClient
import Platform
import Wire

/// The terminal of a live view. It shows the alternate screen; the end of the view restores the normal one.
///
/// A process has one terminal with one view.
package struct Terminal: ~Copyable {
    /// The number of columns and rows.
    package struct Size: Hashable, Sendable {
        package let width: Int
        package let height: Int

        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }

        /// Returns the lines of a view that the screen has rows for, above a line with the key that ends the view.
        func framed(_ lines: [StyledLine]) -> [StyledLine] {
            lines.prefix(max(0, self.height - 1)) + [StyledLine("q quits", .faint)]
        }
    }

    /// The previous settings of standard input; nil if it is not a terminal.
    private var before: termios?

    /// Shows an empty screen, and makes each key available immediately and without an echo.
    package init() {
        self.enter()
    }

    deinit {
        self.leave()
    }

    /// The current size of the terminal of standard output.
    static var currentSize: Size { Self.size(of: STDOUT_FILENO) }

    /// Returns the current size of a descriptor's terminal; 80 by 24 if the descriptor is not a terminal.
    static func size(of descriptor: Int32) -> Size {
        var window = winsize()
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return Size(width: 80, height: 24)
        }
        return Size(width: Int(window.ws_col), height: Int(window.ws_row))
    }

    /// Replaces the screen's contents. The lines must fit its width.
    package func show(_ lines: [String]) {
        // Overwrites the screen with a single write, because clearing it first would cause flicker.
        let rows = lines.map { "\($0)\u{1B}[K" }.joined(separator: "\r\n")
        Console.draw("\u{1B}[H\(rows)\u{1B}[J")
    }

    /// Restores the terminal and stops the program, as Control-Z does. Returns when a shell continues the program.
    package mutating func suspend() {
        self.leave()
        kill(getpid(), SIGSTOP)
        self.enter()
    }

    /// Returns the keys pressed since the last call; empty if standard input is not a terminal.
    package func keys() -> [UInt8] {
        guard self.before != nil else { return [] }
        guard Descriptor.wait(for: STDIN_FILENO, .readable, milliseconds: 0) else { return [] }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = (try? Descriptor.read(STDIN_FILENO, into: &bytes)) ?? 0
        return Array(bytes.prefix(count))
    }

    /// True if standard input is a terminal.
    package var hasKeys: Bool { self.before != nil }

    private mutating func enter() {
        var settings = termios()
        if unsafe tcgetattr(STDIN_FILENO, &settings) == 0 {
            self.before = settings
            settings.c_lflag &= ~UInt32(ICANON | ECHO)
            unsafe tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        }
        // Switch to the alternate screen, and disable the cursor and line wrapping.
        Console.draw("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[H\u{1B}[2J")
    }

    private func leave() {
        Console.draw("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
        if var before = self.before { unsafe tcsetattr(STDIN_FILENO, TCSANOW, &before) }
    }
}

/// A line of a terminal view, with parts in different styles.
package struct StyledLine: Sendable {
    /// The style of a part. The raw value is an SGR parameter.
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

    /// Appends text. Control characters are replaced with question marks.
    package mutating func append(_ text: String, _ style: Style = .plain) {
        self.parts.append((TerminalText.sanitized(text), style))
    }

    /// Appends the parts of another line.
    package mutating func append(_ line: StyledLine) { self.parts += line.parts }

    /// Appends text in a column of `width` characters and a space. Text is left-aligned, and a number right-aligned.
    package mutating func append(column text: String, _ width: Int, _ style: Style = .plain, isNumber: Bool = false) {
        let sanitized = TerminalText.sanitized(text)
        let shown = sanitized.count > width ? sanitized.prefix(max(0, width - 1)) + "…" : Substring(sanitized)
        let gap = String(repeating: " ", count: max(0, width - shown.count))
        self.parts.append((isNumber ? "\(gap)\(shown) " : "\(shown)\(gap) ", style))
    }

    /// The number of characters.
    package var count: Int { self.parts.reduce(0) { $0 + $1.text.count } }

    /// Returns the line for a terminal, truncated to `width` characters.
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

/// A live view of a gateway's answers.
protocol WatchedView {
    mutating func take(_ news: WatchConnection.News)

    /// Returns the lines to draw, no more than the terminal has rows.
    func lines(_ size: Terminal.Size) -> [StyledLine]

    /// Returns text about the newest answer, for output that is not a terminal. The text consists of whole lines and
    /// may be empty.
    mutating func text() -> String
}

/// A live view that runs until a person ends it.
struct ViewSession<View: WatchedView> {
    private let connection: WatchConnection
    private var view: View
    private let isJSON: Bool
    private var wasLost = false

    /// - `isJSON`: true to print each answer unchanged.
    init(_ view: View, _ connection: WatchConnection, isJSON: Bool) {
        self.view = view
        self.connection = connection
        self.isJSON = isJSON
    }

    /// Runs until SIGINT, SIGTERM or a key ends the view.
    ///
    /// - Returns: the exit status.
    /// - Throws: `CommandFailure` if the gateway refuses the request or was never reachable.
    mutating func run() throws(CommandFailure) -> Int32 {
        let isScreen = Console.isTerminal && !self.isJSON
        // Without a screen to restore, Control-Z and a closed terminal have their usual effects, also under `nohup`.
        let watched = [SIGINT, SIGTERM] + (isScreen ? [SIGHUP, SIGWINCH, SIGTSTP] : [])
        let signals = try WatchConnection.pipe(of: watched)
        guard isScreen else { return try self.runInLines(signals) }
        // Waits for the first event before it switches screens. An error then appears on the normal screen.
        var news = try self.firstNews(signals)
        guard !news.isEmpty else { return 0 }
        let isColoured = Console.isColoured
        var terminal = Terminal()
        let descriptors = terminal.hasKeys ? [signals, STDIN_FILENO] : [signals]
        while true {
            for item in news { self.view.take(item) }
            let size = Terminal.currentSize
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

    /// Waits for the first event. Returns an empty array if a signal arrives first.
    private func firstNews(_ signals: Int32) throws(CommandFailure) -> [WatchConnection.News] {
        var news: [WatchConnection.News] = []
        while true {
            news += try self.connection.next([signals])
            for signal in SignalPipe.read(signals) where signal != SIGWINCH {
                guard signal == SIGTSTP else { return [] }
                kill(getpid(), SIGSTOP)
            }
            for case .event in news { return news }
        }
    }

    /// Prints lines of text or, for JSON, the gateway's unchanged answers.
    private mutating func runInLines(_ signals: Int32) throws(CommandFailure) -> Int32 {
        try self.connection.follow(signals, isJSON: self.isJSON) { news in
            self.view.take(news)
            switch news {
            case .past, .opened: return nil
            case .event(let event, _):
                self.wasLost = false
                return .output(self.isJSON ? String(decoding: event.data, as: UTF8.self) : self.view.text())
            case .lost(let cause, _):
                defer { self.wasLost = true }
                return self.wasLost ? nil : .note("the gateway does not answer, and is asked again: \(cause)")
            }
        }
        return 0
    }
}

extension WatchConnection.News {
    /// Returns the message that a view shows while the gateway does not answer.
    static func trouble(_ cause: String) -> String { "The gateway does not answer, and is asked again: \(cause)" }
}

extension Console {
    /// True if views use colors. A nonempty environment variable NO_COLOR disables them (https://no-color.org).
    static var isColoured: Bool { (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty }
}
