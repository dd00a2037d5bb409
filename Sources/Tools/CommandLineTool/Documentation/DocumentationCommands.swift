import FoundationEssentials
import Platform

extension CommandDefinition {
    /// - Parameter commands: all commands of the program, including this one.
    package static func completion(of commands: @escaping @Sendable () -> [CommandDefinition]) -> CommandDefinition {
        CommandDefinition(
            "completion",
            "print the completions for a shell",
            arguments: [
                ArgumentDefinition("SHELL", "bash, zsh or fish", words: CompletedShell.allCases.map(\.rawValue))
            ],
            example: "source <(wakegate completion bash)",
            notes: [
                """
                The completions are printed to standard output. bash: source them from ~/.bashrc. zsh: write them to a
                file _wakegate in a folder of $fpath. fish: write them to ~/.config/fish/completions/wakegate.fish.
                """
            ],
            run: DocumentationCommands(commands: commands, keys: []).completion
        )
    }

    /// - Parameters:
    ///   - commands: all commands of the program, including this one.
    ///   - keys: the keys of the gateway's configuration.
    package static func manual(
        of commands: @escaping @Sendable () -> [CommandDefinition],
        keys: [KeyManual]
    ) -> CommandDefinition {
        CommandDefinition(
            "manual",
            "write the manual pages to a folder",
            arguments: [ArgumentDefinition("DIR", "the folder, such as /usr/local/share/man")],
            example: "wakegate manual ~/.local/share/man",
            notes: ["The pages are DIR/man1/wakegate.1, one for each command, and DIR/man5/wakegate.json5.5, in mdoc."],
            run: DocumentationCommands(commands: commands, keys: keys).manual
        )
    }
}

/// A shell with completions.
enum CompletedShell: String, CaseIterable {
    case bash, zsh, fish

    /// Returns the completions of `commands` as a script for the shell.
    func text(_ commands: [CommandDefinition]) -> String {
        switch self {
        case .bash: BashCompletion(commands: commands).text
        case .zsh: ZshCompletion(commands: commands).text
        case .fish: FishCompletion(commands: commands).text
        }
    }
}

/// `wakegate completion` and `wakegate manual`.
struct DocumentationCommands: Sendable {
    /// All commands of the program.
    let commands: @Sendable () -> [CommandDefinition]
    /// The keys of the gateway's configuration.
    let keys: [KeyManual]

    func completion(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        guard let shell = CompletedShell(rawValue: parsed.arguments[0]) else {
            throw .usage(
                "\"\(parsed.arguments[0])\" is not a shell with completions; write bash, zsh or fish"
            )
        }
        Console.out(shell.text(self.commands()))
        return 0
    }

    func manual(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let folder = URL(fileURLWithPath: parsed.arguments[0])
        for page in ManualPage.all(of: self.commands(), keys: self.keys) {
            let file = folder.appendingPathComponent(page.path)
            // The error is ignored, because writing the file then fails with the same cause.
            try? FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            do throws(SystemError) {
                try OrdinaryFile.replace(file.path, with: Array(page.text.utf8), mode: 0o644)
            } catch {
                throw .failed("\(file.path) cannot be written (\(error.reason)); name a folder of your own")
            }
        }
        return 0
    }
}
