import Foundation

/// What tests of transfers begin with: a server, and a folder for what they leave.
class TransferScene {
    let server: TransferServer
    private let folder: RestartFolder

    init() throws {
        self.server = try TransferServer()
        self.folder = try RestartFolder()
    }

    /// A place in the folder.
    func path(_ name: String) -> String { self.folder.folder.appendingPathComponent(name).path }

    /// What a file has; nil when there is none.
    func content(at path: String) -> Data? { try? Data(contentsOf: URL(fileURLWithPath: path)) }
}
