import CommandLineTool
import Foundation
import Gateway
import Glibc
import Testing
import wakegate

@Suite("Files and folders of servers")
struct ServerTests {
    private func folder() -> String { "/tmp/wakegate-test-\(UUID().uuidString)" }

    @Test("The ready line shows a listener that is off as null, and a list as a list")
    func readyLine() {
        let addresses = BoundAddresses(
            edge: ListenSetting("127.0.0.1:2197"),
            admin: ListenSetting(["127.0.0.1:9197", "unix:/run/a"]),
            plain: .off
        )
        let line = ReadyLine.text(addresses)
        let admin = "[\"127.0.0.1:9197\", \"unix:/run/a\"]"
        #expect(line == "{\"ready\": true, \"edge\": \"127.0.0.1:2197\", \"admin\": \(admin), \"plain\": null}\n")
    }

    @Test("The state folder is created for its owner only, including parents")
    func stateFolder() throws {
        let path = self.folder()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let folder = try StateFolder("\(path)/deep/er")
        #expect(folder.path == "\(path)/deep/er")
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
    }

    @Test("A state folder with loose permissions is refused with the command that fixes it")
    func openFolder() throws {
        let path = self.folder()
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(unsafe chmod(path, 0o755) == 0)
        let message =
            "others may enter the state folder \(path) (mode 0755); name a folder that is the "
            + "gateway's alone with --state DIR, or if this one is: chmod 700 \(path)"
        #expect(throws: CommandFailure(.failed, message)) { try StateFolder(path) }
    }

    @Test(
        "Root may use the folder of a service's user to make tokens, but runs no gateway there",
        .enabled(if: geteuid() == 0)
    )
    func folderOfAnother() throws {
        let path = self.folder()
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(try StateFolder.prepare(path) == path)
        #expect(unsafe chown(path, 12345, 12346) == 0)
        #expect(throws: CommandFailure.self) { try StateFolder(path) }
        #expect(try StateFolder.prepare(path, admitsRoot: true) == path)
        _ = try TokenKey.make(in: path)
        try RevokedTokens.add(String(repeating: "ab", count: 16), in: path)
        for name in ["token.key", "token.revoked"] {
            let owner = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
            #expect(owner[.ownerAccountID] as? Int == 12345)
            #expect(owner[.groupOwnerAccountID] as? Int == 12346)
        }
        // A link that the service's user has created does not redirect root.
        let target = "\(path).target"
        defer { try? FileManager.default.removeItem(atPath: target) }
        try Data().write(to: URL(fileURLWithPath: target))
        try FileManager.default.removeItem(atPath: "\(path)/token.revoked")
        try FileManager.default.createSymbolicLink(atPath: "\(path)/token.revoked", withDestinationPath: target)
        #expect(throws: CredentialError.self) { try RevokedTokens.add(String(repeating: "cd", count: 16), in: path) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)).isEmpty)
    }

    @Test(
        "A state folder behind a dangling link is refused with the link's name, by a start and by a check",
        arguments: ["", "/below", "/far/below"]
    )
    func danglingLink(rest: String) throws {
        let path = self.folder()
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "\(path).target")
        defer { try? FileManager.default.removeItem(atPath: path) }
        let problem = "the state folder \(path)\(rest) cannot be made: \(path) is a link that leads nowhere"
        let remedy =
            "make the folder it names, as by mounting it, remove the link, or choose another with --state DIR"
        #expect(throws: CommandFailure(.failed, "\(problem); \(remedy)")) { try StateFolder(path + rest) }
        let fault = StateFolder.fault(path + rest)
        #expect(fault?.problem == problem && fault?.remedy == remedy)
        // A link to an existing folder works like the folder itself.
        let target = "\(path).target"
        try FileManager.default.createDirectory(
            atPath: target,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
        defer { try? FileManager.default.removeItem(atPath: target) }
        #expect(StateFolder.fault(path + rest) == nil)
        #expect(try StateFolder(path + rest).path == path + rest)
    }

    @Test("A folder in which no folder can be created is named", arguments: ["/proc/wakegate", "/proc/wakegate/below"])
    func noFolderTaken(path: String) {
        let problem = "the state folder /proc/wakegate cannot be made: No such file or directory"
        let failure = CommandFailure(.failed, "\(problem); choose another with --state DIR")
        #expect(throws: failure) { try StateFolder(path) }
    }

    @Test("A second gateway finds the state folder in use")
    func taken() throws {
        let path = self.folder()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let first = try StateFolder(path)
        #expect {
            try StateFolder(first.path)
        } throws: {
            "\($0)".hasPrefix("another gateway is using the state folder")
        }
    }

    @Test("A gateway is found by its file while its process lives")
    func gatewayFile() throws {
        let path = self.folder()
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(GatewayFile.running(in: path) == nil)
        let addresses = BoundAddresses(
            edge: ListenSetting("127.0.0.1:1"),
            admin: .off,
            plain: ListenSetting("127.0.0.1:2")
        )
        let ca = "\(path)/ca.pem"
        try Data("-----BEGIN CERTIFICATE-----\n".utf8).write(to: URL(fileURLWithPath: ca))
        var file = GatewayFile(pid: getpid(), addresses: addresses, ca: ca)
        try file.write(in: path)
        #expect(GatewayFile.running(in: path) == file)
        let edge = "https://\(file.edge ?? "")"
        #expect(GatewayLocation.admin(of: edge, folder: path) == file.admin.map { "http://\($0)" })
        #expect(GatewayLocation.admin(of: "https://127.0.0.1:2197", folder: path) == "http://127.0.0.1:9197")
        #expect(GatewayLocation.admin(of: "https://wakegate.example.com:2197", folder: path) == nil)
        let parsed = try ParsedCommand.running("stats")
        #expect(try GatewayLocation(parsed, side: .edge, folder: path).url == "https://127.0.0.1:1")
        // Without an admin listener, the edge answers all requests that it can.
        #expect(try GatewayLocation(parsed, side: .admin, folder: path).url == "https://127.0.0.1:1")
        // No process has the largest possible number.
        file.pid = Int32.max
        try file.write(in: path)
        #expect(GatewayFile.running(in: path) == nil)
        let absent = try GatewayLocation(parsed, side: .admin, folder: path)
        #expect(absent.url == "http://127.0.0.1:9197")
    }

    @Test(
        "Words with a meaning to the shell are quoted",
        arguments: [
            ("plain-1.2/x", "plain-1.2/x"), ("", "''"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("$(x)", "'$(x)'"),
        ]
    )
    func quoting(word: String, quoted: String) {
        #expect(ShellText.quoted(word) == quoted)
    }
}
