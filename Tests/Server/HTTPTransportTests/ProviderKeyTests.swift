import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit

@Suite("Signing with a provider's key", .serialized, .timeLimit(.minutes(15)))
final class ProviderKeyTests {
    private let folder: String

    init() throws {
        self.folder = NSTemporaryDirectory() + "wakegate-provider-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: self.folder) }

    /// Runs openssl to its end and returns its exit status.
    private func openssl(_ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.start()
        process.waitUntilExit()
        return process.terminationStatus
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

    /// R and S as the DER that openssl reads.
    private func der(_ signature: [UInt8]) -> [UInt8] {
        var body: [UInt8] = []
        for half in [signature[..<32], signature[32...]] {
            var number = Array(half.drop { $0 == 0 })
            if number.first ?? 0x80 >= 0x80 { number.insert(0, at: 0) }
            body += [0x02, UInt8(number.count)] + number
        }
        return [0x30, UInt8(body.count)] + body
    }

    @Test("openssl takes the signature for what was signed, and for nothing else")
    func verifies() throws {
        try DevelopmentCertificates.make(in: self.folder)
        let message = try self.write(Array("head.claims".utf8), "message")
        let other = try self.write(Array("head.claimz".utf8), "other")
        // Numbers with leading zeros come one time in 128; among these many they are likely.
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

    @Test("A file that is missing, holds no key, or a key of another kind is named with the remedy")
    func faults() throws {
        let remedy = "; name the .p8 file that Apple gave you, or the provider.p8 of `wakegate dev`."
        #expect(
            self.fault("/nonexistent.p8")?.message
                == "/nonexistent.p8 cannot be read (no such file)" + remedy
        )
        #expect(self.fault(self.folder)?.message == "\(self.folder) is no ordinary file" + remedy)
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

    @Test("A key with a password is refused, and nobody is asked for it")
    func encrypted() throws {
        try DevelopmentCertificates.make(in: self.folder)
        let file = "\(self.folder)/encrypted.p8"
        let source = "\(self.folder)/provider.p8"
        let password = ["-passout", "pass:secret"]
        #expect(try self.openssl(["pkcs8", "-topk8", "-in", source, "-out", file] + password) == 0)
        #expect(self.fault(file)?.message.hasPrefix("\(file) holds no private key in PEM without a password") == true)
    }
}
