import Foundation
import Glibc
import Testing

@Suite("Manual and completions of the program", .serialized, .timeLimit(.minutes(15)))
struct DocumentationTests {
    @Test("mandoc finds nothing wrong with any page, and every command has one")
    func manual() throws {
        let folder = try RestartFolder()
        let written = try ChildProcess.wakegate(["manual", folder.folder.path])
        try #require(written.status == 0, "\(written.errors)")
        let pages = ["man1", "man5"].flatMap { section in
            let path = folder.folder.appendingPathComponent(section).path
            return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).map { "\(path)/\($0)" }
        }
        #expect(pages.count > 20)
        let linted = try ChildProcess.run("mandoc", ["-T", "lint", "-W", "warning"] + pages)
        #expect(linted.output == "")
        #expect(linted.status == 0)
        let page = try ChildProcess.run("mandoc", ["-T", "ascii", "\(folder.folder.path)/man1/wakegate-push.1"])
        // Remove the overstrikes that make letters bold on paper.
        let text = page.output.replacing(#/.\x08/#, with: "")
        #expect(text.contains("WAKEGATE-PUSH(1)"))
        #expect(text.contains("--topic TOPIC\n"))
        #expect(text.contains("wakegate(1), wakegate.json5(5)"))
    }

    @Test("A folder that cannot be written to is named")
    func manualRefused() throws {
        let ended = try ChildProcess.wakegate(["manual", "/proc/nowhere"])
        #expect(ended.status == 1)
        #expect(ended.errors.contains("/proc/nowhere/man1/wakegate.1 cannot be written"))
    }

    @Test("A pipe in the place of a page stays, and the command ends without a reader of it")
    func manualOverPipe() throws {
        let folder = try RestartFolder()
        let section = folder.folder.appendingPathComponent("man1")
        let page = section.appendingPathComponent("wakegate.1").path
        try FileManager.default.createDirectory(at: section, withIntermediateDirectories: true)
        let isMade = unsafe mkfifo(page, 0o600) == 0
        #expect(isMade)
        let ended = try ChildProcess.wakegate(["manual", folder.folder.path])
        #expect(ended.status == 1 && ended.errors.contains("not a regular file"), "\(ended.errors)")
        let type = try FileManager.default.attributesOfItem(atPath: page)[.type] as? FileAttributeType
        #expect(type != .typeRegular)
    }

    @Test("A tab completes commands, options, values and files in a real shell", arguments: ["bash", "zsh", "fish"])
    func completions(shell: String) throws {
        let folder = try RestartFolder()
        let file = folder.folder.appendingPathComponent("wakegate.json5").path
        try Data().write(to: URL(fileURLWithPath: file))
        let lines = [
            ("wakegate pus", "push"),
            ("wakegate device cond", "device conditions"),
            ("wakegate push --top", "push --topic"),
            ("wakegate key add --team T --key-", "key add --team T --key-id"),
            ("wakegate token issue --role wor", "token issue --role worker"),
            ("wakegate token issue --role=oper", "token issue --role=operator"),
            ("wakegate dev --set log.lev", "dev --set log.level="),
            ("wakegate completion fi", "completion fish"),
            ("wakegate serve --config \(file.dropLast(3))", "serve --config \(file)"),
            ("wakegate serve --config \(file) --chec", "serve --config \(file) --check"),
            ("wakegate serve --config=\(file.dropLast(3))", "serve --config=\(file)"),
            ("wakegate serve --config=~/_wakeg", "serve --config=~/_wakegate"),
            ("wakegate serve --check --che", "serve --check --che"),
            ("wakegate serve --check=", "serve --check="),
            ("wg serve --chec", "serve --check"),
            ("wakegate serve --help lim", "serve --help limits"),
            ("wakegate worker --topic t -- printen", "worker --topic t -- printenv"),
            ("wakegate worker --topic t -- cat \(file.dropLast(3))", "worker --topic t -- cat \(file)"),
            ("wakegate worker --topic t -- ls -l \(file.dropLast(3))", "worker --topic t -- ls -l \(file)"),
            ("wakegate worker --topic t -- tar --file=\(file.dropLast(3))", "worker --topic t -- tar --file=\(file)"),
        ]
        let script = RunningGateway.client("completions.py")
        let ended = try ChildProcess.run("python3", [script, shell, RunningGateway.program] + lines.map(\.0))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.split(separator: "\n").map(String.init) == lines.map(\.1))
    }

    @Test("Completions for an unknown shell are refused with a list of the known shells")
    func unknownShell() throws {
        let ended = try ChildProcess.wakegate(["completion", "tcsh"])
        #expect(ended.status == EX_USAGE)
        #expect(ended.errors.contains("write bash, zsh or fish"))
    }
}
