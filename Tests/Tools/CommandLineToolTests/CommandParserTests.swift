import CommandLineTool
import Foundation
import Gateway
import Testing
import wakegate

extension ParsedCommand {
    /// Returns the command that a line runs.
    static func running(_ line: String) throws -> ParsedCommand {
        try self.running(words: line.split(separator: " ").map(String.init))
    }

    static func running(words: [String]) throws -> ParsedCommand {
        guard case .run(let parsed) = try CommandParser(CommandTable.all).parse(words) else {
            throw CommandFailure.usage("no command")
        }
        return parsed
    }
}

@Suite("Reading command lines")
struct CommandParserTests {
    private func fault(_ line: String) -> String {
        do throws(CommandFailure) {
            _ = try CommandParser(CommandTable.all).parse(line.split(separator: " ").map(String.init))
            return "no fault"
        } catch {
            #expect(error.status == .badUsage)
            return String(error.message.prefix { $0 != "\n" })
        }
    }

    @Test("Options, arguments and the command after -- are separated")
    func parts() throws {
        let push = try ParsedCommand.running("push --topic=a.b ab --count 3 --payload - --dry-run")
        #expect(push.arguments == ["ab"])
        #expect(push.text("--topic") == "a.b")
        #expect(push.integer("--count") == 3)
        #expect(push.text("--payload") == "-")
        #expect(push.isSet("--dry-run"))
        #expect(!push.isSet("--ca"))
        let worker = try ParsedCommand.running("worker --device a --topic t --device b -- cat --topic -x")
        #expect(worker.all("--device") == ["a", "b"])
        #expect(worker.trailing == ["cat", "--topic", "-x"])
        let conditions = try ParsedCommand.running("device conditions ab -- charging=true")
        #expect(conditions.command.name == "device conditions")
        #expect(conditions.arguments == ["ab", "charging=true"])
    }

    @Test(
        "A faulty line is refused with the fault and the remedy",
        arguments: [
            ("", "no command was given; try `wakegate dev`, or `wakegate --help` for all commands"),
            ("psuh", "unknown command \"psuh\"; did you mean `wakegate push`?"),
            ("xyzzyxyzzy", "unknown command \"xyzzyxyzzy\"; see `wakegate --help`"),
            ("--verison", "unknown option --verison; did you mean --version?"),
            (
                "device",
                "`wakegate device` needs one of: list, register, remove, conditions, events, watch, launch, drop, "
                    + "expire"
            ),
            ("device remoev a", "unknown command \"device remoev\"; did you mean `wakegate device remove`?"),
            (
                "why ab",
                "unknown command \"why\"; `wakegate stats --device TOKEN` explains a device, and "
                    + "`wakegate doctor TOKEN` says what would help"
            ),
            ("push lst", "unknown command \"push lst\"; did you mean `wakegate push list`?"),
            ("task", "`wakegate task` needs one of: submit, list, cancel, launch, expire, finished"),
            ("task submit ab --kind appRefresh", "ID is missing"),
            ("task submit ab a.b", "--kind KIND is missing"),
            ("task finished ab s --count 0", "--count is \"0\"; write a whole number from 1 to 100000"),
            ("push a --topc t", "unknown option --topc; did you mean --topic?"),
            ("push a --zzzzzzzzz t", "unknown option --zzzzzzzzz"),
            ("push a -t x", "unknown option -t"),
            ("push a", "--topic TOPIC is missing"), ("push", "TOKEN and --topic TOPIC are missing"),
            ("push --topic t", "TOKEN is missing"),
            ("push a b --topic t", "\"b\" is one argument too many"),
            ("push a --topic", "--topic needs a value; write --topic TOPIC"),
            ("push a --topic --count 1", "--topic needs a value; write --topic TOPIC"),
            ("push a --topic= --count 1", "--topic has an empty value; write --topic TOPIC"),
            ("push a --topic t --topic u", "--topic was given twice; give it once"),
            ("push a --topic t --count x", "--count is \"x\"; write a whole number from 1 to 10000000"),
            ("push a --topic t --count 0", "--count is \"0\"; write a whole number from 1 to 10000000"),
            ("push a --topic t --count -1", "--count is \"-1\"; write a whole number from 1 to 10000000"),
            ("push a --topic t --dry-run=1", "--dry-run takes no value; write --dry-run alone"),
            ("worker --topic t", "the command to run is missing; put it after --"),
            ("worker --topic t --", "the command to run is missing; put it after --"),
            ("worker --topic t cat -- cat", "\"cat\" is one argument too many"),
            ("worker --topic t --slots 4097 -- cat", "--slots is \"4097\"; write a whole number from 1 to 4096"),
            (
                "push a --topic t --wait --timeout 1w",
                "--timeout is \"1w\"; write a duration from 1 s to 2592000 s, such as 90 or 10m"
            ),
            ("serve --help kyes", "serve has no help on \"kyes\"; there is help on: keys, limits"),
            (
                "push a --topic t --wait --timeout 0",
                "--timeout is \"0\"; write a duration from 1 s to 2592000 s, such as 90 or 10m"
            ),
            (
                "push a --topic t --wait --timeout 31d",
                "--timeout is \"31d\"; write a duration from 1 s to 2592000 s, such as 90 or 10m"
            ),
            ("dev --set policy", "--set is \"policy\"; write --set KEY=VALUE"),
            (
                "task submit ab a.b --kind apprefresh",
                "--kind is \"apprefresh\"; write appRefresh, processing or continued; did you mean appRefresh?"
            ),
            ("task submit ab a.b --kind continued --strategy now", "--strategy is \"now\"; write queue or fail"),
            ("task list --state wating", "--state is \"wating\"; write waiting or running; did you mean waiting?"),
            ("transfer session s --metered perhaps", "--metered is \"perhaps\"; write yes or no"),
            ("worker --topic t --resource fpga -- cat", "--resource is \"fpga\"; write gpu"),
            ("serve --confg f", "unknown option --confg; did you mean --config?"),
        ]
    )
    func faults(line: String, message: String) {
        #expect(self.fault(line) == message)
    }

    /// Returns the help that a line asks for: its text if it is a page, or a name of it.
    private func help(_ words: [String]) throws -> String {
        switch try CommandParser(CommandTable.all).parse(words) {
        case .run(let parsed): "none: it runs \(parsed.command.name)"
        case .help: "program"
        case .version: "version"
        case .helpOf(let command): "command \(command.name)"
        case .helpOfGroup(let group): "group \(group)"
        case .helpPage(let page): page
        }
    }

    @Test("Help and version are found wherever people look for them")
    func help() throws {
        #expect(try self.help(["--help"]) == "program")
        #expect(try self.help(["--version"]) == "version")
        #expect(try self.help(["device", "--help"]) == "group device")
        for command in CommandTable.all {
            #expect(try self.help(command.words + ["--help"]) == "command \(command.name)")
        }
        for word in ["keys", "limits"] {
            for page in [try self.help(["serve", "--help", word]), try self.help(["serve", "--help=\(word)"])] {
                #expect(page.contains("  edge: ") == (word == "keys"))
                #expect(page.contains("  limits.") == (word == "limits"))
                #expect(page.contains("  limits.devicesMax: ") == (word == "limits"))
            }
        }
    }

    @Test("Each help shows the usage, every option and an example that parses", arguments: CommandTable.all.map(\.name))
    func examples(name: String) throws {
        let command = try #require(CommandTable.all.first { $0.name == name })
        let text = HelpText.command(command)
        #expect(text.contains("usage: wakegate \(name)"))
        for option in command.options { #expect(text.contains(option.usage)) }
        #expect(text.contains(command.example))
        let line = try #require(command.example.components(separatedBy: "wakegate ").last)
        #expect(try ParsedCommand.running(line).command.name == name)
        #expect(HelpText.program(CommandTable.all).contains(command.summary))
    }
}

@Suite("Manual pages made from the definitions")
struct ManualPageTests {
    private func page(_ name: String) throws -> String {
        try #require(ManualPage.all(of: CommandTable.all, keys: KeyManual.manual).first { $0.name == name }).text
    }

    @Test("Each command's page shows every option and argument", arguments: CommandTable.all.map(\.name))
    func commands(name: String) throws {
        let command = try #require(CommandTable.all.first { $0.name == name })
        let page = try self.page("wakegate-" + command.words.joined(separator: "-"))
        for option in command.options {
            let escaped = option.name.dropFirst(2).replacing("-", with: "\\-")
            #expect(page.contains("Fl \\-\(escaped)"), "\(option.name)")
        }
        for argument in command.arguments { #expect(page.contains(argument.placeholder)) }
        #expect(try self.page("wakegate").contains(".It Xr wakegate-\(command.words.joined(separator: "-")) 1"))
    }

    @Test("The page of the configuration shows every key")
    func configuration() throws {
        let page = try self.page("wakegate.json5")
        for key in GatewayConfiguration.keys { #expect(page.contains(".It Va \(key.name)\n"), "\(key.name)") }
        #expect(page.contains(".It Va topics.TOPIC.tasks\n"))
    }

    @Test("The program's page lists the variables and where they apply")
    func variables() throws {
        let page = try self.page("wakegate")
        for name in [
            "WAKEGATE_URL", "WAKEGATE_CA", "WAKEGATE_TOKEN_FILE", "WAKEGATE_TOKEN", "WAKEGATE_CERT", "WAKEGATE_KEY",
            "XDG_CONFIG_HOME",
        ] {
            #expect(page.contains(".It Ev \(name)\n"), "\(name)")
        }
        #expect(page.contains("An option overrides the variables"))
        #expect(HelpText.program(CommandTable.all).contains("An option overrides the variables"))
    }

    @Test("Manual pages refer only to existing pages, and each has its own file")
    func references() throws {
        let names = Set(ManualPage.all(of: CommandTable.all, keys: KeyManual.manual).map { "\($0.name) \($0.section)" })
        #expect(names.count == ManualPage.all(of: CommandTable.all, keys: KeyManual.manual).count)
        for page in ManualPage.all(of: CommandTable.all, keys: KeyManual.manual) {
            for line in page.text.split(separator: "\n") where line.contains("Xr ") {
                let words = line.split(separator: " ")
                let index = try #require(words.firstIndex { $0 == ".Xr" || $0 == "Xr" })
                #expect(names.contains("\(words[index + 1]) \(words[index + 2])"), "\(page.name): \(line)")
            }
        }
    }
}
