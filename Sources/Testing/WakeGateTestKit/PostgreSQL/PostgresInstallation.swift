import Foundation
import Glibc

/// PostgreSQL's programs on this machine, and the user that they run as: servers refuse to be root's.
struct PostgresInstallation: Sendable {
    /// Whom servers belong to when root runs the tests; Debian's package makes that user.
    private static let user = "postgres"
    private static let folders = ["/usr/lib/postgresql/15/bin", "/usr/pgsql-15/bin", "/usr/local/pgsql/bin"]

    /// The folder of `initdb` and `postgres`.
    private let programs: String
    private let isRoot = geteuid() == 0

    /// - Throws: when PostgreSQL is missing, with what to do.
    static func found() throws -> PostgresInstallation { try self.result.get() }

    private static let result = Result { try PostgresInstallation() }

    private init() throws {
        let files = FileManager.default
        guard let programs = Self.folders.first(where: { files.isExecutableFile(atPath: "\($0)/initdb") }) else {
            throw PostgresFailure(description: "there is no PostgreSQL 15 on this machine; run deploy/setup")
        }
        self.programs = programs
    }

    /// The whole command of a program with its arguments.
    func command(_ program: String, _ arguments: [String]) -> [String] {
        self.asUser(["\(self.programs)/\(program)"] + arguments)
    }

    /// A command as the user that servers run as.
    func asUser(_ command: [String]) -> [String] {
        let prefix = ["/usr/bin/setpriv", "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", "--"]
        return (self.isRoot ? prefix : []) + command
    }

    /// Runs a program of PostgreSQL to its end.
    ///
    /// - Returns: what it wrote to standard output, without the last newline.
    /// - Throws: what it wrote to standard error when it failed.
    @discardableResult
    func run(_ program: String, _ arguments: [String]) throws -> String {
        try PostgresProgram.run(self.command(program, arguments))
    }

    /// Makes a folder that servers may write to.
    func makeFolder(_ path: String) throws {
        try PostgresProgram.run(["/usr/bin/install", "--directory", "--mode=755"] + self.ownership + [path])
    }

    /// Copies a file that servers alone may read.
    func copy(_ file: String, to path: String) throws {
        try PostgresProgram.run(["/usr/bin/install", "--mode=600"] + self.ownership + [file, path])
    }

    private var ownership: [String] { self.isRoot ? ["--owner=\(Self.user)", "--group=\(Self.user)"] : [] }
}
