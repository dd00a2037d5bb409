/// What a command line asks for.
package enum ParsedLine: Sendable {
    case run(ParsedCommand)
    /// The help of the program.
    case help
    /// The help of one command.
    case helpOf(CommandDefinition)
    /// The help of the commands that begin with a word.
    case helpOfGroup(String)
    case version
}
