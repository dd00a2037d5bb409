import Wire

/// A manual page, generated from the command definitions.
package struct ManualPage: Sendable {
    /// The name of the page for `man`, such as `wakegate-push`.
    package let name: String
    package let section: Int
    /// The page in mdoc format.
    package let text: String

    package typealias KeyText = (name: String, text: String)

    /// The path below a manual directory, such as `man1/wakegate-push.1`.
    package var path: String { "man\(self.section)/\(self.name).\(self.section)" }

    /// Returns all pages: one for the program, one for each command, and one for the configuration file.
    ///
    /// - Parameters:
    ///   - commands: all commands of the program.
    ///   - keys: the keys of the configuration file, each with paragraphs.
    package static func all(of commands: [CommandDefinition], keys: [KeyText]) -> [ManualPage] {
        [self.program(commands)] + commands.map { self.command($0) } + [self.configuration(keys)]
    }

    /// The name of a command's page.
    static func name(of command: CommandDefinition) -> String {
        (["wakegate"] + command.words).joined(separator: "-")
    }

    private static func head(_ name: String, _ section: Int, _ description: String) -> MdocText {
        var page = MdocText()
        page.title("Dd", wakeGateReleaseDate)
        page.raw(".Dt \(name.uppercased()) \(section)")
        page.title("Os", "WakeGate \(wakeGateVersion)")
        page.raw(".Sh NAME")
        page.raw(".Nm \(name)")
        page.title("Nd", description)
        return page
    }

    private static func seeAlso(_ pages: [(name: String, section: Int)], in page: inout MdocText) {
        page.raw(".Sh SEE ALSO")
        let sorted = pages.sorted { ($0.section, $0.name) < ($1.section, $1.name) }
        for (index, other) in sorted.enumerated() {
            let end = index == sorted.count - 1 ? "" : " ,"
            page.raw(".Xr \(other.name) \(other.section)\(end)")
        }
    }
}

// MARK: The program

extension ManualPage {
    private static func program(_ commands: [CommandDefinition]) -> ManualPage {
        var page = Self.head("wakegate", 1, "silent pushes for Linux")
        page.raw(".Sh SYNOPSIS")
        page.raw(".Nm")
        page.raw(".Ar COMMAND")
        page.raw(".Op Ar options ...")
        for option in OptionDefinition.program { page.raw(".Nm\n.\(MdocText.flag(option))") }
        page.raw(".Sh DESCRIPTION")
        page.paragraphs(
            """
            WakeGate accepts pushes as APNs does, decides when a device may be woken, and wakes it. Pushes that arrive
            while a device may not be woken are coalesced into one wake of a worker.
            """
        )
        page.raw(".Pp")
        page.paragraphs("The commands, each with a separate page:")
        page.list(commands.map { ("Xr \(Self.name(of: $0)) 1", "\($0.summary).") })
        page.raw(".Pp")
        page.paragraphs("The options:")
        page.list(OptionDefinition.program.map { (MdocText.flag($0), "\($0.help).") })
        Self.environment(in: &page)
        Self.exitStatus(in: &page)
        page.raw(".Sh EXAMPLES")
        page.paragraphs("A gateway, a worker and a push, each in a separate terminal:")
        page.display(HelpText.firstSteps.joined(separator: "\n"))
        Self.seeAlso([("wakegate.json5", 5)] + commands.map { (Self.name(of: $0), 1) }, in: &page)
        return ManualPage(name: "wakegate", section: 1, text: page.text)
    }

    private static func environment(in page: inout MdocText) {
        page.raw(".Sh ENVIRONMENT")
        let names = OptionDefinition.variables
        let meanings = [
            (names.url, "the gateway of client commands, like --gateway"),
            (names.authority, "the authority's file, like --ca"),
            (names.tokenFile, "the bearer token's file, like --token-file"),
            (names.token, "the bearer token, like --token"),
            (names.certificate, "the client certificate's file, like --cert"),
            (names.key, "the file of its private key, like --key"),
            ("XDG_CONFIG_HOME", "the folder of wakegate/contexts.json, which stores the contexts; default: ~/.config"),
        ]
        page.list(meanings.map { ("Ev \($0.0)", "\($0.1).") })
        page.raw(".Pp")
        page.paragraphs(OptionDefinition.precedence)
    }

    private static func exitStatus(in page: inout MdocText) {
        page.raw(".Sh EXIT STATUS")
        let meanings = [
            ("0", "success; a server ended as requested"), ("64", "the command line is wrong"),
            ("77", "the gateway refuses the worker's credentials"), ("78", "the configuration is wrong"),
            ("2", "an accepted push causes no wake"), ("1", "any other failure; standard error has the reason"),
        ]
        page.list(meanings.map { ($0.0, "\($0.1).") }, style: " -compact")
    }
}

// MARK: Commands

extension ManualPage {
    private static func command(_ command: CommandDefinition) -> ManualPage {
        let name = Self.name(of: command)
        var page = Self.head(name, 1, command.summary)
        Self.synopsis(command, in: &page)
        page.raw(".Sh DESCRIPTION")
        if !command.arguments.isEmpty {
            page.paragraphs(command.arguments.count == 1 ? "The argument:" : "The arguments:")
            page.list(command.arguments.map { ("Ar \(MdocText.argument($0.placeholder))", "\($0.help).") })
            page.raw(".Pp")
        }
        page.paragraphs("The options:")
        page.list(command.completedOptions.map { (MdocText.flag($0), "\($0.markedHelp).") })
        for note in command.notes.split(separator: "\n\n") {
            page.raw(".Pp")
            page.paragraphs(String(note))
        }
        Self.exitStatus(in: &page)
        page.raw(".Sh EXAMPLES")
        page.display(command.example)
        Self.seeAlso([("wakegate", 1), ("wakegate.json5", 5)], in: &page)
        return ManualPage(name: name, section: 1, text: page.text)
    }

    private static func synopsis(_ command: CommandDefinition, in page: inout MdocText) {
        page.raw(".Sh SYNOPSIS")
        page.raw(".Nm wakegate \(command.name)")
        for argument in command.arguments {
            let isOptional = argument.count.lowerBound == 0
            let repeated = argument.count.upperBound > 1 ? " ..." : ""
            page.raw("\(isOptional ? ".Op Ar" : ".Ar") \(MdocText.argument(argument.placeholder))\(repeated)")
        }
        for option in command.options.filter(\.isRequired) { page.raw(".\(MdocText.flag(option))") }
        for option in command.options.filter({ !$0.isRequired }) { page.raw(".Op \(MdocText.flag(option))") }
        if let trailing = command.trailing {
            page.raw(".Fl \\-")
            page.raw(".Ar \(MdocText.argument(trailing))")
        }
    }
}

// MARK: The configuration

extension ManualPage {
    private static func configuration(_ keys: [KeyText]) -> ManualPage {
        var page = Self.head("wakegate.json5", 5, "configuration of a WakeGate gateway")
        page.raw(".Sh DESCRIPTION")
        page.paragraphs(
            """
            The file that `wakegate serve --config` reads: one object of JSON5, in which every key is optional. A key
            with a dot stands in the section that comes before the dot. An unknown key is refused, with the one that was
            probably meant. The option --set of `wakegate serve` and `wakegate dev` takes the same keys.
            """
        )
        page.raw(".Pp")
        page.paragraphs("`wakegate serve --config FILE --check` names every fault of a file.")
        page.raw(".Sh KEYS")
        page.list(keys.map { ("Va \(MdocText.argument($0.name))", $0.text) })
        page.raw(".Sh EXAMPLES")
        page.display(
            """
            {
              tls: {
                certificate: "/etc/ssl/certs/gateway.pem",
                key: "/etc/ssl/private/gateway.key",
              },
              providerKeys: "/etc/wakegate/keys",
              topics: {
                "com.example.app": {
                  policy: { launchInterval: 300, processingInterval: 7200 },
                  tasks: ["com.example.app.refresh", "com.example.app.export.*"],
                },
              },
            }
            """
        )
        Self.seeAlso([("wakegate", 1), ("wakegate-serve", 1)], in: &page)
        return ManualPage(name: "wakegate.json5", section: 5, text: page.text)
    }
}

/// A manual page in mdoc, line by line.
struct MdocText {
    /// The maximum line length that the style check of mandoc accepts.
    private static let lineCharactersMax = 78

    private(set) var lines: [String] = []

    /// The page as a file.
    var text: String { self.lines.joined(separator: "\n") + "\n" }

    /// Appends lines of macros unchanged.
    mutating func raw(_ line: String) {
        self.lines.append(line)
    }

    /// Appends a macro with `words`, escaped, as the rest of the line.
    mutating func title(_ name: String, _ words: String) {
        self.lines.append(".\(name) \(Self.escaped(words))")
    }

    /// Appends a list of items, each with macros as its head and paragraphs as its text.
    mutating func list(_ items: [(head: String, text: String)], style: String = "") {
        self.raw(".Bl -tag -width Ds\(style)")
        for (head, text) in items {
            self.raw(".It \(head)")
            self.paragraphs(text)
        }
        self.raw(".El")
    }

    /// Returns an option as macros, such as `Fl \-topic Ar TOPIC`.
    static func flag(_ option: OptionDefinition) -> String {
        let value = option.placeholder.isEmpty ? "" : " Ar \(self.argument(option.placeholder))"
        return "Fl \\-\(self.escaped(String(option.name.dropFirst(2))))\(value)"
    }

    /// Appends paragraphs of filled prose. Indented lines are displayed verbatim.
    mutating func paragraphs(_ text: String) {
        var prose: [Substring] = []
        var literal: [Substring] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("  ") {
                self.fill(&prose)
                literal.append(line)
            } else {
                self.display(&literal)
                prose.append(line)
            }
        }
        self.fill(&prose)
        self.display(&literal)
    }

    /// Appends lines verbatim and indented.
    mutating func display(_ text: String) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        self.display(&lines)
    }

    private mutating func display(_ literal: inout [Substring]) {
        guard !literal.isEmpty else { return }
        self.lines.append(".Bd -literal -offset indent")
        let indent = literal.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        self.lines += literal.map { Self.protected(Self.escaped(String($0.dropFirst(indent)))) }
        self.lines.append(".Ed")
        literal = []
    }

    /// Appends words as filled lines. Each sentence begins a new line, as the mdoc style requires.
    private mutating func fill(_ prose: inout [Substring]) {
        var line = ""
        for word in prose.joined(separator: " ").split(separator: " ") {
            let word = Self.escaped(String(word))
            if !line.isEmpty, line.count + 1 + word.count > Self.lineCharactersMax || Self.endsSentence(line) {
                self.lines.append(Self.protected(line))
                line = ""
            }
            line += line.isEmpty ? word : " \(word)"
        }
        if !line.isEmpty { self.lines.append(Self.protected(line)) }
        prose = []
    }

    private static func endsSentence(_ line: String) -> Bool { line.hasSuffix(".") || line.hasSuffix("?") }

    /// Escapes the characters that are special to roff.
    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { escaped, character in
            switch character {
            case "\\": escaped += "\\e"
            // A minus sign and plain quotes make examples fit for copying into a shell.
            case "-": escaped += "\\-"
            case "'": escaped += "\\(aq"
            case "`": escaped += "\\(ga"
            case "^": escaped += "\\(ha"
            case "~": escaped += "\\(ti"
            case "\u{2026}": escaped += "..."
            case _: escaped.append(character)
            }
        }
    }

    /// Returns the line so that roff cannot read it as a request.
    private static func protected(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix("'") ? "\\&\(line)" : line
    }

    /// Returns text as one argument of a macro, even if it contains spaces or is the name of a macro.
    static func argument(_ word: String) -> String {
        let escaped = Self.escaped(word)
        if word.contains(" ") || word.isEmpty { return "\"\(escaped)\"" }
        return word.count <= 2 || ".,:;()[]?!|".contains(word) ? "\\&\(escaped)" : escaped
    }
}
