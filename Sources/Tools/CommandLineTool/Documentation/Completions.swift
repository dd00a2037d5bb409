/// The completions of a command line, from the command definitions. All shells use them: their scripts run
/// `wakegate completion SHELL -- WORD...` at each tab.
struct Completion {
    /// A word, and its description; empty for none.
    typealias Offer = (word: String, help: String)

    let commands: [CommandDefinition]

    /// Returns what may stand in place of the last of `words`, which follow the name of the program. The shell drops
    /// the words that do not continue the last one.
    ///
    /// Instead of words, it may return `@files` or `@folders`, or `@command` for a word of another program's command
    /// line. The shell then completes the word on its own.
    func offers(_ words: [String]) -> [Offer] {
        let before = words.dropLast()
        let begun = self.commands.filter { before.starts(with: $0.words) }
        if let command = begun.max(by: { $0.words.count < $1.words.count }) {
            return command.offers(after: before.dropFirst(command.words.count), words.last ?? "")
        }
        guard let first = before.first else { return self.firstWords }
        return before.count == 1 ? self.group(first).map { ($0.words[1], $0.summary) } : []
    }

    /// The first word of every command, without duplicates, and its summary.
    private var firstWords: [Offer] {
        var found: [Offer] = []
        for command in self.commands where command.words[0] != found.last?.word {
            let group = self.group(command.words[0])
            let summary = group.isEmpty ? command.summary : group.map { $0.words[1] }.joined(separator: ", ")
            found.append((command.words[0], summary))
        }
        return found
    }

    /// Returns the two-word commands whose first word is `word`.
    private func group(_ word: String) -> [CommandDefinition] {
        self.commands.filter { $0.words.count > 1 && $0.words[0] == word }
    }

    /// Returns the offers of a command line in the form that a shell's script reads, one per line.
    func text(_ words: [String], shell: String) -> String {
        self.offers(words).map { word, help in
            switch shell {
            case "fish" where !help.isEmpty: "\(word)\t\(help)\n"
            case "zsh" where !help.isEmpty: "\(word.replacing(":", with: "\\:")):\(help)\n"
            default: "\(word)\n"
            }
        }.joined()
    }
}

extension CommandDefinition {
    /// The options that the parser accepts, including `--help`.
    var completedOptions: [OptionDefinition] {
        let pages = self.helpPages.keys.sorted()
        guard !pages.isEmpty else { return self.options + OptionDefinition.program.filter { $0.name == "--help" } }
        return self.options + [OptionDefinition("--help PAGE", "show this help, or one of its pages", words: pages)]
    }

    /// Returns what may stand in place of `begun` after these words of the command.
    fileprivate func offers(after words: ArraySlice<String>, _ begun: String) -> [Completion.Offer] {
        let options = self.completedOptions
        func option(_ word: some StringProtocol) -> OptionDefinition? {
            options.first { $0.name == word && $0.value != .none }
        }
        var awaiting: OptionDefinition?
        var given: Set<Substring> = []
        var argumentCount = 0
        for word in words {
            if awaiting != nil {
                awaiting = nil
            } else if word == "--", self.trailing != nil {
                return [("@command", "")]
            } else if word.hasPrefix("-") {
                given.insert(word.prefix { $0 != "=" })
                awaiting = option(word)
            } else {
                argumentCount += 1
            }
        }
        if begun.hasPrefix("--"), let equals = begun.firstIndex(of: "=") {
            guard let named = option(begun[..<equals]) else { return [] }
            awaiting = named
        }
        if let awaiting { return Self.values(awaiting.placeholder, awaiting.words) }
        if begun.hasPrefix("-") {
            return options.filter { $0.isRepeatable || !given.contains($0.name[...]) }.map { ($0.name, $0.help) }
        }
        guard !self.arguments.isEmpty else { return [] }
        let argument = self.arguments[min(argumentCount, self.arguments.count - 1)]
        return Self.values(argument.placeholder, argument.words)
    }

    /// Returns the completions for the value of an option or argument; empty for no suggestions. A word that
    /// ends with `=` must be followed by a value.
    private static func values(_ placeholder: String, _ words: [String]) -> [Completion.Offer] {
        switch placeholder {
        case _ where !words.isEmpty: words.map { ($0, "") }
        case "FILE", "TRACE": [("@files", "")]
        case "DIR": [("@folders", "")]
        case _: []
        }
    }
}

extension Completion {
    /// The scripts of the shells. The script for bash does not need the package bash-completion.
    static let scripts = ["bash": bash, "zsh": zsh, "fish": fish]

    private static let bash = #"""
        # bash completion for wakegate, made by `wakegate completion bash`.

        _wakegate() {
            local line="${COMP_LINE:0:COMP_POINT}" begun program
            local -a words offered
            COMPREPLY=()
            read -ra words <<<"$line"
            [[ "$line" != *[[:space:]] ]] || words+=("")
            begun="${words[-1]}"
            # An alias is not a program.
            program="${words[0]/#\~/$HOME}"
            type -P -- "$program" >/dev/null || program=wakegate
            mapfile -t offered < <(command "$program" completion bash -- "${words[@]:1}" 2>/dev/null)
            [[ "$begun" != --*=* ]] || begun="${begun#*=}"
            [[ "${offered[0]-}" != @* ]] || compopt -o filenames
            case "${offered[0]-}" in
                @files) mapfile -t COMPREPLY < <(compgen -f -- "$begun") ;;
                @folders) mapfile -t COMPREPLY < <(compgen -d -- "$begun") ;;
                @command)
                    local kind=-f
                    [[ "${words[-2]}" != -- ]] || kind=-c
                    mapfile -t COMPREPLY < <(compgen "$kind" -- "$begun")
                    ;;
                *) mapfile -t COMPREPLY < <(compgen -W "${offered[*]}" -- "$begun") ;;
            esac
            # Readline has split the word where it breaks words, and replaces only what is behind that.
            if [[ "$begun" == *[=:]* ]]; then
                local lead="${begun%"${begun##*[=:]}"}"
                COMPREPLY=("${COMPREPLY[@]#"$lead"}")
            fi
            [[ "${COMPREPLY[0]-}" != *= ]] || compopt -o nospace
        }

        complete -F _wakegate wakegate

        """#

    private static let zsh = #"""
        #compdef wakegate
        # zsh completion for wakegate, made by `wakegate completion zsh`.

        _wakegate() {
            local -a before=("${(@)words[2,CURRENT-1]}") offered
            local program=${~words[1]}
            whence -p -- "$program" >/dev/null || program=wakegate
            offered=("${(@f)$(command "$program" completion zsh -- "${(@)before}" "$PREFIX" 2>/dev/null)}")
            [[ $offered[1] == @command ]] || compset -P 1 '--*='
            case $offered[1] in
                '') ;;
                @files) _files ;;
                @folders) _files -/ ;;
                @command)
                    local end=${words[(i)--]}
                    shift $end words
                    (( CURRENT -= end ))
                    _normal
                    ;;
                *=) compadd -S '' -- "${(@)offered}" ;;
                *) _describe value offered ;;
            esac
        }

        _wakegate "$@"

        """#

    private static let fish = #"""
        # fish completion for wakegate, made by `wakegate completion fish`.

        function __wakegate_offered
            set -l begun (commandline -ct)
            set -l words (commandline -opc) "$begun"
            set -l program (string replace -r '^~(?=/)' "$HOME" -- $words[1])
            command -q -- $program; or set program wakegate
            set -l offered (command $program completion fish -- $words[2..] 2>/dev/null)
            set -l option (string match -r -- '^--[^=]*=' "$begun")
            set -l value (string replace -- "$option" '' "$begun")
            switch "$offered[1]"
                case @files
                    set offered (complete -C "'' $value")
                case @folders
                    set offered (__fish_complete_directories "$value" '')
                case @command
                    set option ''
                    set -l at (contains -i -- -- $words)
                    set offered (complete -C (string join -- ' ' $words[(math $at + 1)..]))
            end
            printf '%s\n' "$option"$offered
        end

        complete -c wakegate -f -a '(__wakegate_offered)'

        """#
}
