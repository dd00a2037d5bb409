import FoundationEssentials
import HTTPTransport
import Platform
import Wire

/// What the edge shows in its TLS handshakes, with the contents of the certificate's file, which tell whether it has
/// changed.
struct ServerCertificate: Sendable {
    let context: TLSContext
    private let file: String
    private let contents: Data

    /// Reads the files of `configuration`; nil where the edge is off.
    ///
    /// - Throws: `TransportError` that names the file at fault.
    init?(_ configuration: GatewayConfiguration) throws(TransportError) {
        guard !configuration.edge.isOff else { return nil }
        self.file = configuration.certificateFile ?? ""
        // Before the context reads it: what changes meanwhile is found changed the next time.
        self.contents =
            OrdinaryFile.isOther(self.file) ? Data() : FileManager.default.contents(atPath: self.file) ?? Data()
        self.context = try TLSContext(
            certificateChainFile: self.file,
            privateKeyFile: configuration.privateKeyFile ?? "",
            asksForCertificate: configuration.clientCAFile != nil
        )
    }

    /// The change from another one in the same file; nil when there is none, or another file is named.
    func change(from old: ServerCertificate) -> ConfigurationChange? {
        guard self.file == old.file, self.contents != old.contents else { return nil }
        return ConfigurationChange(key: "tls.certificate", old: old.shown, new: self.shown)
    }

    /// Whether handshakes show something else than with another one.
    func isSame(as old: ServerCertificate) -> Bool { self.file == old.file && self.contents == old.contents }

    private var shown: JSONValue {
        guard let expiry = self.context.certificateExpiry else { return .string(self.file) }
        return .string("\(self.file), which ends \(WallTime.text(expiry * 1000))")
    }
}
