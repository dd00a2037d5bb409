package import Foundation

/// A new folder, removed with the last reference.
package final class TemporaryFolder: Sendable {
    // The name is short, because the path of a socket may have only 107 bytes.
    package let url = FileManager.default.temporaryDirectory.appendingPathComponent("wg-\(UUID())")

    package init() throws { try FileManager.default.createDirectory(at: self.url, withIntermediateDirectories: false) }

    deinit { try? FileManager.default.removeItem(at: self.url) }

    package var path: String { self.url.path }
}
