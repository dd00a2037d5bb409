/// The completions for bash, made from the definitions; they need nothing but bash itself.
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
            // The last stands for those behind it, too.
            if let words = self.words(command.arguments.last?.valueWords) {
                cases.append(self.line(command.name, words))
            }
            for option in command.options {
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
