/// The completions for zsh, made from the definitions.
struct ZshCompletion {
    let commands: [CommandDefinition]

    var text: String {
        """
        #compdef wakegate
        # zsh completion for wakegate, made by `wakegate completion zsh`.

        # Words that are gone on with, such as KEY=.
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

    /// The text of a description; a colon would end it.
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
