import Foundation
import Testing
import WakeGateTestKit

@Suite("The Python library", .serialized, .timeLimit(.minutes(15)))
struct PythonLibraryTests {
    private static let environment = RunningGateway.root.appendingPathComponent(".build/venv-python")
    private static let python = PythonLibraryTests.environment.appendingPathComponent("bin/python").path
    private static let source = RunningGateway.root.appendingPathComponent("deploy/python")

    /// Builds the wheel and the sdist.
    private func package() throws -> (wheel: URL, sdist: URL) {
        try #require(FileManager.default.fileExists(atPath: Self.python), "run deploy/setup first")
        let command = RunningGateway.root.appendingPathComponent("deploy/package").path
        let built = try ChildProcess.run(command, ["--python"])
        let files = built.output.split(separator: "\n").map { URL(fileURLWithPath: String($0)) }
        try #require(files.count == 2, "\(built.errors)")
        return (files[0], files[1])
    }

    @Test("The wheel and the sdist are reproducible, and the tests of the sdist pass with the installed wheel")
    func installed() throws {
        let first = try self.package()
        let bytes = try [first.wheel, first.sdist].map { try Data(contentsOf: $0) }
        let built = try self.package()
        #expect(try [built.wheel, built.sdist].map { try Data(contentsOf: $0) } == bytes)
        let temporary = try TemporaryFolder()
        let folder = temporary.url
        let fresh = folder.appendingPathComponent("venv")
        let python = fresh.appendingPathComponent("bin/python").path
        // The dependencies are those of the environment that deploy/setup creates, so the test needs no network.
        let script = """
            set -euo pipefail
            "$1" -m venv --without-pip "$2"
            "$1" -m pip --quiet --disable-pip-version-check --python "$2/bin/python" install --no-deps --no-index "$3"
            packages='import sysconfig; print(sysconfig.get_paths()["purelib"])'
            "$1" -c "$packages" >"$("$2/bin/python" -c "$packages")/dependencies.pth"
            tar --extract --file "$4" --strip-components 1
            """
        let arguments = ["-c", script, "bash", Self.python, fresh.path, built.wheel.path, built.sdist.path]
        let made = try ChildProcess("bash", arguments, folder: folder).finish(within: 120)
        try #require(made.status == 0, "\(made.errors)")
        // Remove the sources, so that the tests use the installed wheel.
        try FileManager.default.removeItem(at: folder.appendingPathComponent("wakegate"))
        let tests = ["WAKEGATE_PROGRAM=\(RunningGateway.program)", python, "-m", "pytest", "-q", "tests"]
        let ended = try ChildProcess("env", tests, folder: folder).finish(within: 300)
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
        #expect(!ended.output.contains("skipped"), "\(ended.output)")
    }

    @Test("mypy finds nothing in strict mode")
    func typed() throws {
        try #require(FileManager.default.fileExists(atPath: Self.python), "run deploy/setup first")
        let cache = RunningGateway.root.appendingPathComponent(".build/mypy").path
        let arguments = ["-m", "mypy", "--strict", "--cache-dir", cache]
        let ended = try ChildProcess(Self.python, arguments, folder: Self.source).finish(within: 300)
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
    }
}
