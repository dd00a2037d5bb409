import Foundation

/// A command of an article, and what the article shows below it.
struct ShownCommand {
    /// Of more than one line where the article continues it, or has a whole script.
    let command: String
    let output: [String]

    /// The commands of an article of the gateway, in its order: each of a block `console`, and a block `sh` as one.
    static func all(in article: String) throws -> [ShownCommand] {
        try self.all(at: "Sources/Server/Gateway/Gateway.docc/\(article).md")
    }

    /// The commands of a page, by its path in the checkout.
    static func all(at path: String) throws -> [ShownCommand] {
        let file = RunningGateway.root.appendingPathComponent(path)
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        var commands: [ShownCommand] = []
        for part in text.components(separatedBy: "\n```console\n").enumerated() {
            let console = part.offset == 0 ? nil : part.element.components(separatedBy: "\n```")[0]
            if let console { commands += self.commands(ofConsole: console) }
            for script in part.element.components(separatedBy: "\n```sh\n").dropFirst() {
                commands.append(ShownCommand(command: script.components(separatedBy: "\n```")[0], output: []))
            }
        }
        return commands
    }

    private static func commands(ofConsole block: String) -> [ShownCommand] {
        "\n\(block)".components(separatedBy: "\n$ ").dropFirst().map { part in
            let lines = part.components(separatedBy: "\n")
            let end = lines.firstIndex { !$0.hasSuffix("\\") } ?? lines.count - 1
            return ShownCommand(
                command: lines[...end].joined(separator: "\n"),
                output: Array(lines[(end + 1)...])
            )
        }
    }
}
