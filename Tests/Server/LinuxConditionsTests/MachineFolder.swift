import Foundation

/// A folder that stands for the root of a machine; removed with the last reference.
final class MachineFolder {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-machine-\(UUID())")

    var path: String { self.url.path }

    init(_ files: [String: String] = [:]) throws {
        try FileManager.default.createDirectory(at: self.url, withIntermediateDirectories: true)
        for (path, text) in files { try self.write(path, text) }
    }

    deinit { try? FileManager.default.removeItem(at: self.url) }

    func write(_ path: String, _ text: String) throws {
        let file = self.url.appendingPathComponent(path)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data(text.utf8).write(to: file)
    }
}
