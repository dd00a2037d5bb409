import FoundationEssentials
package import Gateway
import Glibc
import Platform

/// `gateway.json` in the state folder of a running `wakegate dev`: how client commands find it.
package struct GatewayFile: Codable, Hashable, Sendable {
    /// The gateway's process.
    package var pid: Int32
    /// The first address of each listener; nil when it is off.
    package var edge: String?
    package var admin: String?
    package var plain: String?
    /// The absolute path of the authority's certificate.
    package var ca: String

    package static let name = "gateway.json"
    /// The state folder of `wakegate dev` that client commands look into.
    package static let defaultFolder = ".wakegate"

    package init(pid: Int32, addresses: BoundAddresses, ca: String) {
        self.pid = pid
        self.edge = addresses.edge.addresses.first.map(Self.reachable)
        self.admin = addresses.admin.addresses.first.map(Self.reachable)
        self.plain = addresses.plain.addresses.first.map(Self.reachable)
        self.ca = ca
    }

    /// The address by which this machine reaches a listener: loopback for one that listens on every address.
    private static func reachable(_ address: String) -> String {
        guard let (host, port) = ListenSetting.hostAndPort(address), host == "0.0.0.0" || host == "::" else {
            return address
        }
        return "127.0.0.1:\(port)"
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
