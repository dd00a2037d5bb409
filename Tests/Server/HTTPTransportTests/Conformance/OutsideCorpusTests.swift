import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit
import Wire

/// The session and its decoder, tested with external corpora for HTTP/2: the http2jp corpora of field blocks and
/// frames, from Debian's haskell-http2, and the connections with which nghttp2 is fuzzed, most of them recorded from
/// h2spec.
@Suite("HTTP/2 test data of other projects", .timeLimit(.minutes(15)))
struct OutsideCorpusTests {
    @Test("The field blocks of every other encoder are decoded correctly", arguments: OutsideCorpus.encoders)
    func fieldBlocks(encoder: String) throws {
        var count = 0
        for (name, blocks) in try OutsideCorpus.stories(encoder) {
            var whole = FieldDecoderTests.Reading()
            var pieces = FieldDecoderTests.Reading()
            for (number, block) in blocks.enumerated() {
                try whole.read(block.wire)
                #expect(whole.fields == block.fields, "\(name) \(number)")
                try pieces.read(block.wire, pieces: Array(stride(from: 0, to: block.wire.count, by: 1 + number % 13)))
                #expect(pieces.fields == block.fields, "\(name) \(number) in pieces")
                count += 1
            }
        }
        #expect(count >= 30, "\(encoder) has hardly a block")
    }

    @Test("Every frame that is an error ends its stream or the connection with one of the codes that are named for it")
    func errors() throws {
        let frames = try OutsideCorpus.frames().filter { !$0.errors.isEmpty }
        #expect(frames.count >= 20)
        for frame in frames {
            let fixture = SessionFixture()
            fixture.receive(frame.wire)
            let codes = fixture.produce().compactMap(\.errorCode)
            let isNamed = codes.allSatisfy { frame.errors.contains(Int($0.rawValue)) }
            #expect(codes.count == 1 && isNamed, "\(frame.name): \(codes)")
        }
    }

    @Test("Recorded connections are answered the same, whole and byte by byte, and are cleaned up")
    func connections() throws {
        let connections = try OutsideCorpus.connections()
        #expect(connections.count >= 100)
        var (served, refused) = (0, 0)
        for (name, bytes) in connections {
            let whole = SessionFixture(hasBegun: false)
            let pieces = SessionFixture(hasBegun: false)
            whole.receive(bytes)
            for byte in bytes { pieces.receive([byte]) }
            let events = whole.takeEvents()
            #expect(events == pieces.takeEvents(), "\(name)")
            let sent = whole.produceBytes()
            #expect(sent == pieces.produceBytes(), "\(name)")
            let errors = ScriptedPeer.frames(in: sent).compactMap(\.errorCode).filter { $0 != .noError }
            // A session that fails reports the error to its peer, once its settings were sent.
            if whole.session.hasFailed { #expect(!errors.isEmpty, "\(name)") }
            if events.contains(where: { $0.hasPrefix("1 ") }) { served += 1 }
            if !errors.isEmpty { refused += 1 }
            for fixture in [whole, pieces] {
                fixture.session.end()
                #expect(fixture.memory.streams.usedCount == 0, "\(name)")
            }
        }
        #expect(served > 20 && refused > 20, "\(served) served, \(refused) refused of \(connections.count)")
    }
}

/// The external corpora for HTTP/2, which `deploy/setup` has unpacked in `.build/corpora`.
enum OutsideCorpus {
    struct Missing: Error, CustomStringConvertible {
        let folder: String

        var description: String { "\(self.folder) is not there or has nothing in it: run deploy/setup" }
    }

    /// A field block of a connection, written by an external encoder.
    struct Block {
        let wire: [UInt8]
        let fields: [LibraryDeflater.Field]
    }

    /// A frame, and the codes of the errors in it; empty if it has none.
    struct Frame {
        let name: String
        let wire: [UInt8]
        let errors: Set<Int>
    }

    /// The encoders of the field blocks, with one folder each.
    static let encoders = [
        "go-hpack", "haskell-http2-linear", "haskell-http2-linear-huffman", "haskell-http2-naive",
        "haskell-http2-naive-huffman", "haskell-http2-static", "haskell-http2-static-huffman", "nghttp2",
        "nghttp2-16384-4096", "nghttp2-change-table-size", "node-http2-hpack",
    ]

    /// Returns the connections of an encoder, each with the name of its file.
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
        return Block(wire: wire, fields: fields)
    }

    /// Returns the frames of the frame corpus.
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

    /// Returns the bytes sent by clients, mostly h2spec: the corpus with which nghttp2 is fuzzed, by file name.
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

    /// Parses hexadecimal digits; returns nil if the value is not a text.
    private static func bytes(_ value: Any?) -> [UInt8]? { (value as? String).map(FieldDecoderTests.bytes) }
}
