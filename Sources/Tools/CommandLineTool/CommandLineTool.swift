import Settings

/// The program `wakegate`: reads a command line, runs the command, and says how it ended.
package enum CommandLineTool {
    /// Runs the words after the program's name and returns the exit status.
    package static func run(_ words: [String], environment: CommandEnvironment) async -> Int32 {
        do throws(CommandFailure) {
            switch try CommandParser(CommandTable.all).parse(words) {
            case .help: Console.out(HelpText.program(CommandTable.all))
            case .helpOf(let command): Console.out(HelpText.command(command))
            case .helpOfGroup(let word): Console.out(HelpText.group(word, CommandTable.all))
            case .version: Console.out("wakegate \(wakeGateVersion)\n")
            case .run(let parsed): return try await parsed.command.run(parsed, environment)
            }
            return 0
        } catch {
            Console.error("wakegate: \(error.message)")
            return error.status.rawValue
        }
    }
}

/// Every command of the program, in the order the help lists them.
package enum CommandTable {
    package static let all: [CommandDefinition] = [
        .dev, .serve, .worker, .push, .stats, .deviceRegister, .deviceRemove, .deviceConditions, .deviceWatch,
        .taskSubmit, .taskList, .taskCancel, .taskLaunch, .taskExpire, .taskFinished, .keyAdd, .keyList, .keyRemove,
        .tokenIssue, .tokenRevoke, .backup, .reload, .faultsList, .faultsSet, .faultsClear, .simulate,
        .completion { Self.all }, .manual { Self.all },
    ]
}
