import Glibc
import Platform

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
