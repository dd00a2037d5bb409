/// The commands that pages show for pasting, and the tests that run them.
enum ShownCommands {
    /// A command that no test runs exactly as shown.
    struct Unrun {
        let page: String
        let command: String
        /// The reason why no test runs it, and what is tested instead.
        let reason: String
    }

    private static let articles = "Sources/Server/Gateway/Gateway.docc"
    private static let manyGateways = "\(Self.articles)/ManyGateways.md"

    /// The tests that run the commands of a page, except the commands that are listed as not run.
    static let runners: [String: [String]] = {
        let pages = [
            "PageTests": [
                "APNsClients", "Configuration", "ContinuousIntegration", "TestingABackend", "UpgradingAndRollback",
            ],
            "ArticleTests": [
                "BackgroundTasks", "Checklist", "ContinuedTasks", "Credentials", "FaultMode", "ManyGateways",
                "Reloading", "Transfers", "Webhooks",
            ],
            "ShownCommandTests": [
                "Bounds", "Dashboard", "DeliveryLog", "SizingACluster", "Tracing", "Workers", "Logs",
            ],
        ]
        var runners = [
            "README.md": ["PageTests"],
            "Sources/Core/Policy/Policy.docc/Traces.md": ["ShownCommandTests"],
            "Sources/Transfers/TransferAgent/TransferAgent.docc/OperatingTransfers.md": ["ShownCommandTests"],
        ].mapValues { $0.map(Self.endToEnd) }
        for (test, articles) in pages {
            for article in articles { runners["\(Self.articles)/\(article).md"] = [Self.endToEnd(test)] }
        }
        // Commands that need a separate machine with systemd.
        for article in ["OperatorsGuide", "Workers", "Logs"] {
            runners["\(Self.articles)/\(article).md", default: []].append("deploy/test-package")
        }
        return runners
    }()

    static let unrun = [
        Unrun(
            page: Self.manyGateways,
            command: "apt-get install --yes --no-install-recommends postgresql-common",
            reason: "it is for three machines; PostgresDeploymentTests has a server read the files that come next"
        ),
        Unrun(
            page: Self.manyGateways,
            command: "echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/wakegate.conf",
            reason: "as the one before it"
        ),
        Unrun(
            page: Self.manyGateways,
            command: "apt-get install --yes --no-install-recommends postgresql-15 patroni etcd-server",
            reason: "as the one before it"
        ),
        Unrun(
            page: Self.manyGateways,
            command: "cd /etc/wakegate/database",
            reason: "it is for a gateway's machine; PostgresDeploymentTests checks the same file on a server of its own"
        ),
        Unrun(
            page: Self.manyGateways,
            command: "export PGSSLROOTCERT=$PWD/ca.pem PGSSLCERT=$PWD/wakegate.pem PGSSLKEY=$PWD/wakegate.key",
            reason: "as the one before it"
        ),
        Unrun(
            page: Self.manyGateways,
            command: "wakegate serve --config /etc/wakegate/wakegate.json5 --check",
            reason: "as the one before it"
        ),
        Unrun(
            page: "\(Self.articles)/Workers.md",
            command: "loginctl show-seat seat0 --property=IdleHint",
            reason: "it asks a logind, whose answers AppStateTests gives on a bus of its own"
        ),
        Unrun(
            page: "\(Self.articles)/Fuzzing.md",
            command: "deploy/fuzz --seconds 125 json-gate http2",
            reason: "it builds for minutes; ShownCommandTests sees that it would be run"
        ),
        Unrun(
            page: "Sources/Transfers/TransferAgent/TransferAgent.docc/OperatingTransfers.md",
            command: "systemctl enable --now wakegate-transfers@alice.service",
            reason: "it needs systemd, by which SystemdTests has the unit judged"
        ),
    ]

    /// The beginnings of command lines, in a block that is not marked as having commands.
    private static let beginnings = [
        "$ ", "apt-get ", "curl ", "deploy/", "journalctl ", "openssl ", "podman ", "sudo ", "systemctl ", "wakegate ",
    ]

    /// Returns the pages whose commands no test runs, the tests that do not name their page, and the entries that are
    /// not needed.
    static func violations(
        in pages: [String],
        runners: [String: [String]] = Self.runners,
        unrun: [Unrun] = Self.unrun,
        text: (String) throws -> String
    ) rethrows -> [Violation] {
        var violations: [Violation] = []
        for page in pages {
            let blocks = self.blocks(in: try text(page))
            violations += blocks.flatMap { self.hidden(in: $0, of: page) }
            let commands = blocks.flatMap { self.commands(in: $0) }
            let left = commands.filter { command in !unrun.contains { $0.page == page && $0.command == command.text } }
            let tests = runners[page] ?? []
            if let first = left.first, tests.isEmpty {
                let message = "no test runs \"\(first.text)\"; have one do so, or list it in ShownCommands"
                violations.append(Violation(path: page, line: first.line, message: message))
            }
            if left.isEmpty, !tests.isEmpty {
                violations.append(Violation(path: page, line: 1, message: "it shows no command that a test could run"))
            }
            let name = page.split(separator: "/").last.map { $0.dropLast(".md".count) } ?? ""
            for test in tests {
                guard !self.names(try text(test), name) else { continue }
                violations.append(Violation(path: test, line: 1, message: "it does not run what \(page) shows"))
            }
            for entry in unrun where entry.page == page && !commands.contains(where: { $0.text == entry.command }) {
                violations.append(Violation(path: page, line: 1, message: "it does not show \"\(entry.command)\""))
            }
        }
        let known = Set(pages)
        violations += (runners.keys.sorted() + unrun.map(\.page)).filter { !known.contains($0) }
            .map { Violation(path: $0, line: 1, message: "there is no such page; take it out of ShownCommands") }
        return violations
    }

    // MARK: Pages

    private struct Block {
        let language: String
        /// The lines between the fences, with their numbers.
        var lines: [(line: Int, text: String)] = []
    }

    private static func blocks(in text: String) -> [Block] {
        var blocks: [Block] = []
        var open: Block?
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if let block = open {
                if line == "```" {
                    blocks.append(block)
                    open = nil
                } else {
                    open?.lines.append((index + 1, String(line)))
                }
            } else if line.hasPrefix("```") {
                open = Block(language: String(line.dropFirst(3)))
            }
        }
        return blocks
    }

    /// Returns the commands of a block: each line of a script, and the text after each prompt.
    private static func commands(in block: Block) -> [(line: Int, text: String)] {
        switch block.language {
        case "sh": block.lines.filter { !$0.text.isEmpty && !$0.text.hasPrefix("#") }
        case "console":
            block.lines.filter { $0.text.hasPrefix("$ ") || $0.text.hasPrefix("# ") }
                .map { ($0.line, String($0.text.dropFirst(2))) }
        default: []
        }
    }

    private static func hidden(in block: Block, of page: String) -> [Violation] {
        // Output may begin like a command.
        let beginnings =
            switch block.language {
            case "", "bash", "shell": self.beginnings
            case "text": ["$ "]
            default: [String]()
            }
        return block.lines.filter { line in beginnings.contains { line.text.hasPrefix($0) } }.map {
            Violation(path: page, line: $0.line, message: "a command in a block that is neither sh nor console")
        }
    }

    /// Returns true if a test's text names a page.
    private static func names(_ test: String, _ page: Substring) -> Bool {
        test.contains("\"\(page)\"") || test.contains("\(page).md") || test.contains("shown \(page) ")
    }

    private static func endToEnd(_ suite: String) -> String { "Tests/EndToEndTests/\(suite).swift" }
}
