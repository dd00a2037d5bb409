import CommandLineTool
import Gateway
import Testing
import wakegate

@Suite("Manual pages made from the definitions")
struct ManualPageTests {
    private func page(_ name: String) throws -> String {
        try #require(ManualPage.all(of: CommandTable.all, keys: KeyManual.all).first { $0.name == name }).text
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
        for key in ConfigurationKey.all { #expect(page.contains(".It Va \(key.name)\n"), "\(key.name)") }
        #expect(page.contains(".It Va topics.TOPIC.tasks\n"))
    }

    @Test("The program's page has the variables, and where they stand")
    func variables() throws {
        let page = try self.page("wakegate")
        for name in ["WAKEGATE_URL", "WAKEGATE_CA", "WAKEGATE_TOKEN", "XDG_CONFIG_HOME"] {
            #expect(page.contains(".It Ev \(name)\n"), "\(name)")
        }
        #expect(page.contains("An option wins over the variables"))
        #expect(HelpText.program(CommandTable.all).contains("An option wins over the variables"))
    }

    @Test("Pages refer to pages that are there, and each has a file of its own")
    func references() throws {
        let names = Set(ManualPage.all(of: CommandTable.all, keys: KeyManual.all).map { "\($0.name) \($0.section)" })
        #expect(names.count == ManualPage.all(of: CommandTable.all, keys: KeyManual.all).count)
        for page in ManualPage.all(of: CommandTable.all, keys: KeyManual.all) {
            for line in page.text.split(separator: "\n") where line.contains("Xr ") {
                let words = line.split(separator: " ")
                let index = try #require(words.firstIndex { $0 == ".Xr" || $0 == "Xr" })
                #expect(names.contains("\(words[index + 1]) \(words[index + 2])"), "\(page.name): \(line)")
            }
        }
    }
}
