import FoundationEssentials
import Glibc
import Platform

/// `gateway.json` in the state folder of a running `wakegate dev`: how client commands find it.
package struct GatewayFile: Codable, Hashable, Sendable {
    /// The gateway's process.
    package var pid: Int32
    /// The absolute path of the authority's certificate.
    package var ca: String
    /// The first address of each listener; nil when it is off.
    package var edge: String?
    package var admin: String?
    package var plain: String?

    package static let name = "gateway.json"
    /// The state folder of `wakegate dev` that client commands look into.
    package static let defaultFolder = ".wakegate"

    package init(pid: Int32, ca: String) {
        self.pid = pid
        self.ca = ca
    }

    /// Writes the file whole, so that no reader sees half of it.
    package func write(in folder: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let bytes = Array(try encoder.encode(self))
        try OrdinaryFile.replace("\(folder)/\(Self.name)", with: bytes, mode: 0o644, isSynced: false)
    }

    /// The file of the gateway that runs from `folder`; nil when there is none, or when its process is gone.
    package static func running(in folder: String) -> GatewayFile? {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(self.name)")),
            let file = try? JSONDecoder().decode(GatewayFile.self, from: data), file.pid > 0
        else { return nil }
        return kill(file.pid, 0) == 0 || errno == EPERM ? file : nil
    }

    /// Removes the file; a missing one is fine.
    package static func remove(from folder: String) {
        try? FileSystem.remove("\(folder)/\(self.name)")
    }
}
