import CommandLineTool
import Foundation
import HTTPClient
import Testing
import wakegate

@Suite("Where a client command finds its gateway")
struct GatewayLocationTests {
    /// A home folder with a file of contexts, and the first line of a certificate.
    private final class Home {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())")
        let authority: String

        init(_ contexts: String? = nil, mode: Int = 0o600) throws {
            let wakegate = self.folder.appendingPathComponent("wakegate")
            try FileManager.default.createDirectory(at: wakegate, withIntermediateDirectories: true)
            self.authority = self.folder.appendingPathComponent("ca.pem").path
            try Data("-----BEGIN CERTIFICATE-----\n".utf8).write(to: URL(fileURLWithPath: self.authority))
            guard let contexts else { return }
            let file = wakegate.appendingPathComponent("contexts.json")
            try Data(contexts.replacing("AUTHORITY", with: self.authority).utf8).write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        }

        deinit { try? FileManager.default.removeItem(at: self.folder) }
    }

    private static let contexts = """
        {"current": "main", "contexts": {
          "main": {"gateway": "https://main:2197", "admin": "http://main:9197", "ca": "AUTHORITY",
                   "token": "main-token"},
          "other": {"gateway": "https://other:2197", "token": "other-token"}}}
        """

    private func locate(
        _ home: Home,
        _ line: String = "stats",
        _ variables: [String: String] = [:],
        side: GatewayLocation.Side = .edge
    ) throws -> GatewayLocation {
        let parsed = try ParsedCommand.running(line)
        let all = variables.merging(["XDG_CONFIG_HOME": home.folder.path]) { own, _ in own }
        return try GatewayLocation(parsed, side: side, folder: home.folder.path, variables: all)
    }

    /// Returns the message of a failure, whose exit status is that of wrong usage or of another failure.
    private func message(
        _ home: Home,
        _ line: String = "stats",
        _ variables: [String: String] = [:],
        isUsage: Bool? = nil
    ) -> String {
        do {
            _ = try self.locate(home, line, variables)
            return ""
        } catch {
            let status = (error as? CommandFailure)?.status
            #expect(isUsage == nil || status == (isUsage == true ? .badUsage : .failed), "\(error)")
            return "\(error)"
        }
    }

    @Test("An option wins over a variable, a variable over the context, and that over the default")
    func precedence() throws {
        let home = try Home(Self.contexts)
        let variables = ["WAKEGATE_URL": "https://variable:1", "WAKEGATE_TOKEN": "variable-token"]
        #expect(try self.locate(try Home()).url == "https://127.0.0.1:2197")
        #expect(try self.locate(try Home(), side: .admin).url == "http://127.0.0.1:9197")
        #expect(try self.locate(home).url == "https://main:2197")
        #expect(try self.locate(home, side: .admin).url == "http://main:9197")
        #expect(try self.locate(home, "stats", variables).url == "https://variable:1")
        #expect(try self.locate(home, "stats --gateway https://option:1", variables).url == "https://option:1")
        #expect(try self.locate(home, "stats --context other", variables).url == "https://other:2197")
    }

    @Test("A context applies as a whole: none of its credentials is sent to another gateway")
    func wholeContext() throws {
        let home = try Home(Self.contexts)
        let own = try self.locate(home)
        #expect(own.headers.map(\.value) == ["bearer main-token"])
        #expect(own.settings.certificateAuthorityFile == home.authority)
        for location in [
            try self.locate(home, "stats --gateway https://option:1"),
            try self.locate(home, "stats", ["WAKEGATE_URL": "https://variable:1"]),
        ] {
            #expect(location.headers.isEmpty && location.settings.certificateAuthorityFile == nil)
        }
        let named = try self.locate(home, "stats --gateway https://option:1 --context other")
        #expect(named.url == "https://option:1" && named.headers.map(\.value) == ["bearer other-token"])
        let shown = try self.locate(home, "stats --token option-token", ["WAKEGATE_TOKEN": "variable-token"])
        #expect(shown.headers.map(\.value) == ["bearer option-token"])
        #expect(try self.locate(home, "stats", ["WAKEGATE_TOKEN": "v"]).headers.map(\.value) == ["bearer v"])
    }

    @Test("WAKEGATE_CA names the authority, and an empty variable is ignored")
    func authority() throws {
        let home = try Home()
        let variables = ["WAKEGATE_CA": home.authority, "WAKEGATE_URL": ""]
        let location = try self.locate(home, "stats", variables)
        #expect(location.settings.certificateAuthorityFile == home.authority)
        #expect(location.url == "https://127.0.0.1:2197")
    }

    /// Returns a home whose context `files` uses files for everything, and the path prefix of these files.
    private func homeWithFiles() throws -> (home: Home, folder: String) {
        let home = try Home(
            """
            {"contexts": {
              "files": {"gateway": "https://files:2197", "ca": "AUTHORITY", "cert": "AUTHORITY.cert",
                        "key": "AUTHORITY.cert", "tokenFile": "AUTHORITY.token"},
              "inline": {"gateway": "https://inline:2197", "token": "inline-token"}}}
            """
        )
        // Only the first lines, without a certificate or a key.
        let certificate = "-----BEGIN CERTIFICATE-----\n-----BEGIN " + "PRIVATE KEY-----\n"
        try Data(certificate.utf8).write(to: URL(fileURLWithPath: "\(home.authority).cert"))
        try Data("file-token\n".utf8).write(to: URL(fileURLWithPath: "\(home.authority).token"))
        return (home, home.authority)
    }

    @Test("The variable names the edge; operators' commands find the admin listener of the default edge by it")
    func adminOfEdge() throws {
        let (home, _) = try self.homeWithFiles()
        func url(_ line: String, _ variable: String) throws -> String {
            try self.locate(home, line, ["WAKEGATE_URL": variable], side: .admin).url
        }
        for edge in ["https://127.0.0.1:2197", "https://localhost:2197/"] {
            #expect(try url("stats", edge) == "http://127.0.0.1:9197")
        }
        #expect(try url("stats", "https://gateway:2197") == "https://gateway:2197")
    }

    @Test("Variables name the files of a token, a certificate and its key; the token's file wins over the token")
    func fileVariables() throws {
        let (home, files) = try self.homeWithFiles()
        var variables = ["WAKEGATE_TOKEN_FILE": "\(files).token", "WAKEGATE_TOKEN": "variable-token"]
        variables["WAKEGATE_CERT"] = "\(files).cert"
        variables["WAKEGATE_KEY"] = "\(files).cert"
        let location = try self.locate(home, "stats", variables)
        #expect(location.headers.map(\.value) == ["bearer file-token"])
        #expect(location.settings.certificateFile == "\(files).cert")
        #expect(location.settings.privateKeyFile == "\(files).cert")
        let option = try self.locate(home, "stats --cert \(files).cert --token t", ["WAKEGATE_KEY": "/nowhere"])
        #expect(option.settings.privateKeyFile == nil && option.headers.map(\.value) == ["bearer t"])
        #expect(self.message(home, "stats", ["WAKEGATE_CERT": "\(files).token"]).contains("which WAKEGATE_CERT names"))
    }

    @Test("A worker's options are found again by the client commands of its command, and no token is passed")
    func commandVariables() throws {
        let (home, files) = try self.homeWithFiles()
        func passed(_ options: String, _ variables: [String: String] = [:]) throws -> [String: String] {
            let line = "worker --topic t \(options) -- true"
            return try self.locate(home, line, variables).commandVariables(ParsedCommand.running(line))
        }
        #expect(try passed("").isEmpty)
        let noToken = ["WAKEGATE_TOKEN": "", "WAKEGATE_TOKEN_FILE": ""]
        let nothing = noToken.merging(["WAKEGATE_CA": "", "WAKEGATE_CERT": "", "WAKEGATE_KEY": ""]) { $1 }
        #expect(try passed("--token secret") == noToken)
        #expect(try passed("", ["WAKEGATE_TOKEN": "secret", "WAKEGATE_URL": "https://variable:1"]).isEmpty)
        #expect(try passed("--context inline") == nothing.merging(["WAKEGATE_URL": "https://inline:2197"]) { $1 })
        #expect(try passed("--gateway unix:/run/edge") == ["WAKEGATE_URL": "unix:/run/edge"])
        let all = [
            "WAKEGATE_URL": "https://files:2197", "WAKEGATE_CA": files, "WAKEGATE_TOKEN_FILE": "\(files).token",
            "WAKEGATE_CERT": "\(files).cert", "WAKEGATE_KEY": "\(files).cert", "WAKEGATE_TOKEN": "",
        ]
        #expect(try passed("--context files") == all)
        let options = "--ca \(files) --token-file \(files).token --cert \(files).cert"
        let found = try passed("--gateway https://files:2197/ \(options)")
        #expect(found == all.merging(["WAKEGATE_KEY": ""]) { $1 })
        let again = try self.locate(home, "stats", found)
        #expect(again.url == "https://files:2197" && again.headers.map(\.value) == ["bearer file-token"])
        #expect(again.settings.certificateFile == "\(files).cert" && again.settings.privateKeyFile == nil)
        #expect(again.settings.certificateAuthorityFile == files)
    }

    @Test("An unusable value is named with its source")
    func faults() throws {
        let home = try Home()
        let url = self.message(home, "stats", ["WAKEGATE_URL": "host"], isUsage: true)
        #expect(url.hasPrefix("WAKEGATE_URL is \"host\"; write a URL"))
        let missing = self.message(home, "stats --ca /nowhere", isUsage: false)
        #expect(missing.hasPrefix("/nowhere, which --ca names, cannot be read (no such file)"))
        let text = home.folder.appendingPathComponent("text").path
        try Data("hello".utf8).write(to: URL(fileURLWithPath: text))
        let other = self.message(home, "stats", ["WAKEGATE_CA": text], isUsage: false)
        #expect(other.hasPrefix("\(text), which WAKEGATE_CA names, holds no certificate in PEM; "))
        let token = self.message(home, "stats --token-file /nowhere", isUsage: false)
        #expect(token.hasPrefix("/nowhere cannot be read (no such file)"))
        let context = self.message(home, "stats --context x", isUsage: true)
        #expect(context.hasPrefix("no context \"x\" is stored; add it"))
        #expect(self.message(try Home(Self.contexts), "stats --context man").hasSuffix("did you mean main?"))
        #expect(self.message(try Home(Self.contexts, mode: 0o644)).contains("run: chmod 600"))
        #expect(self.message(try Home("{")).contains("holds no contexts"))
    }
}
