import Foundation
import Testing
import WakeGateTestKit

/// Runs the blocks that a reader pastes, unchanged, in a separate network namespace where every port is free.
@Suite("Blocks of the pages", .serialized, .timeLimit(.minutes(15)))
struct PageTests {
    private static let articles = "Sources/Server/Gateway/Gateway.docc"

    @Test("Each block of the README runs unchanged and prints the output shown below it")
    func readme() throws {
        try self.run("README.md")
    }

    @Test(
        "Each block of an article runs unchanged and prints the output shown below it",
        arguments: ["APNsClients", "Configuration", "ContinuousIntegration", "TestingABackend", "UpgradingAndRollback"]
    )
    func article(name: String) throws {
        try self.run("\(Self.articles)/\(name).md")
    }

    @Test("The README has at most 120 lines")
    func length() throws {
        let text = try Checkout.text("README.md")
        #expect(text.count { $0 == "\n" } <= 120)
        // A prompt or output in a block would be pasted as well.
        #expect(!text.contains("```console"))
    }

    @Test("The driver of these tests finds a block that prints something else, fails, or does not end")
    func faults() throws {
        let folder = try RestartFolder()
        let page = folder.folder.appendingPathComponent("page.md")
        for (block, shown, fault) in [
            ("echo one", "two", "and not:"), ("echo one; false", "one", "ended with 1"),
            ("printf 'one\\ntwo\\n'", "one", "and not:"),
        ] {
            try Data("```sh\n\(block)\n```\n```text\n\(shown)\n```\n".utf8).write(to: page)
            let ended = try self.ended(page.path)
            #expect(ended.status == 1 && ended.output.contains(fault), "\(ended.output) \(ended.errors)")
        }
        try Data("```sh\necho one ... 2026-11-21T08:18:42Z\n```\n```text\none ... 2025-01-01T00:00:00Z\n```\n".utf8)
            .write(to: page)
        #expect(try self.ended(page.path).status == 0)
    }

    private func run(_ path: String) throws {
        let ended = try self.ended(RunningGateway.root.appendingPathComponent(path).path)
        #expect(ended.status == 0, "\(ended.output)\n\(ended.errors)")
    }

    private func ended(_ page: String) throws -> ChildProcess.Ended {
        let scratch = try RestartFolder()
        let root = RunningGateway.root
        // A checkout: files are read from this one, and new files stay in the scratch directory.
        for name in ["Package.swift", "README.md", "Sources", "Tests", "certs", "deploy"] {
            try FileManager.default.createSymbolicLink(
                at: scratch.folder.appendingPathComponent(name),
                withDestinationURL: root.appendingPathComponent(name)
            )
        }
        let products = RunningGateway.products
        let build = scratch.folder.appendingPathComponent(".build")
        try FileManager.default.createDirectory(at: build, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            at: build.appendingPathComponent("release"),
            withDestinationURL: products
        )
        let script = RunningGateway.client("page_terminals.py")
        let spaces = ["--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        let words = ["python3", script, page, scratch.folder.path, products.path, root.path]
        return try ChildProcess("unshare", spaces + words).finish(within: 600)
    }
}
