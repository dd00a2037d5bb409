import CommandLineTool
import Foundation
import Gateway
import Glibc
import Testing
import wakegate

@Suite("Files and folders of servers")
final class ServerTests {
    /// Tests make a folder or a link here, and one with the ending `.target`.
    private let path = "/tmp/wakegate-test-\(UUID().uuidString)"

    deinit {
        for ending in ["", ".target"] { try? FileManager.default.removeItem(atPath: self.path + ending) }
    }

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
        let folder = try StateFolder("\(self.path)/deep/er")
        #expect(folder.path == "\(self.path)/deep/er")
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
    }

    @Test("A state folder with loose permissions is refused with the command that fixes it")
    func openFolder() throws {
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: false)
        #expect(unsafe chmod(self.path, 0o755) == 0)
        let message =
            "others may enter the state folder \(self.path) (mode 0755); name a folder that is the "
            + "gateway's alone with --state DIR, or if this one is: chmod 700 \(self.path)"
        #expect(throws: CommandFailure(.failed, message)) { try StateFolder(self.path) }
    }

    @Test(
        "Root may use the folder of a service's user to make tokens, but runs no gateway there",
        .enabled(if: geteuid() == 0)
    )
    func folderOfAnother() throws {
        #expect(try StateFolder.prepare(self.path) == self.path)
        #expect(unsafe chown(self.path, 12345, 12346) == 0)
        #expect(throws: CommandFailure.self) { try StateFolder(self.path) }
        #expect(try StateFolder.prepare(self.path, admitsRoot: true) == self.path)
        _ = try TokenKey.make(in: self.path)
        try RevokedTokens.add(String(repeating: "ab", count: 16), in: self.path)
        for name in ["token.key", "token.revoked"] {
            let owner = try FileManager.default.attributesOfItem(atPath: "\(self.path)/\(name)")
            #expect(owner[.ownerAccountID] as? Int == 12345)
            #expect(owner[.groupOwnerAccountID] as? Int == 12346)
        }
        // A link that the service's user has created does not redirect root.
        let target = "\(self.path).target"
        try Data().write(to: URL(fileURLWithPath: target))
        try FileManager.default.removeItem(atPath: "\(self.path)/token.revoked")
        try FileManager.default.createSymbolicLink(atPath: "\(self.path)/token.revoked", withDestinationPath: target)
        #expect(throws: CredentialError.self) {
            try RevokedTokens.add(String(repeating: "cd", count: 16), in: self.path)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)).isEmpty)
    }

    @Test(
        "A state folder behind a dangling link is refused with the link's name, by a start and by a check",
        arguments: ["", "/below", "/far/below"]
    )
    func danglingLink(rest: String) throws {
        try FileManager.default.createSymbolicLink(atPath: self.path, withDestinationPath: "\(self.path).target")
        let problem = "the state folder \(self.path)\(rest) cannot be made: \(self.path) is a link that leads nowhere"
        let remedy =
            "make the folder it names, as by mounting it, remove the link, or choose another with --state DIR"
        #expect(throws: CommandFailure(.failed, "\(problem); \(remedy)")) { try StateFolder(self.path + rest) }
        let fault = StateFolder.fault(self.path + rest)
        #expect(fault?.problem == problem && fault?.remedy == remedy)
        // A link to an existing folder works like the folder itself.
        _ = try StateFolder.prepare("\(self.path).target")
        #expect(StateFolder.fault(self.path + rest) == nil)
        #expect(try StateFolder(self.path + rest).path == self.path + rest)
    }

    @Test("A folder in which no folder can be created is named", arguments: ["/proc/wakegate", "/proc/wakegate/below"])
    func noFolderTaken(path: String) {
        let problem = "the state folder /proc/wakegate cannot be made: No such file or directory"
        let failure = CommandFailure(.failed, "\(problem); choose another with --state DIR")
        #expect(throws: failure) { try StateFolder(path) }
    }

    @Test("A second gateway finds the state folder in use")
    func taken() throws {
        let first = try StateFolder(self.path)
        #expect {
            try StateFolder(first.path)
        } throws: {
            "\($0)".hasPrefix("another gateway is using the state folder")
        }
    }

    @Test("A gateway is found by its file while its process lives")
    func gatewayFile() throws {
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: false)
        #expect(GatewayFile.running(in: self.path) == nil)
        let addresses = BoundAddresses(
            edge: ListenSetting("127.0.0.1:1"),
            admin: .off,
            plain: ListenSetting("127.0.0.1:2")
        )
        let ca = "\(self.path)/ca.pem"
        try Data("-----BEGIN CERTIFICATE-----\n".utf8).write(to: URL(fileURLWithPath: ca))
        var file = GatewayFile(pid: getpid(), addresses: addresses, ca: ca)
        try file.write(in: self.path)
        #expect(GatewayFile.running(in: self.path) == file)
        let edge = "https://\(file.edge ?? "")"
        #expect(GatewayLocation.admin(of: edge, folder: self.path) == file.admin.map { "http://\($0)" })
        #expect(GatewayLocation.admin(of: "https://127.0.0.1:2197", folder: self.path) == "http://127.0.0.1:9197")
        #expect(GatewayLocation.admin(of: "https://wakegate.example.com:2197", folder: self.path) == nil)
        let parsed = try ParsedCommand.running("stats")
        #expect(try GatewayLocation(parsed, side: .edge, folder: self.path).url == "https://127.0.0.1:1")
        // Without an admin listener, the edge answers all requests that it can.
        #expect(try GatewayLocation(parsed, side: .admin, folder: self.path).url == "https://127.0.0.1:1")
        // No process has the largest possible number.
        file.pid = Int32.max
        try file.write(in: self.path)
        #expect(GatewayFile.running(in: self.path) == nil)
        let absent = try GatewayLocation(parsed, side: .admin, folder: self.path)
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
