import Gateway
import Platform

/// The program `wakegate`: reads a command line, runs the command, and says how it ended.
package enum CommandLineTool {
    /// The commands that go on until they are ended.
    private static let lasting: Set = ["dev", "serve", "transfers", "worker"]

    /// Runs the words after the program's name and returns the exit status.
    package static func run(_ words: [String], environment: CommandEnvironment) async -> Int32 {
        Descriptor.holdStandardOnes()
        do throws(CommandFailure) {
            switch try CommandParser(CommandTable.all).parse(words) {
            case .help: Console.out(HelpText.program(CommandTable.all))
            case .helpOf(let command): Console.out(HelpText.command(command))
            case .helpOfGroup(let word): Console.out(HelpText.group(word, CommandTable.all))
            case .version: Console.out("wakegate \(wakeGateVersion) (commit \(wakeGateCommit ?? "unknown"))\n")
            case .run(let parsed):
                let status = try await parsed.command.run(parsed, environment)
                // A server's work does not hang on its ready line, nor a worker's on what its commands write.
                guard status == 0, !Self.lasting.contains(parsed.command.name) else { return status }
            }
            if let error = Console.outputError {
                throw CommandFailure(.failed, "the output is lost: standard output takes nothing (\(error))")
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
        .dev, .serve, .worker, .transfers, .pushList, .push, .stats, .events, .deviceList, .deviceRegister,
        .deviceRemove,
        .deviceConditions, .deviceWatch, .deviceLaunch, .deviceDrop, .deviceExpire, .topicList, .topicPause,
        .topicResume,
        .taskSubmit, .taskList, .taskCancel, .taskLaunch, .taskExpire, .taskFinished,
        .transferAdd, .transferList, .transferWait, .transferCancel, .transferTake, .transferSession, .keyAdd, .keyList,
        .keyRemove,
        .tokenIssue, .tokenList, .tokenRevoke, .contextAdd, .contextUse, .contextList, .contextShow, .contextRemove,
        .health, .backup, .importState, .reload, .faultsList, .faultsSet, .faultsClear, .simulate,
        .size, .completion { Self.all }, .manual { Self.all },
    ]
}
