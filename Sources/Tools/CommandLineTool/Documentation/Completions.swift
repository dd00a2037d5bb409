/// The completions for bash, generated from the command definitions. The script does not need the package
/// bash-completion.
struct BashCompletion {
    let commands: [CommandDefinition]

    var text: String {
        """
        # bash completion for wakegate, made by `wakegate completion bash`.

        # What may be chosen from for a value, one a line: words, or @files, or @folders.
        _wakegate_values() {
            case "$1" in
        \(self.values)
            esac
        }

        # The options of a command; one with a star may be repeated, one with an equals sign takes a value.
        _wakegate_options() {
            case "$1" in
        \(self.options)
            esac
        }

        # Offers what fits the value that was begun.
        _wakegate_offer() {
            local offered begun="$2"
            offered="$(_wakegate_values "$1")"
            case "$offered" in
                @files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$begun") ;;
                @folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$begun") ;;
                *) mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$begun") ;;
            esac
            # Readline has split the word where it breaks words, and replaces only what is behind that.
            if [[ "$begun" == *[=:]* ]]; then
                local lead="${begun%"${begun##*[=:]}"}"
                COMPREPLY=("${COMPREPLY[@]#"$lead"}")
            fi
            [[ "${COMPREPLY[0]-}" != *= ]] || compopt -o nospace
        }

        _wakegate() {
            local line="${COMP_LINE:0:COMP_POINT}" word command option name index
            local -a words
            COMPREPLY=()
            read -ra words <<<"$line"
            [[ "$line" != *[[:space:]] ]] || words+=("")
            local last=$((${#words[@]} - 1))
            word="${words[last]}"
            if ((last == 1)); then
                mapfile -t COMPREPLY < <(compgen -W "\(self.firstWords)" -- "$word")
                return
            fi
            command="${words[1]}"
            case "$command" in
                \(self.groups))
                    if ((last == 2)); then
                        _wakegate_offer "$command" "$word"
                        return
                    fi
                    command+=" ${words[2]}"
                    ;;
            esac
            for ((index = 2; index < last; index++)); do
                if [[ "${words[index]}" == -- ]]; then
                    # What the command itself runs.
                    compopt -o filenames
                    if ((index == last - 1)); then
                        mapfile -t COMPREPLY < <(compgen -c -- "$word")
                    else
                        mapfile -t COMPREPLY < <(compgen -f -- "$word")
                    fi
                    return
                fi
            done
            if [[ "$word" == --*=* ]]; then
                _wakegate_offer "$command ${word%%=*}" "${word#*=}"
                return
            fi
            local -a allowed=()
            for option in $(_wakegate_options "$command"); do
                name="${option%%[=*]*}"
                if [[ "$option" == *=* && "${words[last - 1]}" == "$name" ]]; then
                    _wakegate_offer "$command $name" "$word"
                    return
                fi
                [[ "$option" != *\\* && " ${words[*]:2:last-2} " == *" $name "* ]] || allowed+=("$name")
            done
            if [[ "$word" == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "${allowed[*]}" -- "$word")
            else
                _wakegate_offer "$command" "$word"
            fi
        }

        complete -F _wakegate wakegate

        """
    }

    private var firstWords: String { self.commands.firstWords.map(\.word).joined(separator: " ") }
    private var groups: String { self.commands.groups.joined(separator: " | ") }

    /// The cases of `_wakegate_values`: groups, then arguments, then options.
    private var values: String {
        var cases = self.commands.groups.map { word in
            self.line(word, self.commands.group(word).map { $0.words[1] })
        }
        for command in self.commands {
            // The last argument's words are also suggested for all later arguments.
            if let words = self.words(command.arguments.last?.valueWords) {
                cases.append(self.line(command.name, words))
            }
            for option in command.completedOptions {
                guard let words = self.words(option.valueWords) else { continue }
                cases.append(self.line("\(command.name) \(option.name)", words))
            }
        }
        return cases.joined(separator: "\n")
    }

    private var options: String {
        self.commands.map { command in
            let marked = command.completedOptions.map { option in
                option.name + (option.value == .none ? "" : "=") + (option.isRepeatable ? "*" : "")
            }
            return self.line(command.name, marked)
        }.joined(separator: "\n")
    }

    private func line(_ name: String, _ words: [String]) -> String {
        "        '\(name)') printf '%s\\n' \(words.map { ShellText.quoted($0) }.joined(separator: " ")) ;;"
    }

    private func words(_ values: ValueWords?) -> [String]? {
        switch values {
        case nil, .unknown: nil
        case .files: ["@files"]
        case .folders: ["@folders"]
        case .words(let words): words
        }
    }
}

/// The completions for fish, generated from the command definitions.
struct FishCompletion {
    let commands: [CommandDefinition]

    var text: String {
        """
        # fish completion for wakegate, made by `wakegate completion fish`.

        # Whether the words before the cursor begin with a command.
        function __wakegate_runs
            set -l words (commandline -opc)
            for index in (seq (count $argv))
                set -l at (math $index + 1)
                test "$words[$at]" = "$argv[$index]"; or return 1
            end
        end

        # Whether the cursor is at the word with that number behind the program's name.
        function __wakegate_at
            test (count (commandline -opc)) -eq $argv[1]
        end

        # What completes the command behind --.
        function __wakegate_trailing
            set -l words (commandline -opc)
            set -l at (contains -i -- -- $words); or return 1
            set -e words[1..$at]
            complete -C "$words "(commandline -ct)
        end

        complete -c wakegate -f
        \(self.lines.joined(separator: "\n"))

        """
    }

    private var lines: [String] {
        var lines = self.commands.firstWords.map { self.word($0.word, $0.summary, "__wakegate_at 1") }
        for word in self.commands.groups {
            lines += self.commands.group(word).map { command in
                self.word(command.words[1], command.summary, "__wakegate_at 2; and __wakegate_runs \(word)")
            }
        }
        for command in self.commands {
            let condition = "__wakegate_runs \(command.name)"
            lines += command.completedOptions.map { option in
                let value = option.valueWords.map { " \(self.value($0))" } ?? ""
                let name = option.name.dropFirst(2)
                let help = ShellText.quoted(option.help)
                return "complete -c wakegate -n '\(condition)' -l \(name)\(value) -d \(help)"
            }
            if command.trailing != nil {
                let behind = "\(condition); and contains -- -- (commandline -opc)"
                lines.append("complete -c wakegate -n '\(behind)' -a '(__wakegate_trailing)'")
            }
            if let argument = command.arguments.last, argument.valueWords != .unknown {
                lines.append(
                    "complete -c wakegate -n '\(condition)' \(self.value(argument.valueWords, isOption: false))"
                )
            }
        }
        return lines
    }

    private func word(_ word: String, _ summary: String, _ condition: String) -> String {
        "complete -c wakegate -n '\(condition)' -a \(word) -d \(ShellText.quoted(summary))"
    }

    private func value(_ values: ValueWords, isOption: Bool = true) -> String {
        let needsValue = isOption ? "-r " : ""
        return switch values {
        case .files: "\(needsValue)-F"
        case .folders: "\(needsValue)-f -a '(__fish_complete_directories)'"
        case .unknown: isOption ? "-x" : "-f"
        case .words(let words): "\(needsValue)-f -a \(ShellText.quoted(words.joined(separator: " ")))"
        }
    }
}

/// The completions for zsh, generated from the command definitions.
struct ZshCompletion {
    let commands: [CommandDefinition]

    var text: String {
        """
        #compdef wakegate
        # zsh completion for wakegate, made by `wakegate completion zsh`.

        # Beginnings of words, such as KEY=.
        _wakegate_beginnings() { compadd -S '' -- "$@" }

        _wakegate() {
            local name
            local -a known
            if (( CURRENT == 2 )); then
                known=(
        \(self.described(self.commands.firstWords))
                )
                _describe command known
                return
            fi
            name=$words[2]
            case $name in
        \(self.groups)
            esac
            shift words
            (( CURRENT-- ))
            case $name in
        \(self.arguments)
            esac
        }

        _wakegate "$@"

        """
    }

    private var groups: String {
        self.commands.groups.map { word in
            """
                    \(word))
                        if (( CURRENT == 3 )); then
                            known=(
            \(self.described(self.commands.group(word).map { ($0.words[1], $0.summary) }))
                            )
                            _describe command known
                            return
                        fi
                        name+=" $words[3]"
                        shift words
                        (( CURRENT-- ))
                        ;;
            """
        }.joined(separator: "\n")
    }

    private var arguments: String {
        self.commands.map { command in
            var specifications = command.completedOptions.map { option in
                let star = option.isRepeatable ? "*" : ""
                let value = option.valueWords.map {
                    "=[\(self.escaped(option.help))]:\(option.placeholder):\(self.action($0))"
                }
                return star + option.name + (value ?? "[\(self.escaped(option.help))]")
            }
            for argument in command.arguments {
                let place = argument.count.upperBound > 1 ? "*" : ""
                specifications.append("\(place):\(argument.placeholder):\(self.action(argument.valueWords))")
            }
            if command.trailing != nil { specifications.append("*::command:_normal") }
            let lines = specifications.map { "                \(ShellText.quoted($0))" }
            return """
                        '\(command.name)')
                            _arguments -S \\
                \(lines.joined(separator: " \\\n"))
                            ;;
                """
        }.joined(separator: "\n")
    }

    private func described(_ words: [(word: String, summary: String)]) -> String {
        words.map { "            \(ShellText.quoted("\($0.word):\(self.escaped($0.summary))"))" }.joined(
            separator: "\n"
        )
    }

    /// Escapes the characters that would end a description, such as a colon.
    private func escaped(_ text: String) -> String {
        text.flatMap { character in
            "[]:\\".contains(character) ? ["\\", character] : [character]
        }.reduce(into: "") { $0.append($1) }
    }

    private func action(_ values: ValueWords) -> String {
        switch values {
        case .files: "_files"
        case .folders: "_files -/"
        case .unknown: "( )"
        case .words(let words):
            words.allSatisfy { $0.hasSuffix("=") }
                ? "_wakegate_beginnings \(words.joined(separator: " "))" : "(\(words.joined(separator: " ")))"
        }
    }
}

/// The completions for the value of an option or argument.
enum ValueWords: Hashable {
    case files, folders
    /// Some or all of the possible words. A word that ends with `=` must be followed by a value.
    case words([String])
    /// No suggestions.
    case unknown

    init(placeholder: String, words: [String]) {
        switch placeholder {
        case _ where !words.isEmpty: self = .words(words)
        case "FILE", "TRACE": self = .files
        case "DIR": self = .folders
        case _: self = .unknown
        }
    }
}

extension OptionDefinition {
    /// The completions of the value; nil for an option without a value.
    var valueWords: ValueWords? {
        self.value == .none ? nil : ValueWords(placeholder: self.placeholder, words: self.words)
    }
}

extension ArgumentDefinition {
    var valueWords: ValueWords { ValueWords(placeholder: self.placeholder, words: self.words) }
}

extension CommandDefinition {
    /// The options that the parser accepts, including `--help`.
    var completedOptions: [OptionDefinition] {
        let pages = self.helpPages.keys.sorted()
        guard !pages.isEmpty else { return self.options + OptionDefinition.program.filter { $0.name == "--help" } }
        return self.options + [OptionDefinition("--help PAGE", "show this help, or one of its pages", words: pages)]
    }
}

extension [CommandDefinition] {
    /// The first word of every command, without duplicates, and its summary.
    var firstWords: [(word: String, summary: String)] {
        var found: [(word: String, summary: String)] = []
        for command in self {
            let word = command.words[0]
            if let last = found.last, last.word == word { continue }
            let group = self.group(word)
            let summary = group.isEmpty ? command.summary : group.map { $0.words[1] }.joined(separator: ", ")
            found.append((word, summary))
        }
        return found
    }

    /// Returns the two-word commands whose first word is `word`.
    func group(_ word: String) -> [CommandDefinition] {
        self.filter { $0.words.count > 1 && $0.words[0] == word }
    }

    /// The first words of two-word commands, without duplicates. Excludes words that are commands themselves.
    var groups: [String] {
        let names = Set(self.map(\.name))
        return self.firstWords.map(\.word).filter { !self.group($0).isEmpty && !names.contains($0) }
    }
}
