import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit
import Wire

@Suite("Signing with a provider's key", .serialized, .timeLimit(.minutes(15)))
struct ProviderKeyTests {
    private let files: TemporaryFolder
    private var folder: String { self.files.path }

    init() throws { self.files = try TemporaryFolder() }

    /// Runs openssl and returns its exit status.
    private func openssl(_ arguments: [String]) throws -> Int32 {
        try Children.run("openssl", arguments).status
    }

    private func write(_ bytes: [UInt8], _ name: String) throws -> String {
        let path = "\(self.folder)/\(name)"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func fault(_ file: String) -> TransportError? {
        do throws(TransportError) {
            _ = try ProviderKey.sign([1], keyFile: file)
            return nil
        } catch {
            return error
        }
    }

    /// Returns R and S in DER, as openssl reads them.
    private func der(_ signature: [UInt8]) -> [UInt8] {
        var body: [UInt8] = []
        for half in [signature[..<32], signature[32...]] {
            var number = Array(half.drop { $0 == 0 })
            if number.first ?? 0x80 >= 0x80 { number.insert(0, at: 0) }
            body += [0x02, UInt8(number.count)] + number
        }
        return [0x30, UInt8(body.count)] + body
    }

    @Test("openssl accepts the signature for the signed bytes, and for no others")
    func verifies() throws {
        try DevelopmentCertificates.make(in: self.folder)
        let message = try self.write(Array("head.claims".utf8), "message")
        let other = try self.write(Array("head.claimz".utf8), "other")
        // One number in 128 has leading zeros, so these rounds probably include some.
        for round in 0..<64 {
            let signature = try ProviderKey.sign(Array("head.claims".utf8), keyFile: "\(self.folder)/provider.p8")
            #expect(signature.count == 64)
            let file = try self.write(self.der(signature), "signature")
            let verify = ["dgst", "-sha256", "-verify", "\(self.folder)/provider.pub.pem", "-signature", file]
            #expect(try self.openssl(verify + [message]) == 0)
            if round == 0 {
                #expect(try self.openssl(verify + [other]) != 0)
            }
        }
    }

    @Test("A missing file, one without a key, and one with another kind of key are named with the remedy")
    func faults() throws {
        let remedy = "; name the .p8 file that Apple gave you, or the provider.p8 of `wakegate dev`."
        #expect(
            self.fault("/nonexistent.p8")?.message
                == "/nonexistent.p8 cannot be read (no such file)" + remedy
        )
        #expect(self.fault(self.folder)?.message == "\(self.folder) is not a regular file" + remedy)
        let text = try self.write(Array("no key".utf8), "text")
        #expect(self.fault(text)?.message.hasPrefix("\(text) holds no private key in PEM") == true)
        #expect(self.fault(text)?.message.hasSuffix(remedy) == true)
        let large = try self.write(Array(repeating: 0x20, count: 70_000), "large")
        #expect(self.fault(large)?.message == "\(large) is larger than 65536 bytes" + remedy)
        let keys = [["-algorithm", "RSA"], ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]]
        for (number, options) in keys.enumerated() {
            let file = "\(self.folder)/\(number).pem"
            let status = try self.openssl(["genpkey"] + options + ["-out", file])
            #expect(status == 0)
            #expect(self.fault(file)?.message == "\(file) holds a key of another kind than P-256" + remedy)
        }
    }

    @Test("A key with a password is refused without a prompt")
    func encrypted() throws {
        try DevelopmentCertificates.make(in: self.folder)
        let file = "\(self.folder)/encrypted.p8"
        let source = "\(self.folder)/provider.p8"
        let password = ["-passout", "pass:secret"]
        #expect(try self.openssl(["pkcs8", "-topk8", "-in", source, "-out", file] + password) == 0)
        #expect(self.fault(file)?.message.hasPrefix("\(file) holds no private key in PEM without a password") == true)
    }
}

@Suite("Verifying a provider's signature", .timeLimit(.minutes(15)))
struct ProviderPublicKeyTests {
    private let files: TemporaryFolder
    private var folder: String { self.files.path }

    init() throws {
        self.files = try TemporaryFolder()
        try DevelopmentCertificates.make(in: self.folder)
    }

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

    @Test("The public and the private key verify the signed bytes; other bytes, signatures and keys do not")
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
        let other = try ProviderPublicKey(pem: try self.bytes("ca.key"), file: "ca.key")
        #expect(!message.withByteView { other.verifies($0, signature: signature) })
    }

    @Test("Only the public half is written, also of a private key and with text before it")
    func publicOnly() throws {
        let published = try self.bytes("provider.pub.pem")
        let key = try ProviderPublicKey(pem: Array("Team: T\n\n".utf8) + (try self.bytes("provider.p8")), file: "k")
        #expect(key.pem == published)
    }

    @Test("A file without a P-256 key is named with the remedy")
    func faults() throws {
        #expect(self.fault(Array("no key".utf8))?.hasPrefix("k.p8 holds no key in PEM without a password") == true)
        #expect(self.fault([])?.contains("name the .p8 file that Apple gave you") == true)
        #expect(self.fault(try self.bytes("ca.pem"))?.hasPrefix("k.p8 holds no key in PEM") == true)
        _ = try Children.run("openssl", ["genpkey", "-algorithm", "ED25519", "-out", "\(self.folder)/other.pem"])
        #expect(
            self.fault(try self.bytes("other.pem"))
                == "k.p8 holds a key of another kind than P-256; name the .p8 file that Apple gave you."
        )
    }
}

@Suite("Message authentication codes")
struct MessageCodeTests {
    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test("The codes are those of RFC 4231")
    func vectors() throws {
        let first = try MessageCode.make(Array("Hi There".utf8), key: Array(repeating: 0x0b, count: 20))
        #expect(self.hexadecimal(first) == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        let second = try MessageCode.make(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        #expect(self.hexadecimal(second) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    }

    @Test("Codes are the same only when every byte is, and the lengths are")
    func equality() {
        let code = [UInt8](0..<32)
        #expect(MessageCode.isEqual(code, code))
        for index in code.indices {
            var other = code
            other[index] ^= 0x80
            #expect(!MessageCode.isEqual(code, other))
        }
        #expect(!MessageCode.isEqual(code, Array(code.dropLast())))
        #expect(!MessageCode.isEqual(Array(code.dropLast()), code))
        #expect(!MessageCode.isEqual(code, []))
    }
}
