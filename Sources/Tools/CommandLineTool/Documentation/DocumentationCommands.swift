import FoundationEssentials
import Platform

extension CommandDefinition {
    /// - Parameter commands: all commands of the program, including this one.
    package static func completion(of commands: @escaping @Sendable () -> [CommandDefinition]) -> CommandDefinition {
        CommandDefinition(
            "completion",
            "print the completions for a shell",
            arguments: [
                ArgumentDefinition("SHELL", "bash, zsh or fish", words: ["bash", "zsh", "fish"]),
                ArgumentDefinition("WORD", "a command line to complete; the shell passes it", count: 0...1_000_000),
            ],
            example: "source <(wakegate completion bash)",
            notes: """
                The completions are printed to standard output. bash: source them from ~/.bashrc. zsh: write them to a
                file _wakegate in a folder of $fpath. fish: write them to ~/.config/fish/completions/wakegate.fish.
                """,
            run: { parsed throws(CommandFailure) in
                let shell = parsed.arguments[0]
                guard let script = Completion.scripts[shell] else {
                    throw .usage("\"\(shell)\" is not a shell with completions; write bash, zsh or fish")
                }
                let words = Array(parsed.arguments.dropFirst())
                Console.out(words.isEmpty ? script : Completion(commands: commands()).text(words, shell: shell))
                return 0
            }
        )
    }

    /// - Parameters:
    ///   - commands: all commands of the program, including this one.
    ///   - keys: the keys of the gateway's configuration.
    package static func manual(
        of commands: @escaping @Sendable () -> [CommandDefinition],
        keys: [ManualPage.KeyText]
    ) -> CommandDefinition {
        CommandDefinition(
            "manual",
            "write the manual pages to a folder",
            arguments: [ArgumentDefinition("DIR", "the folder, such as /usr/local/share/man")],
            example: "wakegate manual ~/.local/share/man",
            notes: "The pages are DIR/man1/wakegate.1, one for each command, and DIR/man5/wakegate.json5.5, in mdoc.",
            run: { parsed throws(CommandFailure) in
                let folder = URL(fileURLWithPath: parsed.arguments[0])
                for page in ManualPage.all(of: commands(), keys: keys) { try page.write(in: folder) }
                return 0
            }
        )
    }
}

extension ManualPage {
    fileprivate func write(in folder: URL) throws(CommandFailure) {
        let file = folder.appendingPathComponent(self.path)
        // The error is ignored, because writing the file then fails with the same cause.
        try? FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        do throws(SystemError) {
            try OrdinaryFile.replace(file.path, with: Array(self.text.utf8), mode: 0o644)
        } catch {
            throw .failed("\(file.path) cannot be written (\(error.reason)); name a folder of your own")
        }
    }
}
