import Foundation
import WakeGateTestKit

/// What others have written to test HTTP/2 with, which `deploy/setup` has unpacked in `.build/corpora`.
enum OutsideCorpus {
    struct Missing: Error, CustomStringConvertible {
        let folder: String

        var description: String { "\(self.folder) is not there or has nothing in it: run deploy/setup" }
    }

    /// One field block of a connection, as an encoder of somebody else's has written it.
    struct Block {
        /// What the encoder was told of the size of the decoder's table before it; nil for nothing new.
        let tableBytes: Int?
        let wire: [UInt8]
        let fields: [LibraryDeflater.Field]
    }

    /// A frame, and the codes of errors of which it is one; empty when it is none.
    struct Frame {
        let name: String
        let wire: [UInt8]
        let errors: Set<Int>
    }

    /// The encoders of the field blocks, a folder for each.
    static let encoders = [
        "go-hpack", "haskell-http2-linear", "haskell-http2-linear-huffman", "haskell-http2-naive",
        "haskell-http2-naive-huffman", "haskell-http2-static", "haskell-http2-static-huffman", "nghttp2",
        "nghttp2-16384-4096", "nghttp2-change-table-size", "node-http2-hpack",
    ]

    /// The connections of an encoder, each with the name of its file.
    static func stories(_ encoder: String) throws -> [(name: String, blocks: [Block])] {
        var stories: [(name: String, blocks: [Block])] = []
        for file in try self.files("haskell-http2/test-hpack/hpack-test-case/\(encoder)") {
            let cases: [[String: Any]]? = try self.object(file)["cases"] as? [[String: Any]]
            var blocks: [Block] = []
            for one in cases ?? [] { blocks.append(try self.block(one, of: file)) }
            guard !blocks.isEmpty else { throw Missing(folder: file.path) }
            stories.append((file.lastPathComponent, blocks))
        }
        return stories
    }

    private static func block(_ object: [String: Any], of file: URL) throws -> Block {
        guard let wire = self.bytes(object["wire"]), let headers = object["headers"] as? [[String: String]] else {
            throw Missing(folder: file.path)
        }
        var fields: [LibraryDeflater.Field] = []
        for header in headers {
            for (name, value) in header {
                fields.append(LibraryDeflater.Field(name: [UInt8](name.utf8), value: [UInt8](value.utf8)))
            }
        }
        return Block(tableBytes: object["header_table_size"] as? Int, wire: wire, fields: fields)
    }

    /// The frames of the frame corpus, each alone.
    static func frames() throws -> [Frame] {
        let root = "haskell-http2/test-frame/http2-frame-test-case"
        var frames: [Frame] = []
        for kind in try self.files(root) {
            for file in try self.files("\(root)/\(kind.lastPathComponent)") {
                let object = try self.object(file)
                guard let wire = self.bytes(object["wire"]) else { throw Missing(folder: file.path) }
                let errors = object["error"] as? [Int] ?? []
                let name = "\(kind.lastPathComponent)/\(file.lastPathComponent)"
                frames.append(Frame(name: name, wire: wire, errors: Set(errors)))
            }
        }
        return frames
    }

    /// What clients have sent, h2spec most of all: the corpus that nghttp2 fuzzes with, by the names of its files.
    static func connections() throws -> [(name: String, bytes: [UInt8])] {
        var connections: [(name: String, bytes: [UInt8])] = []
        for client in try self.files("nghttp2/fuzz/corpus") {
            for file in try self.files("nghttp2/fuzz/corpus/\(client.lastPathComponent)") {
                let name = "\(client.lastPathComponent)/\(file.lastPathComponent)"
                connections.append((name, [UInt8](try Data(contentsOf: file))))
            }
        }
        return connections
    }

    private static func files(_ folder: String) throws -> [URL] {
        let folder = Checkout.root.appendingPathComponent(".build/corpora/\(folder)")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        guard !names.isEmpty else { throw Missing(folder: folder.path) }
        return names.sorted().map { folder.appendingPathComponent($0) }
    }

    private static func object(_ file: URL) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
        guard let object = object as? [String: Any] else { throw Missing(folder: file.path) }
        return object
    }

    /// What a text of hexadecimal digits says; nil for anything else.
    private static func bytes(_ value: Any?) -> [UInt8]? {
        guard let text = value as? String else { return nil }
        var digits: [UInt8] = []
        for letter in text {
            guard let digit = letter.hexDigitValue else { return nil }
            digits.append(UInt8(digit))
        }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count - 1, by: 2) {
            bytes.append(digits[index] << 4 | digits[index + 1])
        }
        return bytes
    }
}
