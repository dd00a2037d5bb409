import Platform
import Wire

/// The program `wakegate`: parses a command line, runs the command, and reports the result.
package enum CommandLineTool {
    /// The commands that run until they are stopped.
    private static let lasting: Set = ["dev", "serve", "transfers", "worker"]

    /// Runs the words after the program's name and returns the exit status.
    ///
    /// - Parameters:
    ///   - words: the arguments without the name of the program.
    ///   - commands: every command of the program.
    ///   - commit: the commit that the program was built from; nil if unknown.
    package static func run(_ words: [String], commands: [CommandDefinition], commit: String?) async -> Int32 {
        Descriptor.holdStandardOnes()
        do throws(CommandFailure) {
            switch try CommandParser(commands).parse(words) {
            case .help: Console.out(HelpText.program(commands))
            case .helpOf(let command): Console.out(HelpText.command(command))
            case .helpPage(let page): Console.out(page)
            case .helpOfGroup(let word): Console.out(HelpText.group(word, commands))
            case .version: Console.out("wakegate \(wakeGateVersion) (commit \(commit ?? "unknown"))\n")
            case .run(let parsed):
                let status = try await parsed.command.run(parsed)
                // For a long-running command, a failure of standard output does not change the exit status.
                guard status == 0, !Self.lasting.contains(parsed.command.name) else { return status }
            }
            if let error = Console.outputError {
                throw .failed("the output is lost: standard output takes nothing (\(error))")
            }
            return 0
        } catch {
            Console.error("wakegate: \(error.message)")
            return error.status.rawValue
        }
    }
}
