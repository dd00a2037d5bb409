import Foundation
import Testing
import WakeGateTestKit

@Suite("The Debian package", .timeLimit(.minutes(15)))
struct PackageTests {
    @Test("The test of the package runs every command of the operator's guide, in the guide's order")
    func guide() throws {
        let guide = try Checkout.article("OperatorsGuide")
        let sections = guide.components(separatedBy: "\n### ").dropFirst()
        let headings = sections.filter { $0.contains("\n```sh\n") }.compactMap {
            $0.components(separatedBy: "\n").first
        }
        #expect(headings.count >= 8)
        // Blocks above the first heading would not be run by any test.
        #expect(guide.components(separatedBy: "\n```sh\n").count - 1 == headings.count)
        let run = try Checkout.text("deploy/test-package").matches(of: #/(?m)^as_guide "(.+)"$/#).map { String($0.1) }
        #expect(run == headings)
    }

    @Test("The package has the program's version")
    func version() throws {
        let first = try #require(try Checkout.text("deploy/debian/changelog").split(separator: "\n").first)
        let program = try ChildProcess.wakegate(["--version"])
        let version = try #require(program.output.split(separator: " ").dropFirst().first)
        #expect(first.hasPrefix("wakegate (\(version)) "))
    }

    @Test(
        "The package's program and the image's are made as the one that is measured",
        arguments: ["deploy/package", "deploy/Containerfile", "deploy/bench", "deploy/soak"]
    )
    func linking(_ file: String) throws {
        let text = try Checkout.text(file)
        #expect(text.contains("deploy/build --shipped --product"))
        #expect(text.contains("deploy/build --shipped --show-bin-path"))
        #expect(!text.contains("swift build"))
    }

    @Test("The shipped program is optimized as a whole, statically linked with Swift, and has its own build folder")
    func shipped() throws {
        let folder = try RestartFolder()
        // Print the options with which the compiler would be called.
        let compiler = folder.folder.appendingPathComponent("swift").path
        try FileManager.default.createSymbolicLink(atPath: compiler, withDestinationPath: "/bin/echo")
        func words(_ options: [String]) throws -> String {
            let path = "PATH=\(folder.folder.path):/usr/bin:/bin"
            return try ChildProcess.run("env", [path, "\(RunningGateway.root.path)/deploy/build"] + options).output
        }
        let shipped =
            "build --configuration release --static-swift-stdlib --experimental-lto-mode full"
            + " -Xlinker --no-export-dynamic --scratch-path .build/shipped"
        #expect(try words(["--shipped"]) == "\(shipped) --product wakegate\n")
        #expect(try words(["--shipped", "--show-bin-path"]) == "\(shipped) --show-bin-path\n")
        #expect(try words([]) == "build --configuration release --product wakegate\n")
        #expect(try words(["--build-tests"]) == "build --build-tests\n")
    }

    @Test("The program names its version and its commit, as /version and `deploy/build` do")
    func commit() throws {
        let gateway = try RunningGateway()
        let answer = try gateway.admin("/version")
        let version = try #require(answer.value("version") as? String)
        let commit = answer.value("commit") as? String
        let printed = try ChildProcess.wakegate(["--version"]).output
        #expect(printed == "wakegate \(version) (commit \(commit ?? "unknown"))\n")
        // `deploy/test` builds in the same way as a package.
        guard let built = ProcessInfo.processInfo.environment["WAKEGATE_COMMIT"] else { return }
        #expect(commit == built)
    }

    @Test("The installed configuration is valid")
    func configuration() throws {
        let development = try RestartFolder()
        try development.putCertificates()
        let state = development.state.path
        let file = development.folder.appendingPathComponent("wakegate.json5")
        let text = try Checkout.text("deploy/debian/wakegate.json5")
            .replacing("/etc/ssl/certs/ssl-cert-snakeoil.pem", with: "\(state)/server.pem")
            .replacing("/etc/ssl/private/ssl-cert-snakeoil.key", with: "\(state)/server.key")
            .replacing("\"/etc/wakegate/keys\"", with: "\"\(state)\"")
        #expect(text.contains("certificate: \"\(state)/server.pem\""))
        try Data(text.utf8).write(to: file)
        let checked = try ChildProcess.wakegate(["serve", "--config", file.path, "--check"])
        #expect(checked.status == 0, "\(checked.errors)")
    }
}

@Suite("The container image", .timeLimit(.minutes(15)))
struct ImageTests {
    @Test("The test of the image builds and runs it with the options that its first lines name")
    func options() throws {
        let lines = try Checkout.text("deploy/Containerfile").split(separator: "\n").prefix { $0.hasPrefix("#") }
        let options = lines.joined(separator: " ").matches(
            of: #/--(?:format|read-only|cap-drop|security-opt)(?: [a-z][a-z-]*)?/#
        )
        #expect(options.count == 4)
        let test = try Checkout.text("deploy/test-image")
        for option in options { #expect(test.contains("\(option.0)"), "deploy/test-image lacks \(option.0)") }
    }

    @Test("The image runs as an unprivileged user, is stopped by SIGTERM, and has a health check")
    func beginning() throws {
        let image = try #require(try Checkout.text("deploy/Containerfile").components(separatedBy: "\nFROM ").last)
        for line in ["USER 65532:65532", "STOPSIGNAL SIGTERM", "ENTRYPOINT [\"/usr/bin/wakegate\"]"] {
            #expect(image.contains("\n\(line)\n"))
        }
        #expect(image.contains(#"CMD ["/usr/bin/wakegate", "health"]"#) && image.contains("\nHEALTHCHECK "))
    }

    @Test("The container image starts, runs without privileges on a read-only root, drains, and restarts")
    func run() throws {
        let folder = try RestartFolder()
        let root = RunningGateway.root.path
        let script = RunningGateway.client("bare_root.py")
        let spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        let words = ["python3", script, root, RunningGateway.program, folder.folder.path]
        let ended = try ChildProcess("unshare", spaces + words).finish(within: 300)
        #expect(ended.status == 0, "\(ended.output)\n\(ended.errors)")
    }

    @Test("The image has every Debian library that the program needs")
    func libraries() throws {
        let image = try #require(try Checkout.text("deploy/Containerfile").components(separatedBy: "\nFROM ").last)
        let installed = Set(image.split { " \n\\".contains($0) }.map(String.init))
        let dynamic = try ChildProcess.run("readelf", ["--dynamic", "--wide", RunningGateway.program])
        let names = dynamic.output.matches(of: #/\(NEEDED\).*\[(.+)\]/#).map { String($0.1) }
        #expect(names.count > 6)
        var packages: Set<String> = []
        for name in names {
            // A library without a package belongs to the toolchain, and is linked into the program in an image.
            let owner = try ChildProcess.run("dpkg", ["--search", "*/\(name)"])
            if let package = owner.output.split(separator: ":").first { packages.insert(String(package)) }
        }
        #expect(packages.contains("libnghttp2-14"))
        #expect(packages.subtracting(["libc6", "libgcc-s1"]).subtracting(installed).isEmpty)
    }
}
