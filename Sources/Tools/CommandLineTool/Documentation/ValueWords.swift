/// What a shell offers for the value of an option or argument.
enum ValueWords: Hashable {
    case files, folders
    /// Some of many, or all; one that ends with `=` is gone on with.
    case words([String])
    /// Nothing that the program knows.
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
    /// Nil for an option that stands alone.
    var valueWords: ValueWords? {
        self.value == .none ? nil : ValueWords(placeholder: self.placeholder, words: self.words)
    }
}

extension ArgumentDefinition {
    var valueWords: ValueWords { ValueWords(placeholder: self.placeholder, words: self.words) }
}

extension CommandDefinition {
    /// The options that the parser takes, `--help` among them.
    var completedOptions: [OptionDefinition] {
        self.options + OptionDefinition.program.filter { $0.name == "--help" }
    }
}

extension [CommandDefinition] {
    /// The first words of all commands, each once, with what stands for it in a list.
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

    /// The commands of two words of which the first is `word`.
    func group(_ word: String) -> [CommandDefinition] {
        self.filter { $0.words.count > 1 && $0.words[0] == word }
    }

    /// The first words of commands of two words, each once.
    var groups: [String] {
        let names = Set(self.map(\.name))
        return self.firstWords.map(\.word).filter { !self.group($0).isEmpty && !names.contains($0) }
    }
}
