/// Every command of the program, in the order the help lists them.
package enum CommandTable {
    package static let all: [CommandDefinition] = [
        .dev, .serve, .worker, .push, .stats, .deviceRegister, .deviceRemove, .deviceConditions, .simulate,
    ]

    /// The options of the program itself.
    package static let options = [
        OptionDefinition("--help", "", "show this help; after a command, the help of that command"),
        OptionDefinition("--version", "", "show the version"),
    ]

    /// The first words of all commands, each once.
    package static var firstWords: [String] {
        var words: [String] = []
        for command in self.all where !words.contains(command.words[0]) { words.append(command.words[0]) }
        return words
    }
}
