import Foundation
import Testing

@Suite("What the image is made of", .timeLimit(.minutes(15)))
struct ImageTests {
    private func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: RunningGateway.root.appendingPathComponent(path)), as: UTF8.self)
    }

    @Test("The test of the image builds and runs it with the options that its first lines name")
    func options() throws {
        let lines = try self.text("deploy/Containerfile").split(separator: "\n").prefix { $0.hasPrefix("#") }
        let options = lines.joined(separator: " ").matches(
            of: #/--(?:format|read-only|cap-drop|security-opt)(?: [a-z][a-z-]*)?/#
        )
        #expect(options.count == 4)
        let test = try self.text("deploy/test-image")
        for option in options { #expect(test.contains("\(option.0)"), "deploy/test-image lacks \(option.0)") }
    }

    @Test("It ends in an unprivileged user, whom SIGTERM stops, and has a health check")
    func beginning() throws {
        let image = try #require(try self.text("deploy/Containerfile").components(separatedBy: "\nFROM ").last)
        for line in ["USER 65532:65532", "STOPSIGNAL SIGTERM", "ENTRYPOINT [\"/usr/bin/wakegate\"]"] {
            #expect(image.contains("\n\(line)\n"))
        }
        #expect(image.contains(#"CMD ["/usr/bin/wakegate", "health"]"#) && image.contains("\nHEALTHCHECK "))
    }

    @Test("As its file has it, it gets ready, runs without any right on a root that is read-only, drains, and goes on")
    func run() throws {
        let folder = try RestartFolder()
        let root = RunningGateway.root.path
        let script = "\(root)/Tests/EndToEndTests/Clients/bare_root.py"
        let spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        let words = ["python3", script, root, RunningGateway.program, folder.folder.path]
        let ended = try ChildProcess("unshare", spaces + words).finish(within: 300)
        #expect(ended.status == 0, "\(ended.output)\n\(ended.errors)")
    }

    @Test("It has every library of Debian's that the program needs")
    func libraries() throws {
        let image = try #require(try self.text("deploy/Containerfile").components(separatedBy: "\nFROM ").last)
        let installed = Set(image.split { " \n\\".contains($0) }.map(String.init))
        let dynamic = try ChildProcess.run("readelf", ["--dynamic", "--wide", RunningGateway.program])
        let names = dynamic.output.matches(of: #/\(NEEDED\).*\[(.+)\]/#).map { String($0.1) }
        #expect(names.count > 6)
        var packages: Set<String> = []
        for name in names {
            // What belongs to no package is the toolchain's, and within the program in an image.
            let owner = try ChildProcess.run("dpkg", ["--search", "*/\(name)"])
            if let package = owner.output.split(separator: ":").first { packages.insert(String(package)) }
        }
        #expect(packages.contains("libnghttp2-14"))
        #expect(packages.subtracting(["libc6", "libgcc-s1"]).subtracting(installed).isEmpty)
    }
}
