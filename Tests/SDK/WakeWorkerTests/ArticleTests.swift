import Foundation
import Testing
import WakeGateTestKit

@Suite("The articles of the SDK", .timeLimit(.minutes(15)))
struct ArticleTests {
    /// The imports of the blocks of Swift in articles, and the functions that the articles leave to the reader's app.
    private static let assumed = """
        import BackgroundTransfers
        import Foundation
        import WakeWorker
        import WakeWorkerTesting
        struct Film { let url: String, name: String, sha256: String }
        struct News: Decodable { let edition: Int }
        func downloadArchive() async throws {}
        func export(_ identifier: String) async throws {}
        func fetch(edition: Int) async throws -> Bool { edition > 0 }
        func loadFilms(_ identifier: String) async throws -> [String] { [identifier] }
        func log(_ line: String) {}
        func refreshFeed() async -> Bool { true }
        func show(_ transfer: BackgroundTransferID, _ fraction: Double) {}
        func sortPhotos(count: Int) async throws {}

        """

    @Test(
        "The blocks of Swift in an article compile",
        arguments: ["BackgroundTransfers/TransferringFiles", "WakeWorker/ComingFromIOS", "WakeWorker/HandlingWakes"]
    )
    func compiles(article: String) throws {
        let name = article.split(separator: "/")
        let text = try Checkout.text("Sources/SDK/\(name[0])/\(name[0]).docc/\(name[1]).md")
        // Only a block is preceded by its language.
        let blocks = text.components(separatedBy: "```").filter { $0.hasPrefix("swift\n") }.map { $0.dropFirst(6) }
        #expect(blocks.count >= 6)
        let folder = try TemporaryFolder()
        let file = "\(folder.path)/article.swift"
        try (Self.assumed + blocks.joined()).write(toFile: file, atomically: false, encoding: .utf8)
        let options = ["-typecheck", "-parse-as-library", "-warnings-as-errors", "-swift-version", "6"]
        let found = try Children.run("swiftc", options + Self.modules().flatMap { ["-I", $0] } + [file])
        #expect(found.status == 0, "\(found.errors)")
    }

    /// Returns the folders of the modules of Swift, which are built next to the tests, and of the C libraries.
    private static func modules() throws -> [String] {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let libraries = Checkout.root.appendingPathComponent("Sources/Libraries").path
        let names = try FileManager.default.contentsOfDirectory(atPath: libraries)
        return [URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("Modules").path]
            + names.flatMap { ["\(libraries)/\($0)", "\(libraries)/\($0)/include"] }
    }
}
