import Foundation
import Testing

@Suite("The repository keeps its style", .timeLimit(.minutes(15)))
struct TidyTests {
    @Test("Every source file follows every rule, except for the listed exceptions, and each exception is needed")
    func sources() throws {
        let files = try Repository.sources()
        #expect(files.count > 50, "the tidy test must see the sources")
        let violations = files.flatMap {
            BannedWords.violations(in: $0) + OneWay.violations(in: $0) + Lengths.violations(in: $0)
                + DocComments.violations(in: $0)
        }
        let all =
            violations + ModuleImports.violations(in: files) + FolderLayers.violations(in: files)
            + UnsafeCode.violations(in: files) + Bounds.violations(in: files)
        let remaining = Exceptions.remaining(all)
        #expect(remaining.isEmpty, "\n\(remaining.map(\.description).joined(separator: "\n"))")
        #expect(Exceptions.unused(for: all).isEmpty)
        #expect(Exceptions.all.count { $0.rule == "@testable" } <= 2, "tests use a module's interface")
        #expect(OneWay.unneeded(for: files).isEmpty)
        #expect(UnsafeCode.unneeded(for: files).isEmpty)
    }

    @Test("Pages, comments and texts keep to plain English, within their budgets", arguments: Wording.Kind.allCases)
    func wording(kind: Wording.Kind) throws {
        var lines: [(path: String, Wording.Line)] = []
        if kind == .documentation {
            for path in try Repository.committedFiles() where path.hasSuffix(".md") {
                lines += Wording.lines(ofPage: try Repository.text(of: path)).map { (path, $0) }
            }
        } else {
            for file in try Repository.sources() {
                lines += Wording.lines(in: file).filter { $0.kind == kind }.map { (file.path, $0) }
            }
        }
        #expect(lines.count > 5000, "the tidy test must see the texts")
        let hints = lines.flatMap { path, line in Wording.hints(in: line).map { "\(path):\(line.number): \($0)" } }
        let maximum = lines.count * kind.budget / 1000
        #expect(hints.count <= maximum, "\(hints.count) hints, at most \(maximum):\n\(hints.joined(separator: "\n"))")
    }

    @Test("The top level has exactly the visible entries that the style names")
    func topLevel() throws {
        let unexpected = Layout.unexpected(in: try Repository.topLevel())
        #expect(unexpected.isEmpty)
    }

    @Test("Every folder of every module is named in its module's order")
    func folders() throws {
        let files = try Repository.committedFiles()
        #expect(files.count > 50, "the tidy test must see the files")
        #expect(FolderLayers.unexpected(in: files).isEmpty)
    }

    @Test("No private key is committed, and git ignores the keys in certs")
    func privateKeys() throws {
        let files = try Repository.committedFiles()
        #expect(files.count > 50, "the tidy test must see the files")
        for path in files {
            #expect(Layout.privateKeys(path: path, text: try Repository.text(of: path)).isEmpty)
        }
        let ignored = try Repository.text(of: "certs/.gitignore").split(separator: "\n")
        #expect(ignored == ["*", "!.gitignore", "!README.md"])
    }

    @Test("Every link of every page leads somewhere")
    func links() throws {
        let pages = try Repository.committedFiles().filter { $0.hasSuffix(".md") }
        #expect(pages.contains("README.md"))
        for path in pages {
            let dead = Layout.deadLinks(path: path, text: try Repository.text(of: path), exists: Repository.exists)
            #expect(dead.isEmpty)
        }
    }

    @Test("Every library module has its catalog, which leads to all of its articles")
    func catalogs() throws {
        let files = try Repository.committedFiles()
        #expect(files.filter { $0.contains(".docc/") }.count > 20, "the tidy test must see the catalogs")
        let found = try Catalogs.violations(in: files, text: Repository.text)
        #expect(found.isEmpty, "\n\(found.map(\.description).joined(separator: "\n"))")
    }

    @Test("Every link of the catalogs to a symbol names a declaration")
    func symbols() throws {
        let declared = Catalogs.declarations(in: try Repository.sources())
        let pages = try Repository.committedFiles().filter { $0.contains(".docc/") && $0.hasSuffix(".md") }
        let found = try pages.flatMap {
            Catalogs.deadSymbols(path: $0, text: try Repository.text(of: $0), declared: declared)
        }
        #expect(found.isEmpty, "\n\(found.map(\.description).joined(separator: "\n"))")
        let dead = Catalogs.deadSymbols(path: "A.md", text: "``Catalogs/none(of:)``", declared: declared)
        #expect(dead.count == 2, "a dead link is found")
    }

    @Test("Every file and function on the push path page exists, and the page's figures match its rows")
    func pushPath() throws {
        let text = try Repository.text(of: PushPath.page)
        #expect(PushPath.steps(in: text).count > 100, "the tidy test must see the page's rows")
        let files = try Repository.committedFiles()
        let found = try PushPath.violations(in: text, files: files, text: Repository.text)
        #expect(found.isEmpty, "\n\(found.map(\.description).joined(separator: "\n"))")
    }

    @Test("The page of locks lists every lock of the sources, in locking order")
    func locks() throws {
        let files = try Repository.sources()
        #expect(Locks.declared(in: files).count > 30, "the tidy test must see the locks")
        let text = try Repository.text(of: Locks.page)
        #expect(Locks.listed(in: text).contains { $0.taken.count > 5 }, "the tidy test must see taken locks")
        let found =
            try Locks.violations(in: text, files: files)
            + PushPath.missing(in: text, of: Locks.page, files: Repository.committedFiles(), text: Repository.text)
        #expect(found.isEmpty, "\n\(found.map(\.description).joined(separator: "\n"))")
    }

    @Test("The gateway's page names the command that builds the documentation, and there is one")
    func documentationCommand() throws {
        let page = try Repository.text(of: "Sources/Server/Gateway/Gateway.docc/Gateway.md")
        #expect(page.contains("`\(Catalogs.command)`"))
        #expect(FileManager.default.isExecutableFile(atPath: Repository.root.appending(path: Catalogs.command).path))
    }
}
