import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit
import Wire

@Suite("Verifying a provider's signature", .timeLimit(.minutes(15)))
final class ProviderPublicKeyTests {
    private let folder: String

    init() throws {
        self.folder = NSTemporaryDirectory() + "wakegate-public-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: false)
        try DevelopmentCertificates.make(in: self.folder)
    }

    deinit { try? FileManager.default.removeItem(atPath: self.folder) }

    private func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: "\(self.folder)/\(name)")))
    }

    private func fault(_ pem: [UInt8]) -> String? {
        do throws(TransportError) {
            _ = try ProviderPublicKey(pem: pem, file: "k.p8")
            return nil
        } catch {
            return error.message
        }
    }

    @Test("The public key, and the private one, take what was signed, and nothing that differs in a bit")
    func verifies() throws {
        let message = Array("head.claims".utf8)
        let signature = try ProviderKey.sign(message, keyFile: "\(self.folder)/provider.p8")
        for name in ["provider.pub.pem", "provider.p8"] {
            let key = try ProviderPublicKey(pem: try self.bytes(name), file: name)
            #expect(message.withByteView { key.verifies($0, signature: signature) })
            for index in 0..<64 {
                var other = signature
                other[index] ^= 1
                #expect(!message.withByteView { key.verifies($0, signature: other) }, "byte \(index)")
            }
            #expect(!Array("head.claimz".utf8).withByteView { key.verifies($0, signature: signature) })
            #expect(!message.withByteView { key.verifies($0, signature: [UInt8](repeating: 0, count: 64)) })
            #expect(!message.withByteView { key.verifies($0, signature: Array(signature.dropLast())) })
            #expect(!message.withByteView { key.verifies($0, signature: []) })
        }
    }

    @Test("Another key does not take it")
    func other() throws {
        let message = Array("head.claims".utf8)
        let signature = try ProviderKey.sign(message, keyFile: "\(self.folder)/provider.p8")
        let key = try ProviderPublicKey(pem: try self.bytes("ca.key"), file: "ca.key")
        #expect(!message.withByteView { key.verifies($0, signature: signature) })
    }

    @Test("Only the public half is written, also of a private key and with text before it")
    func publicOnly() throws {
        let published = try self.bytes("provider.pub.pem")
        let key = try ProviderPublicKey(pem: Array("Team: T\n\n".utf8) + (try self.bytes("provider.p8")), file: "k")
        #expect(key.pem == published)
    }

    @Test("What holds no P-256 key is named with the remedy")
    func faults() throws {
        #expect(self.fault(Array("no key".utf8))?.hasPrefix("k.p8 holds no key in PEM without a password") == true)
        #expect(self.fault([])?.contains("name the .p8 file that Apple gave you") == true)
        #expect(self.fault(try self.bytes("ca.pem"))?.hasPrefix("k.p8 holds no key in PEM") == true)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = ["genpkey", "-algorithm", "ED25519", "-out", "\(self.folder)/other.pem"]
        try process.start()
        process.waitUntilExit()
        #expect(
            self.fault(try self.bytes("other.pem"))
                == "k.p8 holds a key of another kind than P-256; name the .p8 file that Apple gave you."
        )
    }
}
