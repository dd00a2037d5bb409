/// The completions for fish, made from the definitions.
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
