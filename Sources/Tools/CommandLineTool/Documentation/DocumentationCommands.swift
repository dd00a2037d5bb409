import Foundation

extension CommandDefinition {
    package static let completion = CommandDefinition(
        "completion",
        "write the completions for a shell",
        arguments: [ArgumentDefinition("SHELL", "bash, zsh or fish", words: CompletedShell.allCases.map(\.rawValue))],
        example: "source <(wakegate completion bash)",
        notes: [
            """
            They go to standard output. bash: source them from ~/.bashrc. zsh: put them into a file _wakegate in a
            folder of $fpath. fish: put them into ~/.config/fish/completions/wakegate.fish.
            """
        ],
        run: DocumentationCommands.completion
    )

    package static let manual = CommandDefinition(
        "manual",
        "write the manual's pages into a folder, for man",
        arguments: [ArgumentDefinition("DIR", "the folder, such as /usr/local/share/man")],
        example: "wakegate manual ~/.local/share/man",
        notes: ["The pages are DIR/man1/wakegate.1, one for each command, and DIR/man5/wakegate.json5.5, in mdoc."],
        run: DocumentationCommands.manual
    )
}

/// A shell that there are completions for.
enum CompletedShell: String, CaseIterable {
    case bash, zsh, fish

    /// The completions, to be run by the shell.
    var text: String {
        switch self {
        case .bash: BashCompletion.text
        case .zsh: ZshCompletion.text
        case .fish: FishCompletion.text
        }
    }
}

/// `wakegate completion` and `wakegate manual`.
enum DocumentationCommands {
    static func completion(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        guard let shell = CompletedShell(rawValue: parsed.arguments[0]) else {
            throw .usage(
                "\"\(parsed.arguments[0])\" is no shell that there are completions for; write bash, zsh or fish"
            )
        }
        Console.out(shell.text)
        return 0
    }

    static func manual(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let folder = URL(fileURLWithPath: parsed.arguments[0])
        for page in ManualPage.all {
            let file = folder.appendingPathComponent(page.path)
            do {
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(),
                    withIntermediateDirectories: true
                )
                try Data(page.text.utf8).write(to: file, options: .atomic)
            } catch {
                throw CommandFailure(
                    .failed,
                    "\(file.path) cannot be written (\(error.localizedDescription)); name a folder of your own"
                )
            }
        }
        return 0
    }
}
